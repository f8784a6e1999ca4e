#include "gangway/status/client.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "httplib.h"

namespace gangway::status {

absl::StatusOr<std::string> Get(const std::string& address, const std::string& path) {
  httplib::Client client(absl::StrCat("http://", absl::StripPrefix(address, "http://")));
  client.set_connection_timeout(2);
  client.set_read_timeout(10);
  httplib::Result answer = client.Get(path);
  if (!answer) {
    return absl::UnavailableError(
        absl::StrCat("no status page at ", address, ": ", httplib::to_string(answer.error())));
  }
  if (answer->status != 200) {
    return absl::UnavailableError(
        absl::StrCat(address, path, " answered ", answer->status, ": ", absl::StripSuffix(answer->body, "\n")));
  }
  return answer->body;
}

}  // namespace gangway::status

#include "gangway/status/client.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gangway/base/status.h"
#include "httplib.h"

namespace gangway::status {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

absl::StatusOr<Answer> Ask(const std::string& address, const std::string& path, const httplib::Params& query,
                           absl::Duration patience) {
  httplib::Client client(absl::StrCat("http://", absl::StripPrefix(address, "http://")));
  client.set_connection_timeout(2);
  client.set_read_timeout(absl::ToInt64Seconds(patience));
  httplib::Result answer = client.Get(query.empty() ? path : httplib::append_query_params(path, query));
  if (!answer) {
    return absl::UnavailableError(
        absl::StrCat("no status page at ", address, ": ", httplib::to_string(answer.error())));
  }
  if (answer->status != 200) {
    return absl::UnavailableError(
        absl::StrCat(address, path, " answered ", answer->status, ": ", absl::StripSuffix(answer->body, "\n")));
  }
  return Answer{std::move(answer->body), answer->get_header_value(kComplaint)};
}

}  // namespace

absl::StatusOr<std::string> Get(const std::string& address, const std::string& path) {
  GW_ASSIGN_OR_RETURN(Answer answer, Ask(address, path, {}, kPatience));
  return std::move(answer.text);
}

absl::StatusOr<Answer> GetExplanation(const std::string& address, const std::string& program,
                                      const std::vector<std::pair<std::string, std::string>>& query,
                                      absl::Duration patience) {
  httplib::Params parameters(query.begin(), query.end());
  parameters.emplace("program", program);
  return Ask(address, "/explain", parameters, patience);
}

}  // namespace gangway::status

#include "gangway/status/client.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gangway/base/status.h"
#include "gangway/net/address.h"
#include "httplib.h"

namespace gangway::status {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

// As a browser shows it, too.
std::string HostAndPort(absl::string_view address) {
  return std::string(absl::StripSuffix(absl::StripPrefix(address, "http://"), "/"));
}

httplib::Client ClientOf(const std::string& address, absl::Duration patience) {
  httplib::Client client(absl::StrCat("http://", HostAndPort(address)));
  client.set_connection_timeout(2);
  client.set_read_timeout(absl::ToInt64Seconds(patience));
  return client;
}

absl::Status NobodyAt(const std::string& address, httplib::Error error) {
  if (absl::Status wrong = net::ParseAddress(HostAndPort(address)).status(); !wrong.ok()) return wrong;
  const std::string why = error == httplib::Error::Connection ? "cannot connect" : httplib::to_string(error);
  return absl::UnavailableError(absl::StrCat("no status page at ", address, ": ", why));
}

absl::Status Refusal(const std::string& address, const std::string& path, int status, absl::string_view body) {
  return absl::UnavailableError(absl::StrCat(address, path, " answered ", status, ": ", absl::StripSuffix(body, "\n")));
}

absl::StatusOr<Answer> Ask(const std::string& address, const std::string& path, const httplib::Params& query,
                           absl::Duration patience) {
  httplib::Client client = ClientOf(address, patience);
  httplib::Result answer = client.Get(query.empty() ? path : httplib::append_query_params(path, query));
  if (!answer) return NobodyAt(address, answer.error());
  if (answer->status != 200) return Refusal(address, path, answer->status, answer->body);
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

absl::Status RecordTrace(const std::string& address, absl::Duration length,
                         absl::FunctionRef<bool(absl::string_view part)> take) {
  const std::string path = absl::StrCat("/trace.json?record=", absl::ToDoubleSeconds(length));
  int status = 0;
  bool stopped = false;
  std::string refusal;
  httplib::Client client = ClientOf(address, kPatience);
  httplib::Result answer = client.Get(
      path,
      [&](const httplib::Response& response) {
        status = response.status;
        return true;
      },
      [&](const char* data, size_t size) {
        if (status == 200) return !(stopped = !take(absl::string_view(data, size)));
        refusal.append(data, size);
        return true;
      });
  if (stopped) return absl::OkStatus();
  if (!answer && status == 200) {
    return absl::UnavailableError(absl::StrCat(address, " broke off: ", httplib::to_string(answer.error())));
  }
  if (!answer) return NobodyAt(address, answer.error());
  return status == 200 ? absl::OkStatus() : Refusal(address, path, status, refusal);
}

}  // namespace gangway::status

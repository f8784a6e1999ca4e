#include "gangway/net/address.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gangway::net {

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  const size_t colon = text.rfind(':');
  Address address;
  const bool has_port = colon != absl::string_view::npos && absl::SimpleAtoi(text.substr(colon + 1), &address.port);
  if (!has_port || address.port < 0 || address.port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not host:port"));
  }
  absl::string_view host = text.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  address.host = std::string(host);
  return address;
}

bool IsLoopback(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  const absl::StatusOr<Address> parsed = ParseAddress(address);
  return parsed.ok() &&
         (absl::StartsWith(parsed->host, "127.") || parsed->host == "localhost" || parsed->host == "::1");
}

std::string WithPort(absl::string_view listen, int port) {
  return absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
}

}  // namespace gangway::net

// Addresses as options and announcements write them.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gangway::net {

struct Address {
  std::string host;  // a name or a number, without brackets
  int port = 0;
};

// "host:port" or "[::1]:port". INVALID_ARGUMENT naming what is not.
absl::StatusOr<Address> ParseAddress(absl::string_view text);

// Whether only this machine reaches `address`: host:port with a host that is loopback, or unix:/path.
bool IsLoopback(absl::string_view address);

// "host:port", as `listen` has the host, with another port.
std::string WithPort(absl::string_view listen, int port);

}  // namespace gangway::net

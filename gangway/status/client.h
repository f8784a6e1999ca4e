// Asks a controller's status page.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace gangway::status {

// The document at `path` of the status page at `address` (host:port). UNAVAILABLE with what went wrong. Blocks for some
// seconds at most.
absl::StatusOr<std::string> Get(const std::string& address, const std::string& path);

}  // namespace gangway::status

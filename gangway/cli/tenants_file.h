// The tenants of a cluster, in a file.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "gangway/controller/tenants.h"

namespace gangway::cli {

// JSON: [{"name": "red", "token": "...", "weight": 3, "max_priority": 0, "max_sessions": 4, "max_devices": 8,
// "max_bytes": "16GiB", "max_queued": 100, "max_arrays": 100000, "max_programs": 1000}, ...]; name and token must be
// there. "" is an open cluster. Errors name the file, never a token.
absl::StatusOr<controller::TenantTable> ReadTenants(const std::string& path);

}  // namespace gangway::cli

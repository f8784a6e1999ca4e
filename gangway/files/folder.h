// The part of a host's files that clients may use.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gangway::files {

// The folder in `folder` that is `owner`'s, made where it is not there yet; `folder` itself where one of them is empty.
// INVALID_ARGUMENT when `owner` is no single name.
absl::StatusOr<std::string> OwnFolder(const std::string& folder, absl::string_view owner);

// `path`, absolute, without links and dots. FAILED_PRECONDITION when `folder` is empty: there is no such part;
// PERMISSION_DENIED when the path, its links followed, leads outside `folder`; INVALID_ARGUMENT when it is no path.
absl::StatusOr<std::string> Resolve(const std::string& folder, absl::string_view path);

}  // namespace gangway::files

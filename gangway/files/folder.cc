#include "gangway/files/folder.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gangway::files {
namespace {

namespace fs = std::filesystem;

bool IsUnder(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

}  // namespace

absl::StatusOr<std::string> Resolve(const std::string& folder, absl::string_view path) {
  if (folder.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": this worker keeps no files of clients; start it with --files=FOLDER"));
  }
  if (!absl::StartsWith(path, "/") || path.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is no absolute path"));
  }
  std::error_code error, no_folder;
  const fs::path resolved = fs::weakly_canonical(fs::path(std::string(path)), error);
  const fs::path allowed = fs::canonical(folder, no_folder);
  if (error || no_folder) {
    return absl::NotFoundError(error ? absl::StrCat(path, ": ", error.message())
                                     : absl::StrCat("--files=", folder, ": ", no_folder.message()));
  }
  if (!IsUnder(resolved, allowed)) {
    return absl::PermissionDeniedError(absl::StrCat(path, " is not in ", folder, ", where clients' files may be"));
  }
  return resolved.string();
}

}  // namespace gangway::files

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

// Of a path in which links were followed: one is left where it leads to nothing, which a file made by it would be.
bool HasLink(const fs::path& path) {
  std::error_code error;
  for (fs::path part = path; part.has_relative_path(); part = part.parent_path()) {
    if (fs::is_symlink(fs::symlink_status(part, error))) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::string> OwnFolder(const std::string& folder, absl::string_view owner) {
  if (folder.empty() || owner.empty()) return folder;
  if (owner == "." || owner == ".." || owner.find_first_of(absl::string_view("/\0", 2)) != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("'", owner, "' is no name of a folder"));
  }
  const fs::path own = fs::path(folder) / std::string(owner);
  std::error_code error;
  fs::create_directory(own, error);
  if (error) return absl::ErrnoToStatus(error.value(), own.string());
  return own.string();
}

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
  if (HasLink(resolved)) return absl::PermissionDeniedError(absl::StrCat(path, " leads over a link to nothing"));
  if (!IsUnder(resolved, allowed)) {
    return absl::PermissionDeniedError(absl::StrCat(path, " is not in ", folder, ", where clients' files may be"));
  }
  return resolved.string();
}

}  // namespace gangway::files

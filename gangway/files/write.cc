#include "gangway/files/write.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/files/descriptor.h"

namespace gangway::files {
namespace {

constexpr int64_t kChunk = 1 << 20;

std::string FolderOf(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

// A new name is on the disk once its folder is.
absl::Status SyncFolderOf(const std::string& path) {
  GW_ASSIGN_OR_RETURN(const Descriptor folder, Descriptor::Open(FolderOf(path), O_RDONLY | O_DIRECTORY));
  return folder.Sync();
}

}  // namespace

absl::Status WriteAt(const std::string& path, int64_t offset, absl::string_view bytes) {
  if (offset < 0) return absl::InvalidArgumentError(absl::StrCat(path, ": offset ", offset));
  std::error_code error;
  std::filesystem::create_directories(FolderOf(path), error);
  if (error) return absl::ErrnoToStatus(error.value(), FolderOf(path));
  GW_ASSIGN_OR_RETURN(const Descriptor file, Descriptor::Open(path, O_RDWR | O_CREAT));
  std::string there(static_cast<size_t>(std::min<int64_t>(kChunk, bytes.size())), '\0');
  for (int64_t at = 0; at < static_cast<int64_t>(bytes.size()); at += kChunk) {
    const absl::string_view chunk = bytes.substr(static_cast<size_t>(at), kChunk);
    const auto size = static_cast<int64_t>(chunk.size());
    GW_ASSIGN_OR_RETURN(const int64_t got, file.ReadSomeAt(offset + at, there.data(), size));
    if (got == size && std::memcmp(there.data(), chunk.data(), chunk.size()) == 0) continue;
    GW_RETURN_IF_ERROR(file.WriteAt(offset + at, chunk.data(), size));
  }
  return absl::OkStatus();
}

absl::Status Commit(const std::string& partial, int64_t size, const std::string& final,
                    const std::vector<std::string>& obsolete) {
  {
    GW_ASSIGN_OR_RETURN(const Descriptor file, Descriptor::Open(partial, O_RDWR));
    GW_RETURN_IF_ERROR(file.Truncate(size));
    GW_RETURN_IF_ERROR(file.Sync());
  }
  if (std::rename(partial.c_str(), final.c_str()) != 0) return SystemError(absl::StrCat(partial, " -> ", final));
  GW_RETURN_IF_ERROR(SyncFolderOf(final));
  for (const std::string& path : obsolete) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return SystemError(path);
  }
  return absl::OkStatus();
}

}  // namespace gangway::files

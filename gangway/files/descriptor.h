// An open file, for the files of this folder.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gangway::files {

// Closes when it goes.
class Descriptor {
 public:
  // `flags` and the mode 0644 as open(2) takes them. Errors name path and reason.
  static absl::StatusOr<Descriptor> Open(const std::string& path, int flags);
  Descriptor(Descriptor&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor();

  const std::string& path() const { return path_; }
  // All `size` bytes at `offset`; DATA_LOSS when the file ends before.
  absl::Status ReadAt(int64_t offset, char* to, int64_t size) const;
  // As many as there are, up to `size`.
  absl::StatusOr<int64_t> ReadSomeAt(int64_t offset, char* to, int64_t size) const;
  absl::Status WriteAt(int64_t offset, const char* from, int64_t size) const;
  // Drops what is behind `size`; DATA_LOSS when the file is shorter.
  absl::Status Truncate(int64_t size) const;
  // What was written is on the disk.
  absl::Status Sync() const;

 private:
  Descriptor(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_;
};

// The last system call's failure, of `path`.
absl::Status SystemError(absl::string_view path);

}  // namespace gangway::files

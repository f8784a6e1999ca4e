#include "gangway/files/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"

namespace gangway::files {
namespace {

absl::Status TooShort(absl::string_view path, int64_t size, int64_t wanted) {
  return absl::DataLossError(absl::StrCat(path, " ends at byte ", size, "; wanted up to ", wanted));
}

}  // namespace

absl::Status SystemError(absl::string_view path) { return absl::ErrnoToStatus(errno, path); }

absl::StatusOr<Descriptor> Descriptor::Open(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (fd < 0) return SystemError(path);
  return Descriptor(path, fd);
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<int64_t> Descriptor::ReadSomeAt(int64_t offset, char* to, int64_t size) const {
  int64_t done = 0;
  while (done < size) {
    const ssize_t got = pread(fd_, to + done, static_cast<size_t>(size - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(path_);
    if (got == 0) break;
    done += got;
  }
  return done;
}

absl::Status Descriptor::ReadAt(int64_t offset, char* to, int64_t size) const {
  GW_ASSIGN_OR_RETURN(const int64_t got, ReadSomeAt(offset, to, size));
  return got == size ? absl::OkStatus() : TooShort(path_, offset + got, offset + size);
}

absl::Status Descriptor::Truncate(int64_t size) const {
  struct stat status = {};
  if (fstat(fd_, &status) != 0) return SystemError(path_);
  if (status.st_size < size) return TooShort(path_, status.st_size, size);
  return ftruncate(fd_, size) == 0 ? absl::OkStatus() : SystemError(path_);
}

absl::Status Descriptor::WriteAt(int64_t offset, const char* from, int64_t size) const {
  for (int64_t done = 0; done < size;) {
    const ssize_t put = pwrite(fd_, from + done, static_cast<size_t>(size - done), offset + done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return SystemError(path_);
    done += put;
  }
  return absl::OkStatus();
}

absl::Status Descriptor::Sync() const { return fsync(fd_) == 0 ? absl::OkStatus() : SystemError(path_); }

}  // namespace gangway::files

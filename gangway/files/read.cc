#include "gangway/files/read.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/base/status.h"
#include "gangway/files/descriptor.h"

namespace gangway::files {
namespace {

constexpr int64_t kWindow = 4 << 20;
constexpr int64_t kDirect = 64 << 10;  // runs of so many bytes go straight to the result

// Short runs at growing offsets, read together.
class Window {
 public:
  // No run reaches behind `end`.
  Window(const Descriptor& file, int64_t end) : file_(file), end_(end) {}

  absl::Status Read(int64_t offset, char* to, int64_t size) {
    if (size >= kDirect) return file_.ReadAt(offset, to, size);
    if (offset < start_ || offset + size > start_ + static_cast<int64_t>(bytes_.size())) {
      bytes_.resize(static_cast<size_t>(std::min(kWindow, end_ - offset)));
      start_ = offset;
      GW_RETURN_IF_ERROR(file_.ReadAt(offset, bytes_.data(), static_cast<int64_t>(bytes_.size())));
    }
    std::memcpy(to, bytes_.data() + (offset - start_), static_cast<size_t>(size));
    return absl::OkStatus();
  }

 private:
  const Descriptor& file_;
  const int64_t end_;
  int64_t start_ = 0;
  std::string bytes_;
};

// Does a box of `extent` at `start` lie in one of `dims`?
bool Inside(const Dims& start, const Dims& extent, const Dims& dims) {
  if (start.size() != dims.size() || extent.size() != dims.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (start[i] < 0 || extent[i] < 0 || extent[i] > dims[i] || start[i] > dims[i] - extent[i]) return false;
  }
  return true;
}

// Bytes of a box; -1 when that is more than 63 bits hold or an extent is negative.
int64_t BytesOf(const Dims& dims, int64_t width) {
  int64_t bytes = width;
  for (int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes)) return -1;
  }
  return bytes;
}

int64_t OffsetOf(const Dims& index, const Dims& dims, int64_t width) {
  int64_t offset = 0;
  for (size_t i = 0; i < dims.size(); ++i) offset = offset * dims[i] + index[i];
  return offset * width;
}

// The dimensions from here on are whole in both boxes, or one stretch of the first of them is taken: what they hold is
// one run of bytes.
size_t FirstOfRun(const Piece& piece, const Dims& dims) {
  size_t first = dims.size();
  while (first > 0) {
    --first;
    if (piece.extent[first] != piece.saved[first] || piece.extent[first] != dims[first]) break;
  }
  return first;
}

absl::Status Check(const Piece& piece, const Destination& destination) {
  const int64_t saved = BytesOf(piece.saved, destination.width);
  if (!Inside(piece.from, piece.extent, piece.saved) || !Inside(piece.to, piece.extent, destination.dims) ||
      saved < 0 || piece.offset < 0 || piece.offset > INT64_MAX - saved) {
    return absl::InvalidArgumentError(
        absl::StrCat(piece.path, ": [", absl::StrJoin(piece.extent, ","), "] at [", absl::StrJoin(piece.from, ","),
                     "] of [", absl::StrJoin(piece.saved, ","), "] does not fit at [", absl::StrJoin(piece.to, ","),
                     "] of [", absl::StrJoin(destination.dims, ","), "]"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadPiece(const Piece& piece, const Destination& destination) {
  GW_RETURN_IF_ERROR(Check(piece, destination));
  const size_t rank = destination.dims.size(), first = FirstOfRun(piece, destination.dims);
  int64_t run = destination.width, runs = 1;
  for (size_t i = 0; i < rank; ++i) (i < first ? runs : run) *= piece.extent[i];
  if (run == 0 || runs == 0) return absl::OkStatus();
  GW_ASSIGN_OR_RETURN(const Descriptor file, Descriptor::Open(piece.path, O_RDONLY));
  Dims last = piece.from;
  for (size_t i = 0; i < rank; ++i) last[i] += piece.extent[i] - 1;
  Window window(file, piece.offset + OffsetOf(last, piece.saved, destination.width) + destination.width);
  Dims step(rank, 0);
  for (int64_t i = 0; i < runs; ++i) {
    Dims from = piece.from, to = piece.to;
    for (size_t d = 0; d < first; ++d) {
      from[d] += step[d];
      to[d] += step[d];
    }
    GW_RETURN_IF_ERROR(window.Read(piece.offset + OffsetOf(from, piece.saved, destination.width),
                                   destination.data + OffsetOf(to, destination.dims, destination.width), run));
    for (size_t d = first; d-- > 0 && ++step[d] == piece.extent[d];) step[d] = 0;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> SizeOf(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return absl::ErrnoToStatus(error.value(), path);
  return static_cast<int64_t>(size);
}

absl::Status ReadStart(const std::string& path, char* to, int64_t size) {
  GW_ASSIGN_OR_RETURN(const Descriptor file, Descriptor::Open(path, O_RDONLY));
  return file.ReadAt(0, to, size);
}

}  // namespace gangway::files

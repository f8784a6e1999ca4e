// Parts of arrays out of files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gangway::files {

using Dims = std::vector<int64_t>;

// The file holds a dense row-major box of `saved` extents from byte `offset` on; `extent` elements of it, from `from`
// on, belong at `to` of the result. All have the array's rank.
struct Piece {
  std::string path;
  int64_t offset = 0;
  Dims saved, from, to, extent;
};

// Where the pieces go: dense and row-major, `width` bytes an element.
struct Destination {
  char* data = nullptr;
  Dims dims;
  int64_t width = 1;
};

// INVALID_ARGUMENT for a piece that reaches outside its file's box or the result, DATA_LOSS for a file that is too
// short. Reads no more than the rows it needs, in spans of 4 MiB at most.
absl::Status ReadPiece(const Piece& piece, const Destination& destination);

// Bytes of the file. Paths are resolved ones (folder.h).
absl::StatusOr<int64_t> SizeOf(const std::string& path);
// Its first `size` bytes.
absl::Status ReadStart(const std::string& path, char* to, int64_t size);

}  // namespace gangway::files

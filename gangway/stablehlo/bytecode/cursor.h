// Cursor: bounds-checked reading of MLIR bytecode primitives from a byte range.
//
// Borrows the bytes. Every read either succeeds or returns InvalidArgument naming the offset in the whole file; the
// cursor is not to be used further after an error. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gangway::bytecode {

// A varint whose low bit is a flag.
struct FlaggedVarint {
  uint64_t value = 0;
  bool flag = false;
};

class Cursor {
 public:
  // `file_offset` is where `bytes` starts in the file; it only serves messages and alignment.
  explicit Cursor(absl::string_view bytes, size_t file_offset = 0) : bytes_(bytes), file_offset_(file_offset) {}

  bool done() const { return position_ == bytes_.size(); }
  size_t remaining() const { return bytes_.size() - position_; }
  size_t offset() const { return file_offset_ + position_; }

  absl::StatusOr<uint8_t> Byte();
  // Zero or non-zero byte.
  absl::StatusOr<bool> Bool();
  absl::StatusOr<uint64_t> Varint();
  absl::StatusOr<int64_t> SignedVarint();
  absl::StatusOr<FlaggedVarint> Flagged();

  // A varint that must be below `limit`, e.g. an index into a table; `what` names the table in the message.
  absl::StatusOr<uint64_t> Index(uint64_t limit, absl::string_view what);
  // The length of a list whose elements take at least `min_element_bytes` each: never more than the bytes left can
  // hold, so a caller may reserve it.
  absl::StatusOr<size_t> Count(absl::string_view what, size_t min_element_bytes = 1);

  absl::StatusOr<absl::string_view> Bytes(uint64_t size);
  // varint size, then the bytes.
  absl::StatusOr<absl::string_view> Blob();
  // Bytes up to a NUL, which is consumed and not part of the result.
  absl::StatusOr<absl::string_view> CString();
  absl::StatusOr<std::vector<int64_t>> SignedVarints();
  // A cursor over the next `size` bytes, which this one skips.
  absl::StatusOr<Cursor> Slice(uint64_t size);

  // An integer of `width` bits as written for APInt: the low bits of the result, sign not extended. 1 <= width <= 64.
  absl::StatusOr<uint64_t> Bits(int width);

  // Skips 0xCB padding until the file offset is a multiple of `alignment`.
  absl::Status Align(uint64_t alignment);
  // OK when everything was consumed; `what` names the thing that was read.
  absl::Status ExpectDone(absl::string_view what) const;

  // InvalidArgument "byte <offset>: <message>".
  absl::Status Error(absl::string_view message) const;

 private:
  absl::string_view bytes_;
  size_t file_offset_;
  size_t position_ = 0;
};

}  // namespace gangway::bytecode

#include "gangway/stablehlo/bytecode/cursor.h"

#include "absl/numeric/bits.h"
#include "gangway/base/status.h"

namespace gangway::bytecode {

absl::Status Cursor::Error(absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat("byte ", offset(), ": ", message));
}

absl::StatusOr<uint8_t> Cursor::Byte() {
  if (done()) return Error("unexpected end");
  return static_cast<uint8_t>(bytes_[position_++]);
}

absl::StatusOr<bool> Cursor::Bool() {
  GW_ASSIGN_OR_RETURN(uint8_t byte, Byte());
  return byte != 0;
}

absl::StatusOr<uint64_t> Cursor::Varint() {
  GW_ASSIGN_OR_RETURN(uint8_t first, Byte());
  // The number of trailing zero bits of the first byte is the number of bytes that follow.
  const int extra = first == 0 ? 8 : absl::countr_zero(first);
  if (remaining() < static_cast<size_t>(extra)) return Error("unexpected end inside an integer");
  uint64_t value = 0;
  for (int i = 0; i < extra; ++i) {
    value |= uint64_t{static_cast<uint8_t>(bytes_[position_ + i])} << (8 * i);
  }
  position_ += extra;
  return extra == 8 ? value : (value << 8 | first) >> (extra + 1);
}

absl::StatusOr<int64_t> Cursor::SignedVarint() {
  GW_ASSIGN_OR_RETURN(uint64_t value, Varint());
  return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

absl::StatusOr<FlaggedVarint> Cursor::Flagged() {
  GW_ASSIGN_OR_RETURN(uint64_t value, Varint());
  return FlaggedVarint{value >> 1, (value & 1) != 0};
}

absl::StatusOr<uint64_t> Cursor::Index(uint64_t limit, absl::string_view what) {
  const size_t start = offset();
  GW_ASSIGN_OR_RETURN(uint64_t value, Varint());
  if (value >= limit) {
    return absl::InvalidArgumentError(absl::StrCat("byte ", start, ": ", what, " ", value, " of only ", limit));
  }
  return value;
}

absl::StatusOr<size_t> Cursor::Count(absl::string_view what, size_t min_element_bytes) {
  const size_t start = offset();
  GW_ASSIGN_OR_RETURN(uint64_t count, Varint());
  if (count > remaining() / min_element_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("byte ", start, ": ", count, " ", what, " do not fit in the ", remaining(), " bytes left"));
  }
  return static_cast<size_t>(count);
}

absl::StatusOr<absl::string_view> Cursor::Bytes(uint64_t size) {
  if (size > remaining()) return Error(absl::StrCat(size, " bytes wanted, ", remaining(), " left"));
  absl::string_view result = bytes_.substr(position_, size);
  position_ += size;
  return result;
}

absl::StatusOr<absl::string_view> Cursor::Blob() {
  GW_ASSIGN_OR_RETURN(uint64_t size, Varint());
  return Bytes(size);
}

absl::StatusOr<absl::string_view> Cursor::CString() {
  const size_t end = bytes_.find('\0', position_);
  if (end == absl::string_view::npos) return Error("unterminated string");
  absl::string_view result = bytes_.substr(position_, end - position_);
  position_ = end + 1;
  return result;
}

absl::StatusOr<std::vector<int64_t>> Cursor::SignedVarints() {
  GW_ASSIGN_OR_RETURN(size_t count, Count("integers"));
  std::vector<int64_t> values;
  values.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    GW_ASSIGN_OR_RETURN(int64_t value, SignedVarint());
    values.push_back(value);
  }
  return values;
}

absl::StatusOr<Cursor> Cursor::Slice(uint64_t size) {
  const size_t start = offset();
  GW_ASSIGN_OR_RETURN(absl::string_view bytes, Bytes(size));
  return Cursor(bytes, start);
}

absl::StatusOr<uint64_t> Cursor::Bits(int width) {
  uint64_t value = 0;
  if (width <= 8) {
    GW_ASSIGN_OR_RETURN(value, Byte());
  } else {
    GW_ASSIGN_OR_RETURN(int64_t wide, SignedVarint());
    value = static_cast<uint64_t>(wide);
  }
  return width == 64 ? value : value & ((uint64_t{1} << width) - 1);
}

absl::Status Cursor::Align(uint64_t alignment) {
  if (!absl::has_single_bit(alignment)) return Error(absl::StrCat("alignment ", alignment, " is no power of two"));
  while (offset() % alignment != 0) {
    GW_ASSIGN_OR_RETURN(uint8_t padding, Byte());
    if (padding != 0xCB) return Error("alignment padding is not 0xCB");
  }
  return absl::OkStatus();
}

absl::Status Cursor::ExpectDone(absl::string_view what) const {
  if (done()) return absl::OkStatus();
  return Error(absl::StrCat(remaining(), " bytes left over after ", what));
}

}  // namespace gangway::bytecode

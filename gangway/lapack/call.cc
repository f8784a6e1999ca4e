#include "gangway/lapack/call.h"

#include <cstring>

namespace gangway::lapack {
namespace {

absl::Status CheckArray(const Array& array, const Batch& batch, const Expected& expected, absl::string_view what,
                        size_t index) {
  std::vector<int64_t> dims = batch.dims;
  dims.insert(dims.end(), expected.dims.begin(), expected.dims.end());
  if (array.dtype == expected.dtype && array.dims == absl::MakeConstSpan(dims)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " ", index, " is ", DTypeName(array.dtype), "[",
                                                 absl::StrJoin(array.dims, ","), "], not ", DTypeName(expected.dtype),
                                                 "[", absl::StrJoin(dims, ","), "]"));
}

std::optional<int64_t> Find(const Call& call, absl::string_view name) {
  for (const auto& [key, value] : call.attributes) {
    if (key == name) return value;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<Batch> BatchOf(const Call& call, size_t index) {
  if (call.operands.size() <= index || call.operands[index].dims.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat("operand ", index, " is no matrix"));
  }
  const absl::Span<const int64_t> dims = call.operands[index].dims;
  const int64_t rows = dims[dims.size() - 2], columns = dims.back();
  if (rows > INT_MAX || columns > INT_MAX) {
    return absl::InvalidArgumentError(absl::StrCat("a matrix of ", rows, "x", columns, " is too large for LAPACK"));
  }
  Batch batch;
  batch.dims.assign(dims.begin(), dims.end() - 2);
  for (int64_t dim : batch.dims) batch.size *= dim;
  batch.rows = static_cast<int>(rows);
  batch.columns = static_cast<int>(columns);
  return batch;
}

absl::Status CheckArrays(const Call& call, const Batch& batch, const std::vector<Expected>& operands,
                         const std::vector<Expected>& results) {
  if (call.operands.size() != operands.size() || call.results.size() != results.size()) {
    return absl::InvalidArgumentError(absl::StrCat(call.operands.size(), " operands and ", call.results.size(),
                                                   " results, not ", operands.size(), " and ", results.size()));
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    GW_RETURN_IF_ERROR(CheckArray(call.operands[i], batch, operands[i], "operand", i));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    GW_RETURN_IF_ERROR(CheckArray(call.results[i], batch, results[i], "result", i));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> NumberOf(const Call& call, absl::string_view name) {
  const std::optional<int64_t> value = Find(call, name);
  if (!value) return absl::InvalidArgumentError(absl::StrCat("attribute ", name, " is missing"));
  return *value;
}

absl::StatusOr<char> CharacterOf(const Call& call, absl::string_view name, absl::string_view allowed) {
  GW_ASSIGN_OR_RETURN(const int64_t value, NumberOf(call, name));
  for (char c : allowed) {
    if (value == c) return c;
  }
  return absl::InvalidArgumentError(absl::StrCat("attribute ", name, " is ", value, ", none of '", allowed, "'"));
}

void CopyOperand(const Call& call, size_t from, size_t to) {
  const Array& source = call.operands[from];
  if (source.data == call.results[to].data) return;
  size_t bytes = ByteWidth(source.dtype);
  for (int64_t dim : source.dims) bytes *= static_cast<size_t>(dim);
  if (bytes > 0) std::memcpy(call.results[to].data, source.data, bytes);
}

}  // namespace gangway::lapack

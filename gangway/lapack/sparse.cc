// A sparse matrix in CSR form times a dense vector or matrix, all row-major.
#include "gangway/lapack/call.h"

namespace gangway::lapack {
namespace {

// Rows [starts[i], starts[i + 1]) of `columns` and `values` are row i. Starts and columns are the client's numbers.
template <typename T, typename I>
absl::Status Multiply(const Call& call) {
  const Array& values = call.operands[0];
  const Array& right = call.operands[3];
  const Array& result = call.results[0];
  const I* starts = Data<I>(call.operands[1]);
  const I* columns = Data<I>(call.operands[2]);
  const int64_t width = right.dims.size() > 1 ? right.dims[1] : 1;
  for (int64_t row = 0; row < result.dims[0]; ++row) {
    T* out = Data<T>(result) + row * width;
    std::fill_n(out, width, T(0));
    if (starts[row] < 0 || starts[row + 1] > values.dims[0]) {
      return absl::InvalidArgumentError(absl::StrCat("row ", row, " of the sparse matrix lies outside its elements"));
    }
    for (int64_t at = starts[row]; at < starts[row + 1]; ++at) {
      if (columns[at] < 0 || columns[at] >= right.dims[0]) {
        return absl::InvalidArgumentError(absl::StrCat("row ", row, " of the sparse matrix has no column ", columns[at],
                                                       ", the other operand has ", right.dims[0], " rows"));
      }
      const T value = Data<T>(values)[at];
      const T* factors = Data<T>(right) + columns[at] * width;
      for (int64_t j = 0; j < width; ++j) out[j] += value * factors[j];
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status MultiplyOf(const Call& call) {
  switch (call.operands[1].dtype) {
    case DType::kS32:
      return Multiply<T, int32_t>(call);
    case DType::kS64:
      return Multiply<T, int64_t>(call);
    default:
      return absl::InvalidArgumentError(absl::StrCat("indices of type ", DTypeName(call.operands[1].dtype)));
  }
}

absl::Status CheckShapes(const Call& call) {
  if (call.operands.size() != 4 || call.results.size() != 1) {
    return absl::InvalidArgumentError("not four operands and one result");
  }
  const auto rank = [&call](size_t operand) { return call.operands[operand].dims.size(); };
  const Array& right = call.operands[3];
  const Array& result = call.results[0];
  const bool fits = rank(0) == 1 && rank(1) == 1 && rank(2) == 1 && (rank(3) == 1 || rank(3) == 2) &&
                    result.dims.size() == rank(3) && call.operands[2].dims[0] == call.operands[0].dims[0] &&
                    call.operands[1].dims[0] == result.dims[0] + 1 &&
                    (rank(3) == 1 || right.dims[1] == result.dims[1]) && right.dtype == result.dtype &&
                    call.operands[0].dtype == result.dtype && call.operands[1].dtype == call.operands[2].dtype;
  return fits ? absl::OkStatus() : absl::InvalidArgumentError("types or shapes of a sparse product do not fit");
}

absl::Status CsrTimesDense(const Call& call) {
  GW_RETURN_IF_ERROR(CheckShapes(call));
  switch (call.results[0].dtype) {
    case DType::kS32:
      return MultiplyOf<int32_t>(call);
    case DType::kS64:
      return MultiplyOf<int64_t>(call);
    case DType::kF32:
      return MultiplyOf<float>(call);
    case DType::kF64:
      return MultiplyOf<double>(call);
    case DType::kC64:
      return MultiplyOf<std::complex<float>>(call);
    case DType::kC128:
      return MultiplyOf<std::complex<double>>(call);
    default:
      return absl::InvalidArgumentError(absl::StrCat("element type ", DTypeName(call.results[0].dtype)));
  }
}

}  // namespace

void AddSparseRoutines(std::vector<Routine>* routines) {
  routines->push_back({"cpu_csr_sparse_dense_ffi", &CsrTimesDense});
}

}  // namespace gangway::lapack

// Checked access to the arrays of a call, for the files of this folder.
#pragma once

#include <algorithm>
#include <climits>
#include <complex>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/base/status.h"
#include "gangway/lapack/routine.h"

// Before lapacke.h, which declares its complex types by them.
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

namespace gangway::lapack {

template <typename T>
struct ElementOf;
template <>
struct ElementOf<float> {
  static constexpr DType kType = DType::kF32;
  using Real = float;
};
template <>
struct ElementOf<double> {
  static constexpr DType kType = DType::kF64;
  using Real = double;
};
template <>
struct ElementOf<std::complex<float>> {
  static constexpr DType kType = DType::kC64;
  using Real = float;
};
template <>
struct ElementOf<std::complex<double>> {
  static constexpr DType kType = DType::kC128;
  using Real = double;
};
template <>
struct ElementOf<int32_t> {
  static constexpr DType kType = DType::kS32;
};

template <typename T>
using RealOf = typename ElementOf<T>::Real;
template <typename T>
inline constexpr bool kIsComplex = !std::is_same_v<T, RealOf<T>>;

// Element type and the dimensions behind the batch of one operand or result.
struct Expected {
  DType dtype;
  std::vector<int64_t> dims;
};
template <typename T>
Expected Of(std::vector<int64_t> dims) {
  return {ElementOf<T>::kType, std::move(dims)};
}
// LAPACK's report on each matrix.
inline Expected Info() { return Of<int32_t>({}); }

// The batch of a call whose first operand holds matrices.
struct Batch {
  int64_t size = 1;  // matrices
  std::vector<int64_t> dims;
  int rows = 0, columns = 0;  // of the first operand

  int least() const { return std::min(rows, columns); }
};

// From operand `index`, which has the highest rank.
absl::StatusOr<Batch> BatchOf(const Call& call, size_t index = 0);
// The call's arrays are of these types, with the batch's dimensions before these.
absl::Status CheckArrays(const Call& call, const Batch& batch, const std::vector<Expected>& operands,
                         const std::vector<Expected>& results);
// INVALID_ARGUMENT when the attribute is missing or none of `allowed`.
absl::StatusOr<char> CharacterOf(const Call& call, absl::string_view name, absl::string_view allowed);
absl::StatusOr<int64_t> NumberOf(const Call& call, absl::string_view name);

template <typename T>
T* Data(const Array& array) {
  return static_cast<T*>(array.data);
}
// Result `to` starts as operand `from`; they may be the same memory.
void CopyOperand(const Call& call, size_t from, size_t to);

// LAPACK's iterations need not end on what is not finite: such matrices are refused as if it had seen a bad fourth
// argument.
inline constexpr int32_t kNotFinite = -4;

// LAPACK's leading dimension: at least 1, also of an empty matrix.
inline int Leading(int64_t rows) { return static_cast<int>(std::max<int64_t>(1, rows)); }

// Tables of the files of this folder.
void AddFactorRoutines(std::vector<Routine>* routines);
void AddEigenRoutines(std::vector<Routine>* routines);
void AddSingularValueRoutines(std::vector<Routine>* routines);
void AddSolveRoutines(std::vector<Routine>* routines);
void AddPerturbedRoutines(std::vector<Routine>* routines);
void AddSparseRoutines(std::vector<Routine>* routines);

}  // namespace gangway::lapack

// `Function<element type, LAPACKE's function>` under JAX's name, for real or complex elements or both.
#define GW_LAPACK_REAL(routines, name, Function)                                        \
  (routines)->push_back({"lapack_s" #name "_ffi", &Function<float, &LAPACKE_s##name>}); \
  (routines)->push_back({"lapack_d" #name "_ffi", &Function<double, &LAPACKE_d##name>})
#define GW_LAPACK_COMPLEX(routines, name, Function)                                                   \
  (routines)->push_back({"lapack_c" #name "_ffi", &Function<std::complex<float>, &LAPACKE_c##name>}); \
  (routines)->push_back({"lapack_z" #name "_ffi", &Function<std::complex<double>, &LAPACKE_z##name>})
#define GW_LAPACK(routines, name, Function) \
  GW_LAPACK_REAL(routines, name, Function); \
  GW_LAPACK_COMPLEX(routines, name, Function)

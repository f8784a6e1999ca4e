// Tridiagonal systems that may be singular, as inverse iteration for eigenvectors needs them: pivots too small to
// divide by are moved away from zero. The method of LAPACK's xLAGTF and xLAGTS, factored and solved in one pass.
#include <cmath>
#include <limits>

#include "gangway/lapack/call.h"

namespace gangway::lapack {
namespace {

template <typename T>
class PerturbedSystem {
 public:
  using R = RealOf<T>;

  PerturbedSystem(int n, int sides) : n_(n), sides_(sides), upper_(n), row_(sides) {}

  // Diagonals of length n; b and x are n x sides, column-major, and may be the same memory.
  void Solve(const T* lower, const T* diagonal, const T* upper, const T* b, T* x) {
    if (n_ == 0) return;
    if (x != b) std::copy_n(b, int64_t{n_} * sides_, x);
    Eliminate(lower, diagonal, upper, x);
    R largest = 0;
    for (int k = 0; k < n_; ++k) {
      for (const T& entry : {upper_[k].diagonal, upper_[k].first, upper_[k].second}) {
        largest = std::max(largest, std::abs(entry));
      }
    }
    const R perturbation = std::numeric_limits<R>::epsilon() * largest;
    for (int k = n_ - 1; k >= 0; --k) SubstituteBack(k, perturbation, x);
  }

 private:
  // A row of the upper triangle: pivoting fills a second diagonal above the first.
  struct Row {
    T diagonal, first, second;
  };

  void Eliminate(const T* lower, const T* diagonal, const T* upper, T* x) {
    upper_[0] = {diagonal[0], n_ > 1 ? upper[0] : T(0), T(0)};
    R scale = std::abs(upper_[0].diagonal) + std::abs(upper_[0].first);
    for (int k = 0; k + 1 < n_; ++k) {
      Row& row = upper_[k];
      const T below = lower[k + 1];
      Row next = {diagonal[k + 1], k + 2 < n_ ? upper[k + 1] : T(0), T(0)};
      const R next_scale = std::abs(below) + std::abs(next.diagonal) + std::abs(next.first);
      const R pivot = row.diagonal == T(0) ? R(0) : std::abs(row.diagonal) / scale;
      if (below == T(0)) {
        scale = next_scale;
      } else if (std::abs(below) / next_scale <= pivot) {
        const T factor = below / row.diagonal;
        next.diagonal -= factor * row.first;
        for (int side = 0; side < sides_; ++side) At(x, k + 1, side) -= factor * At(x, k, side);
        scale = next_scale;
      } else {
        const T factor = row.diagonal / below;
        const Row exchanged = {below, next.diagonal, next.first};
        next = {row.first - factor * next.diagonal, -factor * next.first, T(0)};
        row = exchanged;
        for (int side = 0; side < sides_; ++side) {
          const T old = At(x, k, side);
          At(x, k, side) = At(x, k + 1, side);
          At(x, k + 1, side) = old - factor * At(x, k + 1, side);
        }
        scale = std::abs(next.diagonal) + std::abs(next.first);
      }
      upper_[k + 1] = next;
    }
  }

  void SubstituteBack(int k, R perturbation, T* x) {
    for (int side = 0; side < sides_; ++side) {
      T value = At(x, k, side);
      if (k + 1 < n_) value -= upper_[k].first * At(x, k + 1, side);
      if (k + 2 < n_) value -= upper_[k].second * At(x, k + 2, side);
      row_[side] = value;
    }
    const T pivot = SafePivot(upper_[k].diagonal, perturbation);
    for (int side = 0; side < sides_; ++side) At(x, k, side) = row_[side] / pivot;
  }

  // The pivot, moved until neither its inverse nor a right side divided by it overflows. May scale `row_` with it.
  T SafePivot(T pivot, R perturbation) {
    const R smallest = std::numeric_limits<R>::min(), huge = 1 / smallest;
    perturbation = std::copysign(std::max(perturbation, smallest), std::real(pivot));
    R largest = 0;
    for (const T& value : row_) largest = std::max(largest, std::abs(value));
    while (std::abs(pivot) < 1) {
      const R size = std::abs(pivot);
      if (size >= smallest && largest <= size * huge) break;
      if (size < smallest && size != 0 && largest * smallest <= size) {
        for (T& value : row_) value *= huge;
        return pivot * huge;
      }
      pivot += perturbation;
      perturbation *= 2;
    }
    return pivot;
  }

  T& At(T* x, int row, int side) const { return x[int64_t{side} * n_ + row]; }

  const int n_, sides_;
  std::vector<Row> upper_;
  std::vector<T> row_;
};

template <typename T>
absl::Status SolveAll(const Call& call, const Batch& batch) {
  const int n = batch.rows, sides = batch.columns;
  GW_RETURN_IF_ERROR(
      CheckArrays(call, batch, {Of<T>({n}), Of<T>({n}), Of<T>({n}), Of<T>({n, sides})}, {Of<T>({n, sides})}));
  PerturbedSystem<T> system(n, sides);
  for (int64_t i = 0; i < batch.size; ++i) {
    const int64_t vector = i * n, matrix = vector * sides;
    system.Solve(Data<T>(call.operands[0]) + vector, Data<T>(call.operands[1]) + vector,
                 Data<T>(call.operands[2]) + vector, Data<T>(call.operands[3]) + matrix,
                 Data<T>(call.results[0]) + matrix);
  }
  return absl::OkStatus();
}

absl::Status Perturbed(const Call& call) {
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call, 3));
  switch (call.operands[3].dtype) {
    case DType::kF32:
      return SolveAll<float>(call, batch);
    case DType::kF64:
      return SolveAll<double>(call, batch);
    case DType::kC64:
      return SolveAll<std::complex<float>>(call, batch);
    case DType::kC128:
      return SolveAll<std::complex<double>>(call, batch);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("element type ", DTypeName(call.operands[3].dtype), "; f32, f64, c64 and c128 are served"));
  }
}

}  // namespace

void AddPerturbedRoutines(std::vector<Routine>* routines) {
  routines->push_back({"tridiagonal_solve_perturbed_ffi", &Perturbed});
}

}  // namespace gangway::lapack

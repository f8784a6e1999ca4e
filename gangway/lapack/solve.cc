// Triangular and tridiagonal systems.
#include <cblas.h>

#include "gangway/lapack/call.h"

namespace gangway::lapack {
namespace {

CBLAS_TRANSPOSE TransposeOf(char c) { return c == 'N' ? CblasNoTrans : c == 'T' ? CblasTrans : CblasConjTrans; }

struct TriangularForm {
  CBLAS_SIDE side;
  CBLAS_UPLO uplo;
  CBLAS_TRANSPOSE transpose;
  CBLAS_DIAG diagonal;
};

absl::StatusOr<TriangularForm> FormOf(const Call& call) {
  GW_ASSIGN_OR_RETURN(const char side, CharacterOf(call, "side", "LR"));
  GW_ASSIGN_OR_RETURN(const char uplo, CharacterOf(call, "uplo", "LU"));
  GW_ASSIGN_OR_RETURN(const char transpose, CharacterOf(call, "trans_x", "NTC"));
  GW_ASSIGN_OR_RETURN(const char diagonal, CharacterOf(call, "diag", "UN"));
  return TriangularForm{side == 'L' ? CblasLeft : CblasRight, uplo == 'L' ? CblasLower : CblasUpper,
                        TransposeOf(transpose), diagonal == 'U' ? CblasUnit : CblasNonUnit};
}

void Solve(const TriangularForm& f, int m, int n, const float* a, int lda, float* b) {
  cblas_strsm(CblasColMajor, f.side, f.uplo, f.transpose, f.diagonal, m, n, 1, a, lda, b, Leading(m));
}
void Solve(const TriangularForm& f, int m, int n, const double* a, int lda, double* b) {
  cblas_dtrsm(CblasColMajor, f.side, f.uplo, f.transpose, f.diagonal, m, n, 1, a, lda, b, Leading(m));
}
void Solve(const TriangularForm& f, int m, int n, const std::complex<float>* a, int lda, std::complex<float>* b) {
  const std::complex<float> one = 1;
  cblas_ctrsm(CblasColMajor, f.side, f.uplo, f.transpose, f.diagonal, m, n, &one, a, lda, b, Leading(m));
}
void Solve(const TriangularForm& f, int m, int n, const std::complex<double>* a, int lda, std::complex<double>* b) {
  const std::complex<double> one = 1;
  cblas_ztrsm(CblasColMajor, f.side, f.uplo, f.transpose, f.diagonal, m, n, &one, a, lda, b, Leading(m));
}

// Operands: the triangle a, b. Result: x of op(a) x = b, or x op(a) = b.
template <typename T>
absl::Status Triangular(const Call& call) {
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call, 1));
  GW_ASSIGN_OR_RETURN(const TriangularForm form, FormOf(call));
  const int m = batch.rows, n = batch.columns, order = form.side == CblasLeft ? m : n;
  GW_RETURN_IF_ERROR(CheckArrays(call, batch, {Of<T>({order, order}), Of<T>({m, n})}, {Of<T>({m, n})}));
  CopyOperand(call, 1, 0);
  if (m == 0 || n == 0) return absl::OkStatus();
  const T* a = Data<T>(call.operands[0]);
  T* b = Data<T>(call.results[0]);
  for (int64_t i = 0; i < batch.size; ++i, a += int64_t{order} * order, b += int64_t{m} * n) {
    Solve(form, m, n, a, Leading(order), b);
  }
  return absl::OkStatus();
}

// Operands: lower diagonal (its first element is not used), diagonal, upper (its last not), right sides. Results: the
// three diagonals (destroyed), the solutions, info.
template <typename T, auto gtsv>
absl::Status Tridiagonal(const Call& call) {
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call, 3));
  const int n = batch.rows, sides = batch.columns;
  const std::vector<Expected> arrays = {Of<T>({n}), Of<T>({n}), Of<T>({n}), Of<T>({n, sides})};
  std::vector<Expected> results = arrays;
  results.push_back(Info());
  GW_RETURN_IF_ERROR(CheckArrays(call, batch, arrays, results));
  for (size_t i = 0; i < arrays.size(); ++i) CopyOperand(call, i, i);
  int32_t* info = Data<int32_t>(call.results[4]);
  for (int64_t i = 0; i < batch.size; ++i) {
    if (n == 0 || sides == 0) {
      info[i] = 0;
      continue;
    }
    info[i] = gtsv(LAPACK_COL_MAJOR, n, sides, Data<T>(call.results[0]) + i * n + 1, Data<T>(call.results[1]) + i * n,
                   Data<T>(call.results[2]) + i * n, Data<T>(call.results[3]) + i * n * sides, Leading(n));
  }
  return absl::OkStatus();
}

}  // namespace

void AddSolveRoutines(std::vector<Routine>* routines) {
  routines->push_back({"lapack_strsm_ffi", &Triangular<float>});
  routines->push_back({"lapack_dtrsm_ffi", &Triangular<double>});
  routines->push_back({"lapack_ctrsm_ffi", &Triangular<std::complex<float>>});
  routines->push_back({"lapack_ztrsm_ffi", &Triangular<std::complex<double>>});
  GW_LAPACK(routines, gtsv, Tridiagonal);
}

}  // namespace gangway::lapack

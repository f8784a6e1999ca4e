// Eigenvalues, Schur form, and the reductions that lead to them.
#include <cmath>

#include "gangway/lapack/call.h"
#include "gangway/lapack/unblocked.h"

namespace gangway::lapack {
namespace {

// Of symmetric and Hermitian matrices. Results: eigenvectors, eigenvalues ascending, info.
template <typename T, auto syevd>
absl::Status SymmetricEigen(const Call& call) {
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call));
  const int n = batch.rows;
  GW_RETURN_IF_ERROR(CheckArrays(call, batch, {Of<T>({n, n})}, {Of<T>({n, n}), Of<RealOf<T>>({n}), Info()}));
  GW_ASSIGN_OR_RETURN(const char mode, CharacterOf(call, "mode", "VN"));
  GW_ASSIGN_OR_RETURN(const char uplo, CharacterOf(call, "uplo", "LU"));
  CopyOperand(call, 0, 0);
  T* a = Data<T>(call.results[0]);
  RealOf<T>* w = Data<RealOf<T>>(call.results[1]);
  int32_t* info = Data<int32_t>(call.results[2]);
  for (int64_t i = 0; i < batch.size; ++i, a += int64_t{n} * n, w += n) {
    info[i] = syevd(LAPACK_COL_MAJOR, mode, uplo, n, a, Leading(n), w);
  }
  return absl::OkStatus();
}

// Eigenvectors of a real matrix come as real and imaginary columns; a conjugate pair shares two.
template <typename R>
void UnpackConjugatePairs(int n, const R* imaginary, const std::vector<R>& packed, std::complex<R>* vectors) {
  for (int j = 0; j < n; ++j) {
    const R* column = packed.data() + int64_t{j} * n;
    std::complex<R>* out = vectors + int64_t{j} * n;
    if (imaginary[j] == 0 || std::isnan(imaginary[j]) || j + 1 == n) {
      for (int i = 0; i < n; ++i) out[i] = column[i];
      continue;
    }
    for (int i = 0; i < n; ++i) {
      out[i] = {column[i], column[n + i]};
      out[n + i] = {column[i], -column[n + i]};
    }
    ++j;
  }
}

// Results: real and imaginary parts of the eigenvalues, left and right eigenvectors, info.
template <typename T, auto geev>
absl::Status RealEigen(const Call& call) {
  using C = std::complex<T>;
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call));
  const int n = batch.rows;
  GW_RETURN_IF_ERROR(
      CheckArrays(call, batch, {Of<T>({n, n})}, {Of<T>({n}), Of<T>({n}), Of<C>({n, n}), Of<C>({n, n}), Info()}));
  GW_ASSIGN_OR_RETURN(const char left, CharacterOf(call, "compute_left", "VN"));
  GW_ASSIGN_OR_RETURN(const char right, CharacterOf(call, "compute_right", "VN"));
  const int64_t size = int64_t{n} * n;
  std::vector<T> work(size), vl(left == 'V' ? size : 1), vr(right == 'V' ? size : 1);
  for (int64_t i = 0; i < batch.size; ++i) {
    T* real = Data<T>(call.results[0]) + i * n;
    T* imaginary = Data<T>(call.results[1]) + i * n;
    int32_t& info = Data<int32_t>(call.results[4])[i];
    std::copy_n(Data<T>(call.operands[0]) + i * size, size, work.data());
    info = kNotFinite;
    if (!unblocked::AllFinite(work.data(), size)) continue;
    info = geev(LAPACK_COL_MAJOR, left, right, n, work.data(), Leading(n), real, imaginary, vl.data(), Leading(n),
                vr.data(), Leading(n));
    if (info != 0) continue;
    if (left == 'V') UnpackConjugatePairs(n, imaginary, vl, Data<C>(call.results[2]) + i * size);
    if (right == 'V') UnpackConjugatePairs(n, imaginary, vr, Data<C>(call.results[3]) + i * size);
  }
  return absl::OkStatus();
}

// Results: eigenvalues, left and right eigenvectors, info.
template <typename T, auto geev>
absl::Status ComplexEigen(const Call& call) {
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call));
  const int n = batch.rows;
  GW_RETURN_IF_ERROR(CheckArrays(call, batch, {Of<T>({n, n})}, {Of<T>({n}), Of<T>({n, n}), Of<T>({n, n}), Info()}));
  GW_ASSIGN_OR_RETURN(const char left, CharacterOf(call, "compute_left", "VN"));
  GW_ASSIGN_OR_RETURN(const char right, CharacterOf(call, "compute_right", "VN"));
  const int64_t size = int64_t{n} * n;
  std::vector<T> work(size);
  for (int64_t i = 0; i < batch.size; ++i) {
    int32_t& info = Data<int32_t>(call.results[3])[i];
    std::copy_n(Data<T>(call.operands[0]) + i * size, size, work.data());
    info = kNotFinite;
    if (!unblocked::AllFinite(work.data(), size)) continue;
    info = geev(LAPACK_COL_MAJOR, left, right, n, work.data(), Leading(n), Data<T>(call.results[0]) + i * n,
                Data<T>(call.results[1]) + i * size, Leading(n), Data<T>(call.results[2]) + i * size, Leading(n));
  }
  return absl::OkStatus();
}

// Results: the Schur form, its vectors, real and imaginary parts of the eigenvalues, how many were selected, info.
template <typename T, auto gees>
absl::Status RealSchur(const Call& call) {
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call));
  const int n = batch.rows;
  GW_RETURN_IF_ERROR(CheckArrays(call, batch, {Of<T>({n, n})},
                                 {Of<T>({n, n}), Of<T>({n, n}), Of<T>({n}), Of<T>({n}), Info(), Info()}));
  GW_ASSIGN_OR_RETURN(const char mode, CharacterOf(call, "mode", "VN"));
  GW_RETURN_IF_ERROR(CharacterOf(call, "sort", "N").status());
  CopyOperand(call, 0, 0);
  for (int64_t i = 0; i < batch.size; ++i) {
    const int64_t matrix = i * n * n, vector = i * n;
    Data<int32_t>(call.results[5])[i] =
        gees(LAPACK_COL_MAJOR, mode, 'N', nullptr, n, Data<T>(call.results[0]) + matrix, Leading(n),
             Data<int32_t>(call.results[4]) + i, Data<T>(call.results[2]) + vector, Data<T>(call.results[3]) + vector,
             Data<T>(call.results[1]) + matrix, Leading(n));
  }
  return absl::OkStatus();
}

// Results: the Schur form, its vectors, eigenvalues, how many were selected, info.
template <typename T, auto gees>
absl::Status ComplexSchur(const Call& call) {
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call));
  const int n = batch.rows;
  GW_RETURN_IF_ERROR(
      CheckArrays(call, batch, {Of<T>({n, n})}, {Of<T>({n, n}), Of<T>({n, n}), Of<T>({n}), Info(), Info()}));
  GW_ASSIGN_OR_RETURN(const char mode, CharacterOf(call, "mode", "VN"));
  GW_RETURN_IF_ERROR(CharacterOf(call, "sort", "N").status());
  CopyOperand(call, 0, 0);
  for (int64_t i = 0; i < batch.size; ++i) {
    const int64_t matrix = i * n * n;
    Data<int32_t>(call.results[4])[i] =
        gees(LAPACK_COL_MAJOR, mode, 'N', nullptr, n, Data<T>(call.results[0]) + matrix, Leading(n),
             Data<int32_t>(call.results[3]) + i, Data<T>(call.results[2]) + i * n, Data<T>(call.results[1]) + matrix,
             Leading(n));
  }
  return absl::OkStatus();
}

// Results: Hessenberg form with the reflectors below it, tau, info. Rows and columns `low` to `high`, from 1.
template <typename T, auto gehrd>
absl::Status Hessenberg(const Call& call) {
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call));
  const int n = batch.rows, reflectors = std::max(0, n - 1);
  GW_RETURN_IF_ERROR(CheckArrays(call, batch, {Of<T>({n, n})}, {Of<T>({n, n}), Of<T>({reflectors}), Info()}));
  GW_ASSIGN_OR_RETURN(const int64_t low, NumberOf(call, "low"));
  GW_ASSIGN_OR_RETURN(const int64_t high, NumberOf(call, "high"));
  if (n > 0 && (low < 1 || low > high || high > n)) {
    return absl::InvalidArgumentError(absl::StrCat("rows ", low, " to ", high, " of a matrix of ", n));
  }
  CopyOperand(call, 0, 0);
  T* a = Data<T>(call.results[0]);
  T* tau = Data<T>(call.results[1]);
  int32_t* info = Data<int32_t>(call.results[2]);
  for (int64_t i = 0; i < batch.size; ++i, a += int64_t{n} * n, tau += reflectors) {
    info[i] = 0;
    if (n == 0) continue;
    if (unblocked::AllFinite(a, int64_t{n} * n)) {
      info[i] = gehrd(LAPACK_COL_MAJOR, n, static_cast<int>(low), static_cast<int>(high), a, Leading(n), tau);
    } else {
      unblocked::Hessenberg(n, static_cast<int>(low), static_cast<int>(high), a, tau);
    }
  }
  return absl::OkStatus();
}

// Results: the reflectors, diagonal, off-diagonal, tau, info.
template <typename T, auto sytrd>
absl::Status Tridiagonal(const Call& call) {
  using R = RealOf<T>;
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call));
  const int n = batch.rows, off = std::max(0, n - 1);
  GW_RETURN_IF_ERROR(
      CheckArrays(call, batch, {Of<T>({n, n})}, {Of<T>({n, n}), Of<R>({n}), Of<R>({off}), Of<T>({off}), Info()}));
  GW_ASSIGN_OR_RETURN(const char uplo, CharacterOf(call, "uplo", "LU"));
  CopyOperand(call, 0, 0);
  T* a = Data<T>(call.results[0]);
  R* diagonal = Data<R>(call.results[1]);
  R* off_diagonal = Data<R>(call.results[2]);
  T* tau = Data<T>(call.results[3]);
  int32_t* info = Data<int32_t>(call.results[4]);
  for (int64_t i = 0; i < batch.size; ++i, a += int64_t{n} * n, diagonal += n, off_diagonal += off, tau += off) {
    info[i] = 0;
    if (unblocked::AllFinite(a, int64_t{n} * n)) {
      info[i] = sytrd(LAPACK_COL_MAJOR, uplo, n, a, Leading(n), diagonal, off_diagonal, tau);
    } else {
      unblocked::Tridiagonal(uplo, n, a, diagonal, off_diagonal, tau);
    }
  }
  return absl::OkStatus();
}

}  // namespace

void AddEigenRoutines(std::vector<Routine>* routines) {
  GW_LAPACK_REAL(routines, syevd, SymmetricEigen);
  GW_LAPACK_COMPLEX(routines, heevd, SymmetricEigen);
  GW_LAPACK_REAL(routines, geev, RealEigen);
  GW_LAPACK_COMPLEX(routines, geev, ComplexEigen);
  GW_LAPACK_REAL(routines, gees, RealSchur);
  GW_LAPACK_COMPLEX(routines, gees, ComplexSchur);
  GW_LAPACK(routines, gehrd, Hessenberg);
  GW_LAPACK_REAL(routines, sytrd, Tridiagonal);
  GW_LAPACK_COMPLEX(routines, hetrd, Tridiagonal);
}

}  // namespace gangway::lapack

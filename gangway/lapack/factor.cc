// Cholesky, LU and QR factors, and products with QR's reflectors.
#include "gangway/lapack/call.h"
#include "gangway/lapack/unblocked.h"

namespace gangway::lapack {
namespace {

// Results: the factor in the half `uplo` names (the other half is kept), info.
template <typename T, auto potrf>
absl::Status Cholesky(const Call& call) {
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call));
  const int n = batch.rows;
  GW_RETURN_IF_ERROR(CheckArrays(call, batch, {Of<T>({n, n})}, {Of<T>({n, n}), Info()}));
  GW_ASSIGN_OR_RETURN(const char uplo, CharacterOf(call, "uplo", "LU"));
  CopyOperand(call, 0, 0);
  T* a = Data<T>(call.results[0]);
  int32_t* info = Data<int32_t>(call.results[1]);
  for (int64_t i = 0; i < batch.size; ++i, a += int64_t{n} * n) {
    info[i] = unblocked::AllFinite(a, int64_t{n} * n) ? potrf(LAPACK_COL_MAJOR, uplo, n, a, Leading(n))
                                                      : unblocked::Cholesky(uplo, n, a);
  }
  return absl::OkStatus();
}

// Results: L and U in one, pivots (the row exchanged with row i, from 1), info.
template <typename T, auto getrf>
absl::Status Lu(const Call& call) {
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call));
  const int m = batch.rows, n = batch.columns;
  GW_RETURN_IF_ERROR(CheckArrays(call, batch, {Of<T>({m, n})}, {Of<T>({m, n}), Of<int32_t>({batch.least()}), Info()}));
  CopyOperand(call, 0, 0);
  T* a = Data<T>(call.results[0]);
  int32_t* pivots = Data<int32_t>(call.results[1]);
  int32_t* info = Data<int32_t>(call.results[2]);
  for (int64_t i = 0; i < batch.size; ++i, a += int64_t{m} * n, pivots += batch.least()) {
    info[i] = unblocked::AllFinite(a, int64_t{m} * n) ? getrf(LAPACK_COL_MAJOR, m, n, a, Leading(m), pivots)
                                                      : unblocked::Lu(m, n, a, pivots);
  }
  return absl::OkStatus();
}

// Results: R with the reflectors below it, their factors tau.
template <typename T, auto geqrf>
absl::Status Qr(const Call& call) {
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call));
  const int m = batch.rows, n = batch.columns;
  GW_RETURN_IF_ERROR(CheckArrays(call, batch, {Of<T>({m, n})}, {Of<T>({m, n}), Of<T>({batch.least()})}));
  CopyOperand(call, 0, 0);
  T* a = Data<T>(call.results[0]);
  T* tau = Data<T>(call.results[1]);
  for (int64_t i = 0; i < batch.size; ++i, a += int64_t{m} * n, tau += batch.least()) {
    if (unblocked::AllFinite(a, int64_t{m} * n)) {
      geqrf(LAPACK_COL_MAJOR, m, n, a, Leading(m), tau);
    } else {
      unblocked::Qr(m, n, a, tau);
    }
  }
  return absl::OkStatus();
}

// With column pivoting. Operands: the matrix, columns to be moved first; results: R with reflectors, pivots, tau.
template <typename T, auto geqp3>
absl::Status PivotedQr(const Call& call) {
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call));
  const int m = batch.rows, n = batch.columns;
  GW_RETURN_IF_ERROR(CheckArrays(call, batch, {Of<T>({m, n}), Of<int32_t>({n})},
                                 {Of<T>({m, n}), Of<int32_t>({n}), Of<T>({batch.least()})}));
  CopyOperand(call, 0, 0);
  CopyOperand(call, 1, 1);
  T* a = Data<T>(call.results[0]);
  int32_t* pivots = Data<int32_t>(call.results[1]);
  T* tau = Data<T>(call.results[2]);
  for (int64_t i = 0; i < batch.size; ++i, a += int64_t{m} * n, pivots += n, tau += batch.least()) {
    if (unblocked::AllFinite(a, int64_t{m} * n)) {
      geqp3(LAPACK_COL_MAJOR, m, n, a, Leading(m), pivots, tau);
    } else {
      unblocked::PivotedQr(m, n, a, pivots, tau);
    }
  }
  return absl::OkStatus();
}

// The orthogonal matrix of the reflectors in the operand's columns.
template <typename T, auto orgqr>
absl::Status Reflectors(const Call& call) {
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call));
  const int m = batch.rows, n = batch.columns;
  const int k = call.operands.size() < 2 || call.operands[1].dims.empty()
                    ? 0
                    : static_cast<int>(std::min<int64_t>(INT_MAX, call.operands[1].dims.back()));
  GW_RETURN_IF_ERROR(CheckArrays(call, batch, {Of<T>({m, n}), Of<T>({k})}, {Of<T>({m, n})}));
  if (n > m || k > n) {
    return absl::InvalidArgumentError(absl::StrCat(k, " reflectors for an orthogonal matrix of ", m, "x", n));
  }
  CopyOperand(call, 0, 0);
  T* a = Data<T>(call.results[0]);
  const T* tau = Data<T>(call.operands[1]);
  for (int64_t i = 0; i < batch.size; ++i, a += int64_t{m} * n, tau += k) {
    if (unblocked::AllFinite(a, int64_t{m} * n) && unblocked::AllFinite(tau, k)) {
      orgqr(LAPACK_COL_MAJOR, m, n, k, a, Leading(m), tau);
    } else {
      unblocked::Orthogonal(m, n, k, a, tau);
    }
  }
  return absl::OkStatus();
}

// Operands: reflectors in columns, tau, c. Result: op(Q) c, or c op(Q) unless `left`.
template <typename T, auto ormqr>
absl::Status MultiplyByReflectors(const Call& call) {
  GW_ASSIGN_OR_RETURN(const Batch product, BatchOf(call, 2));
  GW_ASSIGN_OR_RETURN(const Batch reflectors, BatchOf(call, 0));
  GW_ASSIGN_OR_RETURN(const int64_t left, NumberOf(call, "left"));
  GW_ASSIGN_OR_RETURN(const int64_t transpose, NumberOf(call, "transpose"));
  const int m = product.rows, n = product.columns, order = left != 0 ? m : n;
  const int k = std::min(reflectors.columns, order);
  GW_RETURN_IF_ERROR(
      CheckArrays(call, product, {Of<T>({order, reflectors.columns}), Of<T>({k}), Of<T>({m, n})}, {Of<T>({m, n})}));
  const char op = transpose == 0 ? 'N' : kIsComplex<T> ? 'C' : 'T';
  CopyOperand(call, 2, 0);
  const T* a = Data<T>(call.operands[0]);
  const T* tau = Data<T>(call.operands[1]);
  T* c = Data<T>(call.results[0]);
  for (int64_t i = 0; i < product.size; ++i) {
    ormqr(LAPACK_COL_MAJOR, left != 0 ? 'L' : 'R', op, m, n, k, a, Leading(order), tau, c, Leading(m));
    a += int64_t{order} * reflectors.columns;
    tau += k;
    c += int64_t{m} * n;
  }
  return absl::OkStatus();
}

}  // namespace

void AddFactorRoutines(std::vector<Routine>* routines) {
  GW_LAPACK(routines, potrf, Cholesky);
  GW_LAPACK(routines, getrf, Lu);
  GW_LAPACK(routines, geqrf, Qr);
  GW_LAPACK(routines, geqp3, PivotedQr);
  GW_LAPACK_REAL(routines, orgqr, Reflectors);
  GW_LAPACK_COMPLEX(routines, ungqr, Reflectors);
  GW_LAPACK_REAL(routines, ormqr, MultiplyByReflectors);
  GW_LAPACK_COMPLEX(routines, unmqr, MultiplyByReflectors);
}

}  // namespace gangway::lapack

// Singular values and vectors, by divide and conquer (gesdd) or QR iterations (gesvd).
#include "gangway/lapack/call.h"
#include "gangway/lapack/unblocked.h"

namespace gangway::lapack {
namespace {

bool IsSquare(const Call& call, size_t result) {
  if (call.results.size() <= result || call.results[result].dims.size() < 2) return false;
  const absl::Span<const int64_t> dims = call.results[result].dims;
  return dims[dims.size() - 2] == dims.back();
}

// Results: the matrix (destroyed), singular values, u, v^H, info. `mode`: all vectors, those with a value, none.
template <typename T, typename Decompose>
absl::Status ForEach(const Call& call, const Decompose& decompose) {
  GW_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call));
  GW_ASSIGN_OR_RETURN(const char mode, CharacterOf(call, "mode", "ASN"));
  const int m = batch.rows, n = batch.columns, k = batch.least();
  // Without vectors u and v^H are there all the same, in either extent.
  const bool square = mode == 'A' || (mode == 'N' && IsSquare(call, 2) && IsSquare(call, 3));
  const int columns = square ? m : k, rows = square ? n : k;
  GW_RETURN_IF_ERROR(CheckArrays(call, batch, {Of<T>({m, n})},
                                 {Of<T>({m, n}), Of<RealOf<T>>({k}), Of<T>({m, columns}), Of<T>({rows, n}), Info()}));
  CopyOperand(call, 0, 0);
  T* a = Data<T>(call.results[0]);
  RealOf<T>* s = Data<RealOf<T>>(call.results[1]);
  T* u = Data<T>(call.results[2]);
  T* vt = Data<T>(call.results[3]);
  int32_t* info = Data<int32_t>(call.results[4]);
  for (int64_t i = 0; i < batch.size; ++i) {
    const bool finite = unblocked::AllFinite(a, int64_t{m} * n);
    info[i] = finite ? decompose(mode, m, n, a, s, u, vt, Leading(rows)) : kNotFinite;
    a += int64_t{m} * n;
    s += k;
    u += int64_t{m} * columns;
    vt += int64_t{rows} * n;
  }
  return absl::OkStatus();
}

template <typename T, auto gesdd>
absl::Status DivideAndConquer(const Call& call) {
  return ForEach<T>(call, [](char mode, int m, int n, T* a, RealOf<T>* s, T* u, T* vt, int leading_vt) {
    return gesdd(LAPACK_COL_MAJOR, mode, m, n, a, Leading(m), s, u, Leading(m), vt, leading_vt);
  });
}

template <typename T, auto gesvd>
absl::Status QrIterations(const Call& call) {
  return ForEach<T>(call, [](char mode, int m, int n, T* a, RealOf<T>* s, T* u, T* vt, int leading_vt) {
    std::vector<RealOf<T>> unconverged(std::max(1, std::min(m, n)));
    return gesvd(LAPACK_COL_MAJOR, mode, mode, m, n, a, Leading(m), s, u, Leading(m), vt, leading_vt,
                 unconverged.data());
  });
}

}  // namespace

void AddSingularValueRoutines(std::vector<Routine>* routines) {
  GW_LAPACK(routines, gesdd, DivideAndConquer);
  GW_LAPACK(routines, gesvd, QrIterations);
}

}  // namespace gangway::lapack

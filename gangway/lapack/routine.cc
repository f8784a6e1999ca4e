#include "gangway/lapack/routine.h"

#include "gangway/lapack/call.h"

// OpenBLAS's own; its header cblas.h says the same.
extern "C" void openblas_set_num_threads(int threads);

namespace gangway::lapack {
namespace {

std::vector<Routine> MakeRoutines() {
  // JAX gives NaN in, NaN out; LAPACKE would refuse them instead.
  LAPACKE_set_nancheck(0);
  std::vector<Routine> routines;
  AddFactorRoutines(&routines);
  AddEigenRoutines(&routines);
  AddSingularValueRoutines(&routines);
  AddSolveRoutines(&routines);
  AddPerturbedRoutines(&routines);
  AddSparseRoutines(&routines);
  return routines;
}

}  // namespace

const std::vector<Routine>& Routines() {
  static const auto* routines = new std::vector<Routine>(MakeRoutines());
  return *routines;
}

const Routine* FindRoutine(absl::string_view target) {
  for (const Routine& routine : Routines()) {
    if (routine.target == target) return &routine;
  }
  return nullptr;
}

void SetThreads(int threads) { openblas_set_num_threads(std::max(1, threads)); }

}  // namespace gangway::lapack

// Linear algebra that JAX calls by name: LAPACK's routines and two kernels of jaxlib.
// Signatures: jax/_src/lax/linalg.py and jax/experimental/sparse/_lowerings.py of jax 0.10.2.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gangway/tensor/dtype.h"

namespace gangway::lapack {

// An operand or result in host memory. Arrays of the call's highest rank are batches of column-major matrices, the
// batch row-major; others are row-major.
struct Array {
  DType dtype = DType::kInvalid;
  absl::Span<const int64_t> dims;
  void* data = nullptr;  // of an operand: only read, unless it is also the data of a result
};

// Numbers, flags and characters by name, e.g. {"uplo", 'L'}.
using Attributes = std::vector<std::pair<absl::string_view, int64_t>>;

struct Call {
  std::vector<Array> operands, results;
  Attributes attributes;
};

// INVALID_ARGUMENT when the call is not what the routine takes; nothing is written then. Thread-safe.
using Function = absl::Status (*)(const Call& call);

struct Routine {
  std::string target;  // "lapack_sgesdd_ffi"
  Function run = nullptr;
};

// All routines, always in the same order.
const std::vector<Routine>& Routines();
// Null when there is none of that name.
const Routine* FindRoutine(absl::string_view target);

// How many threads one call may use, for the whole process.
void SetThreads(int threads);

}  // namespace gangway::lapack

// LAPACK calls, which JAX emits for CPU devices, as operations that every XLA plugin can do itself.
#pragma once

#include "gangway/hlo/module.h"

namespace gangway::compile {

// Cholesky, LU, triangular solves, QR and symmetric eigenvalues of all element types; the library's status result is 0
// (a failed factorization is NaN instead, which is what JAX makes of a status). Others, such as lapack_sgesdd_ffi,
// stay: a plugin without LAPACK refuses them by name.
void ReplaceLapackCalls(hlo::Module* module);

}  // namespace gangway::compile

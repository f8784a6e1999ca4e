// How JAX names LAPACK's routines and says what they are to do: "lapack_strsm_ffi" with `{side = 76 : ui8, ...}`.
#pragma once

#include "absl/strings/string_view.h"

namespace gangway::hlo {

// "potrf" of "lapack_spotrf_ffi"; empty for other targets.
absl::string_view LapackRoutine(absl::string_view target);

// A character attribute in a call's backend_config, e.g. 'L' of `{uplo = 76 : ui8}`; 0 when absent.
char LapackCharacter(absl::string_view config, absl::string_view name);

}  // namespace gangway::hlo

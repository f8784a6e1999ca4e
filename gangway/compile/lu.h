// LU factorization as a loop of plain operations, for plugins without LAPACK.
#pragma once

#include "gangway/hlo/builder.h"

namespace gangway::compile {

struct LuResult {
  hlo::Instruction* lu = nullptr;  // L below the diagonal (ones not stored), U on and above it
  hlo::Instruction* pivots =
      nullptr;  // s32[batch..., min(m, n)]: row i was exchanged with row pivots[i], counted from 1
};

// Right-looking elimination with partial pivoting of a[batch..., m, n], as LAPACK's getrf: a column whose pivot is zero
// is left as it is.
LuResult EmitLu(hlo::Builder* builder, hlo::Instruction* a);

}  // namespace gangway::compile

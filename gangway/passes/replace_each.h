// Rewrites that look at one instruction at a time.
#pragma once

#include "absl/functional/function_ref.h"
#include "gangway/hlo/builder.h"
#include "gangway/hlo/module.h"

namespace gangway::passes {

// Calls `replace` for every instruction of that opcode that was there before; true from it says that it replaced its
// uses. What is dead then goes. Whether anything changed.
bool ReplaceEach(hlo::Module& module, hlo::Opcode opcode,
                 absl::FunctionRef<bool(hlo::Instruction*, hlo::Builder&)> replace);

}  // namespace gangway::passes

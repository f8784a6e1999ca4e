// Tokens at the border of a program.
#pragma once

#include "gangway/hlo/module.h"

namespace gangway::compile {

// JAX passes an empty pred[0] for a token and asks nothing of one it gets; devices have no arrays of tokens. Each token
// parameter and result of the entry becomes such an array; inside, a token of its own stands where a parameter was
// used.
void ReplaceTokensAtBorders(hlo::Module* module);

}  // namespace gangway::compile

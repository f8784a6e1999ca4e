// Which attribute struct an opcode carries.
#pragma once

#include <cstddef>

#include "gangway/hlo/attributes.h"
#include "gangway/hlo/opcode.h"

namespace gangway::hlo {

// Index in the variant Attributes of the alternative that instructions of this opcode hold; 0 (monostate) for none.
size_t AttributeIndexOf(Opcode opcode);

}  // namespace gangway::hlo

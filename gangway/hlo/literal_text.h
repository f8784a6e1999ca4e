// Literals as HLO text writes them: 1.5, {1, 2}, { { 1, 2 }, { 3, 4 } }, (1, -2), ( 1, {2, 3} ).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "gangway/hlo/text_lexer.h"
#include "gangway/tensor/literal.h"

namespace gangway::hlo {

// Every element, floats with the digits that read back to the same bits.
std::string PrintLiteral(const Literal& literal);

// A literal of this shape (validated, at most 2^31 bytes) from the front of the lexer.
absl::StatusOr<Literal> ReadLiteral(const Shape& shape, TextLexer* lexer);

}  // namespace gangway::hlo

// Which attribute struct an opcode carries.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <variant>

#include "gangway/hlo/attributes.h"
#include "gangway/hlo/opcode.h"

namespace gangway::hlo {

template <typename T, size_t... I>
constexpr size_t IndexAmong(std::index_sequence<I...>) {
  size_t index = 0;
  ((std::is_same_v<T, std::variant_alternative_t<I, Attributes>> ? (index = I, 0) : 0), ...);
  return index;
}

// Index of an attribute struct in the variant Attributes.
template <typename T>
inline constexpr size_t kAttributeIndex = IndexAmong<T>(std::make_index_sequence<std::variant_size_v<Attributes>>());

// Index in the variant Attributes of the alternative that instructions of this opcode hold; 0 (monostate) for none.
size_t AttributeIndexOf(Opcode opcode);

}  // namespace gangway::hlo

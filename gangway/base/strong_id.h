// Integer ids that do not mix: StrongId<struct DeviceTag> is not a StrongId<struct ArrayTag>.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"

namespace gangway {

template <typename Tag, typename Int = int64_t>
class StrongId {
 public:
  using Value = Int;

  constexpr StrongId() = default;
  constexpr explicit StrongId(Int value) : value_(value) {}

  constexpr Int value() const { return value_; }
  friend constexpr auto operator<=>(StrongId, StrongId) = default;

  template <typename H>
  friend H AbslHashValue(H h, StrongId id) {
    return H::combine(std::move(h), id.value_);
  }
  std::string ToString() const { return absl::StrCat(value_); }

 private:
  Int value_ = Int{};
};

}  // namespace gangway

template <typename Tag, typename Int>
struct std::hash<gangway::StrongId<Tag, Int>> {
  size_t operator()(gangway::StrongId<Tag, Int> id) const { return std::hash<Int>()(id.value()); }
};

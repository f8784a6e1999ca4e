// Entries: the attribute and type tables of a file, each entry decoded when first asked for.
//
// Borrows the container. Not thread-safe (it memoises). Errors are InvalidArgument with the byte offset.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/stablehlo/bytecode/attribute.h"
#include "gangway/stablehlo/bytecode/container.h"
#include "gangway/stablehlo/bytecode/type.h"

namespace gangway::bytecode {

class Entries {
 public:
  explicit Entries(const Container& container);
  Entries(const Entries&) = delete;
  Entries& operator=(const Entries&) = delete;

  const Container& container() const { return container_; }

  // The pointers live as long as this object.
  absl::StatusOr<const Attribute*> attribute(AttributeId id) const;
  absl::StatusOr<const Type*> type(TypeId id) const;

  // The attribute as a `T`; InvalidArgument "expected a string, found an array" when it is something else.
  template <typename T>
  absl::StatusOr<const T*> attribute_as(AttributeId id) const;

  // The text of a builtin or vhlo string attribute.
  absl::StatusOr<absl::string_view> string(AttributeId id) const;
  // The scalar a type entry stands for.
  absl::StatusOr<Scalar> scalar(TypeId id) const;

 private:
  const Container& container_;
  mutable std::vector<std::unique_ptr<const Attribute>> attributes_;
  mutable std::vector<std::unique_ptr<const Type>> types_;
};

template <typename T>
absl::StatusOr<const T*> Entries::attribute_as(AttributeId id) const {
  absl::StatusOr<const Attribute*> found = attribute(id);
  if (!found.ok()) return found.status();
  if (const T* value = std::get_if<T>(*found)) return value;
  return absl::InvalidArgumentError("expected " + AttributeKind(Attribute(T{})) + ", found " + AttributeKind(**found));
}

}  // namespace gangway::bytecode

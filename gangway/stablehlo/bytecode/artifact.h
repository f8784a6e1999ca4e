// Artifact: a parsed MLIR bytecode file: its op tree, and its attributes and types on demand.
//
// Borrows the file's bytes for as long as it lives. Not thread-safe.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/stablehlo/bytecode/container.h"
#include "gangway/stablehlo/bytecode/entries.h"
#include "gangway/stablehlo/bytecode/operation.h"

namespace gangway::bytecode {

class Artifact {
 public:
  // Errors: InvalidArgument with the byte offset for malformed files, Unimplemented for a newer bytecode version.
  static absl::StatusOr<std::unique_ptr<Artifact>> Parse(absl::string_view file);

  const Container& container() const { return container_; }
  const Entries& entries() const { return entries_; }
  const OpTree& tree() const { return tree_; }
  TypeId value_type(ValueId value) const { return tree_.value_types[value.value()]; }

 private:
  explicit Artifact(Container container) : container_(std::move(container)), entries_(container_) {}

  const Container container_;
  const Entries entries_;
  OpTree tree_;
};

}  // namespace gangway::bytecode

// The whole program as completion left it, by the names of its instructions: what the records of compilation refer to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "gangway/explain/explain.h"
#include "gangway/propagate/propagate.h"

namespace gangway::explain {

class Program {
 public:
  // Borrows both.
  Program(const hlo::Module& completed, const propagate::PropagationReport& report);

  const hlo::Module& module() const { return module_; }
  const hlo::Instruction* Find(absl::string_view name) const;  // null when there is none
  Place PlaceOf(absl::string_view instruction) const;
  // For every split dimension: how its axes got there. An annotated one has only its own place.
  std::vector<Path> PathsOf(absl::string_view instruction, const Sharding& sharding) const;

 private:
  using Leaf = std::pair<std::string, int64_t>;  // of an instruction
  Path PathOf(Leaf leaf, int64_t dim, std::string axes) const;
  Place PlaceOfLeaf(const Leaf& leaf) const;

  const hlo::Module& module_;
  absl::flat_hash_map<std::string, const hlo::Instruction*> by_name_;
  absl::flat_hash_map<Leaf, Leaf> first_;              // of those that share a value: the one whose origins are known
  absl::flat_hash_map<Leaf, std::string> array_like_;  // an array that has the value of a tuple's leaf
  // By leaf and axis: a value uses an axis once, so these two say which dimension.
  absl::flat_hash_map<std::pair<Leaf, std::string>, const propagate::Origin*> origins_;
};

}  // namespace gangway::explain

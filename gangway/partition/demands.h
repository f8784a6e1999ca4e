// Which versions of which values the instructions of a program asked for. Localizing goes forward and chooses for one
// instruction at a time; what a first run asked for tells a second one which reshards others will make anyway.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "gangway/hlo/instruction.h"
#include "gangway/mesh/sharding.h"
#include "gangway/partition/value.h"

namespace gangway::partition {

// Of one source module, to which it refers. Values without a key, made on the way to others, are nobody else's: what is
// asked of them is not kept.
class Demands {
 public:
  void Add(const ValueKey& value, const Sharding& sharding, const hlo::Instruction* by);
  // Distinct ones of a value, in the order they came.
  std::vector<Sharding> Of(const ValueKey& value) const;
  // Somebody else asked for it.
  bool ByOthers(const ValueKey& value, const Sharding& sharding, const hlo::Instruction* by) const;

 private:
  struct Demand {
    Sharding sharding;
    const hlo::Instruction* by;
  };
  absl::flat_hash_map<ValueKey, std::vector<Demand>> demands_;
};

}  // namespace gangway::partition

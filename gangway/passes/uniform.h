// Which values of a per-device program are the same on all devices.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "gangway/hlo/module.h"

namespace gangway::passes {

// Proved from what is the same everywhere: constants, scalar parameters of the program (nothing splits a scalar),
// results of collectives whose one group is all devices, and whatever is computed from such values alone. Reads the
// module once; changes made later are not seen.
class UniformValues {
 public:
  explicit UniformValues(const hlo::Module& module);

  // Every leaf of the value is the same on all devices. False where that is not proved.
  bool Contains(const hlo::Instruction* instruction) const;

 private:
  using Flags = std::vector<bool>;  // one per leaf of a value; true: may differ

  void Visit(const hlo::Computation& computation);
  Flags DiffersOf(const hlo::Instruction& instruction);
  Flags OperandFlags(const hlo::Instruction& instruction) const;
  Flags ControlFlags(const hlo::Instruction& instruction);
  bool JoinsAllDevices(const hlo::Instruction& collective) const;
  // Adds flags to the parameter of a called computation.
  void Enter(const hlo::Computation* callee, int64_t number, Flags flags);
  bool Differs(const hlo::Instruction* value) const;

  const hlo::Module& module_;
  absl::flat_hash_map<const hlo::Instruction*, Flags> differs_;
  bool changed_ = false;
};

}  // namespace gangway::passes

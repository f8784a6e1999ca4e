// Translation: one artifact being turned into a module: its values, functions, meshes and constants.
//
// Used by the op converters (op_table.h) through OpContext. Functions that are called are inlined where they are
// called; regions become computations. Lives for the duration of ReadPortableArtifact.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/hlo/module.h"
#include "gangway/stablehlo/bytecode/artifact.h"
#include "gangway/stablehlo/elements.h"
#include "gangway/stablehlo/sdy_shardings.h"

namespace gangway::stablehlo {

// Mesh axes that the program handles itself (inside a shard_map): shapes are already local along them.
struct ManualAxes {
  MeshRef mesh;  // null when there are none
  AxisList axes;
  bool empty() const { return axes.empty(); }
};

// Where instructions go, and what surrounds them.
struct Scope {
  hlo::Computation* computation = nullptr;
  ManualAxes manual;
  std::string op_name_prefix;  // of the calls inlined around
  bool pure = false;           // the computation of a reduction, sort...: sharding annotations have no place there
  int depth = 0;               // of nested blocks and calls
};

// Values from outside a region that are used inside, in order of first use. Constants are apart: they are repeated
// inside instead of handed in.
struct Captures {
  std::vector<bytecode::ValueId> values;
  std::vector<bytecode::ValueId> constants;
};

class Translation {
 public:
  Translation(const bytecode::Artifact& artifact, hlo::Module* module);

  // The whole program, without verification.
  absl::Status Run();

  const bytecode::Artifact& artifact() const { return artifact_; }
  const bytecode::Entries& entries() const { return artifact_.entries(); }
  hlo::Module& module() { return module_; }
  SdyShardings& meshes() { return meshes_; }
  // The mesh in which shardings without one of their own are expressed; null on one device.
  const MeshRef& default_mesh() const { return default_mesh_; }
  int64_t num_devices() const;

  hlo::Instruction* Find(bytecode::ValueId value) const { return values_[value.value()]; }
  void Define(bytecode::ValueId value, hlo::Instruction* instruction) { values_[value.value()] = instruction; }
  absl::StatusOr<Shape> ShapeOf(bytecode::ValueId value) const;
  // Some operation takes the value; casts do not count that lead nowhere.
  bool IsUsed(bytecode::ValueId value) const { return used_[value.value()]; }

  // Converts the operations of the block; the block's arguments must be defined. Returns what its terminator returns.
  absl::StatusOr<std::vector<hlo::Instruction*>> ConvertBlock(const bytecode::Block& block, const Scope& scope);
  // The single block of a region.
  static absl::StatusOr<const bytecode::Block*> SingleBlock(const bytecode::Region& region);
  // By all regions of the operation, and by one.
  const Captures& CapturesOf(const bytecode::Operation& op);
  const Captures& CapturesOf(const bytecode::Operation& op, size_t region);
  // Emits a constant operation's value.
  absl::StatusOr<hlo::Instruction*> EmitConstant(const bytecode::Operation& op, const Scope& scope);
  const bytecode::Operation* ConstantDefining(bytecode::ValueId value) const;

  // The function's body as a computation with one parameter per argument.
  absl::StatusOr<hlo::Computation*> ConvertFunction(absl::string_view name, const Scope& scope);
  // The function's body in place, its arguments being `arguments`; the results it returns.
  absl::StatusOr<std::vector<hlo::Instruction*>> Inline(absl::string_view name,
                                                        const std::vector<hlo::Instruction*>& arguments,
                                                        const Scope& scope);

  // Every instruction made is paid for, so that a small file cannot make a module of unbounded size by calls or
  // captures.
  void Pay(const Shape& shape) { spent_ += 1 + LeafCount(shape); }

 private:
  Captures CapturesBy(absl::Span<const bytecode::Region> regions, uint32_t first_inner_value) const;
  absl::Status ReadModuleAttributes(const OpView& module);
  absl::Status CollectTopLevel(const bytecode::Block& block);
  void CollectConstantsAndUses(const bytecode::Operation& op);
  absl::Status CheckBudget() const;
  absl::StatusOr<const bytecode::Operation*> FindFunction(absl::string_view name) const;
  absl::StatusOr<std::string> EntryName() const;

  const bytecode::Artifact& artifact_;
  hlo::Module& module_;
  SdyShardings meshes_;
  MeshRef default_mesh_;
  std::vector<hlo::Instruction*> values_;  // by ValueId
  std::vector<bool> used_;                 // by ValueId
  absl::flat_hash_map<std::string, const bytecode::Operation*> functions_;
  absl::flat_hash_set<const bytecode::Operation*> active_calls_;
  absl::flat_hash_map<bytecode::ValueId, const bytecode::Operation*> constants_;
  absl::flat_hash_map<bytecode::AttributeId, std::shared_ptr<const DenseLiteral>> literals_;
  absl::flat_hash_map<const bytecode::Operation*, std::unique_ptr<Captures>> captures_;
  absl::flat_hash_map<const bytecode::Region*, std::unique_ptr<Captures>> captures_of_regions_;
  int64_t spent_ = 0;
  int64_t budget_ = 0;
};

// Gives values another meaning while a region is converted.
class ValueOverlay {
 public:
  explicit ValueOverlay(Translation& program) : program_(program) {}
  ~ValueOverlay();
  ValueOverlay(const ValueOverlay&) = delete;
  void Set(bytecode::ValueId value, hlo::Instruction* instruction);

 private:
  Translation& program_;
  std::vector<std::pair<bytecode::ValueId, hlo::Instruction*>> saved_;
};

}  // namespace gangway::stablehlo

// What a localizer works with: the values of one computation and the means to reshard and emit.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "gangway/hlo/builder.h"
#include "gangway/hlo/module.h"
#include "gangway/partition/collectives.h"
#include "gangway/partition/coordinates.h"
#include "gangway/partition/demands.h"
#include "gangway/partition/partition.h"
#include "gangway/partition/reason.h"
#include "gangway/partition/reshard_plan.h"
#include "gangway/partition/value.h"
#include "gangway/passes/loop_memory.h"

namespace gangway::partition {

// Shared by all computations of one module.
struct ModuleState {
  const hlo::Module* source = nullptr;
  hlo::Module* target = nullptr;
  MeshRef mesh;  // where shardings are expressed
  ReshardPlanner* planner = nullptr;
  int64_t next_channel = 1;
  int nesting = 0;  // computations being localized now, each called by the one before
  std::vector<Fallback> fallbacks;
  std::vector<Inspection> inspections;
  PartitionOptions options;
  Demands demands;
  std::vector<Reason> reasons;
  int64_t gathered_budget = passes::kMaxGrownBytes;  // of what loops read of arrays that are gathered before them
  // Loops of the source by body; filled when first asked for.
  std::optional<absl::flat_hash_map<const hlo::Computation*, const hlo::Instruction*>> loops;
  absl::flat_hash_map<const hlo::Computation*, hlo::Computation*> cloned;  // called computations that stay as they are
};

// One computation being localized. Values are set once, in the order of the source. Not thread-safe.
class Context {
 public:
  Context(ModuleState* module, hlo::Computation* target);

  ModuleState& module() { return *module_; }
  const MeshRef& mesh() const { return module_->mesh; }
  hlo::Builder& builder() { return builder_; }
  Coordinates& coordinates() { return coordinates_; }
  CollectiveBuilder& collectives() { return collectives_; }
  hlo::Computation* target() { return target_; }

  // What is asked for and added from now on is for this instruction of the source. The result of a computation is asked
  // for by nobody: `demands` is then false.
  void Begin(const hlo::Instruction& instruction, bool demands = true);

  // --- values of source instructions -------------------------------------------------------------------------------
  const LocalValues& Values(const hlo::Instruction& instruction) const;
  bool Has(const hlo::Instruction& instruction) const { return values_.contains(&instruction); }
  const LocalValue& Value(const hlo::Instruction& instruction) const { return Values(instruction).front(); }
  void Set(const hlo::Instruction& instruction, LocalValues values);
  void Set(const hlo::Instruction& instruction, hlo::Instruction* local, Sharding sharding);
  // LocalValue::unchanged of its leaves.
  void MarkUnchanged(const hlo::Instruction& parameter, const std::vector<bool>& leaves);

  // The sharding completion chose for a leaf, expressed over the module's mesh; replicated where it chose none.
  Sharding Wanted(const hlo::Instruction& instruction, int64_t leaf = 0) const;
  Sharding Replicated(int64_t rank) const { return Sharding::Replicated(mesh(), rank).Closed(); }

  // --- resharding --------------------------------------------------------------------------------------------------
  // The value under `to`; made once and from the nearest version that exists.
  absl::StatusOr<hlo::Instruction*> Reshard(const LocalValue& value, const Sharding& to);
  // The shardings in which it exists so far, its own first.
  std::vector<Sharding> VersionShardings(const LocalValue& value);
  // From now on `alias`, which is `of` in another sharding, can be had from any version of `of`, and the other way
  // round.
  void Alias(const LocalValue& alias, const LocalValue& of);
  // Operations that make the value again from what every device has; 0 when it cannot be.
  int StepsToRemake(const LocalValue& value) const;
  // What that would cost now, in units of ReshardPlan::Cost.
  double ReshardCost(const LocalValue& value, const Sharding& to);
  absl::StatusOr<hlo::Instruction*> Replicate(const LocalValue& value) {
    return Reshard(value, WithManual(Replicated(value.global.rank()), value.sharding.manual));
  }

  // --- pieces ------------------------------------------------------------------------------------------------------
  // The shard with `fill` (scalar) in the padding of the given dimensions.
  hlo::Instruction* MaskPadding(hlo::Instruction* local, const Sharding& sharding, const Shape& global,
                                const std::vector<int64_t>& dims, hlo::Instruction* fill);
  // pred of the shard's shape: its elements that lie in begin .. end of a split dimension of the whole array.
  hlo::Instruction* WithinAlong(int64_t dim, int64_t begin, int64_t end, const Sharding& sharding, const Shape& global,
                                const Shape& shard);
  // s32[]: where the device's shard of a dimension begins in the whole array.
  hlo::Instruction* ShardOffset(const Sharding& sharding, const Shape& global, int64_t dim);
  // The loop of the source whose body this is; null when it is none's, or several loops'.
  const hlo::Instruction* LoopOf(const hlo::Computation& body);
  // A called computation copied as it is (reducers, comparators).
  hlo::Computation* CloneCallee(const hlo::Computation* callee);
  std::vector<hlo::Computation*> CloneCallees(const hlo::Instruction& instruction);
  // The source instruction copied with local operands and shape.
  hlo::Instruction* Clone(const hlo::Instruction& of, Shape shape, std::vector<hlo::Instruction*> operands);
  void ReportFallback(const hlo::Instruction& instruction, std::string reason);

  // --- tuples ------------------------------------------------------------------------------------------------------
  hlo::Instruction* Pack(const Shape& shape, const std::vector<hlo::Instruction*>& leaves);
  std::vector<hlo::Instruction*> Unpack(hlo::Instruction* value);

  static Sharding WithManual(Sharding sharding, AxisList manual) {
    sharding.manual = std::move(manual);
    return sharding;
  }

 private:
  struct Version {
    Sharding sharding;
    hlo::Instruction* local;
  };
  using Versions = std::vector<Version>;
  using VersionKey = std::pair<const hlo::Instruction*, DimVector>;
  Versions& VersionsOf(const LocalValue& value) { return *SharedVersionsOf(value); }
  const std::shared_ptr<Versions>& SharedVersionsOf(const LocalValue& value);
  // What it costs to have the value under `to` by making it again from its operands, a broadcast from what it spreads
  // wherever that lies; infinite for other values.
  double RemakingCost(const LocalValue& value, const Sharding& to);
  // The instruction makes the same in every step of the loop.
  bool IsUnchanged(const hlo::Instruction& instruction) const;
  // By how much a reshard that leaves the loop makes its state larger.
  int64_t GrowthOfLoop(const LocalValue& value, const Sharding& to) const;
  // How a version of the value gets to another sharding; without a plan, why none can.
  struct Way {
    const ReshardPlan* plan = nullptr;
    hlo::Instruction* source = nullptr;
    absl::Status failure;
  };
  Way NearestWay(const LocalValue& value, const Sharding& to);
  // A value that is cheap to make again, under `to`.
  absl::StatusOr<hlo::Instruction*> RemadeAs(const LocalValue& value, const Sharding& to);
  hlo::OpMetadata CurrentMetadata() const;
  Reason ReasonOf(const LocalValue& value, const Sharding& to, const ReshardPlan& plan);

  ModuleState* module_;
  hlo::Computation* target_;
  const hlo::Instruction* current_ = nullptr;  // of the source, being localized
  const hlo::Instruction* demanding_ = nullptr;
  size_t current_reason_ = 0;
  hlo::Builder builder_;
  Coordinates coordinates_;
  CollectiveBuilder collectives_;
  absl::flat_hash_map<const hlo::Instruction*, LocalValues> values_;
  absl::flat_hash_map<const hlo::Instruction*, int> steps_to_remake_;
  // By the first version's instruction; the shape too, because one instruction stands for a whole array and, inside a
  // manual region, for one part of it.
  absl::flat_hash_map<VersionKey, std::shared_ptr<Versions>> versions_;
};

// Axes that are manual in one sharding only matter when the other one splits by them; otherwise the manual set of
// `like` is taken over. nullopt when they clash.
std::optional<Sharding> AdoptManual(const Sharding& sharding, const AxisList& manual);

// A source computation localized into a new one of the target: parameters lie as `parameters` says (one per leaf of all
// parameters), the result is brought to `results`. With `results` null the root's own wanted shardings are used.
// `unchanged` says so of the leaves of the parameters; empty: of none.
absl::StatusOr<hlo::Computation*> LocalizeComputation(ModuleState* module, const hlo::Computation& source,
                                                      const Shardings& parameters, const Shardings* results,
                                                      Shardings* final_results = nullptr,
                                                      const std::vector<bool>& unchanged = {});

}  // namespace gangway::partition

#include "gangway/compile/plan_search.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "gangway/base/status.h"
#include "gangway/compile/plan_weights.h"
#include "gangway/cost/module_cost.h"
#include "gangway/cost/peak_memory.h"
#include "gangway/partition/reshard_plan.h"
#include "gangway/passes/pipeline.h"

namespace gangway::compile {
namespace {

using propagate::IndexClass;
using propagate::Placement;

// How much more memory than the first try's another may take: a little, or some that saves many times its size.
constexpr double kMemorySlack = 1.1, kMostMemory = 2;
constexpr double kSavedPerByte = 4;
constexpr size_t kMaxIndices = 4;     // placed, one at a time
constexpr double kLeastShare = 0.05;  // of the flops that an index worth placing takes part in
constexpr int kRounds = 2;            // placements on top of each other

struct Try {
  PlannedProgram program;
  double cost = 0;
  int64_t peak_bytes = 0;
  propagate::PropagationReport report;
  bool plain = false;  // how it was partitioned first
};

// What is measured is what is left after cleaning: a collective that leaves its loop is done once.
absl::Status Clean(hlo::Module* module) {
  passes::Pipeline pipeline;
  pipeline.Add("cleanup", passes::UntilStable({passes::RunSimplify, passes::RunCse, passes::RunSimplifyWhile,
                                               passes::RunReduceAfterLoop, passes::RunDce},
                                              2));
  pipeline.Add("hoist-collectives", passes::RunHoistCollectives);
  return pipeline.Run(*module).status();
}

class PlanSearch {
 public:
  PlanSearch(std::unique_ptr<hlo::Module> module, const PlanSearchOptions& options)
      : original_(std::move(module)), options_(options), size_(original_->InstructionCount()) {}

  absl::StatusOr<PlannedProgram> Run() {
    GW_ASSIGN_OR_RETURN(Try best, Complete({}, options_.propagation));
    first_peak_ = static_cast<double>(best.peak_bytes);
    GW_RETURN_IF_ERROR(Refine(&best));
    GW_RETURN_IF_ERROR(TryEmptyShards(&best));
    for (int round = 0; round < kRounds; ++round) {
      std::optional<Try> better;
      for (const Placement& placement : Candidates(best)) {
        if (!InBudget()) break;
        std::vector<Placement> placements = best.program.placements;
        placements.push_back(placement);
        GW_ASSIGN_OR_RETURN(Try next, Complete(std::move(placements), PinnedOptions()));
        // What takes much memory may take less once it is known what is asked for.
        if (!HasMemory(next, best) && next.cost < best.cost) GW_RETURN_IF_ERROR(Refine(&next));
        if (!HasMemory(next, best)) continue;
        if (next.cost < (better ? better->cost : best.cost)) better = std::move(next);
      }
      if (!better) break;
      GW_RETURN_IF_ERROR(Refine(&*better));
      best = *std::move(better);
    }
    best.program.report = std::move(best.report);
    return std::move(best.program);
  }

 private:
  double CostOf(const hlo::Module& per_device) {
    const cost::ModuleCost cost = cost::CostOf(per_device);
    if (!first_flops_) first_flops_ = cost.matmul_flops;
    const double beside = cost.matmul_flops - *first_flops_;
    double total = cost.CollectiveBytes() + kBytesPerTouchedByte * cost.bytes_accessed;
    total += beside * (beside > 0 ? kBytesPerFlop : kBytesPerSavedFlop);
    for (const auto& [name, collective] : cost.collectives) total += kBytesPerCollective * collective.executed;
    return total;
  }

  // May be taken instead of `than`.
  bool HasMemory(const Try& next, const Try& than) const {
    const double peak = static_cast<double>(next.peak_bytes);
    if (peak <= first_peak_ * kMemorySlack) return true;
    return peak <= first_peak_ * kMostMemory && than.cost - next.cost >= kSavedPerByte * (peak - first_peak_);
  }

  bool InBudget() const { return spent_ + size_ <= options_.budget; }

  // Dimensions of few elements split, if that is better.
  absl::Status TryEmptyShards(Try* best) {
    if (!best->report.would_be_empty || !InBudget()) return absl::OkStatus();
    empty_shards_ = true;
    GW_ASSIGN_OR_RETURN(Try split, Complete(best->program.placements, PinnedOptions()));
    GW_RETURN_IF_ERROR(Refine(&split));
    empty_shards_ = split.cost < best->cost && HasMemory(split, *best);
    if (empty_shards_) *best = std::move(split);
    return absl::OkStatus();
  }

  absl::StatusOr<Try> Complete(std::vector<Placement> placements, propagate::PropagateOptions options) {
    Try made;
    made.program.whole = original_->Clone();
    made.program.placements = placements;
    options.placements = std::move(placements);
    if (outside_) PinOutside(made.program.whole.get());
    GW_RETURN_IF_ERROR(propagate::Propagate(*made.program.whole, options, &made.report));
    // The very first try is the plain one, whose arithmetic the others are measured by.
    made.plain = !outside_ && 2 * size_ <= options_.budget;
    GW_RETURN_IF_ERROR(Partition({.plain = made.plain}, &made));
    if (!outside_) Remember(*made.program.whole->entry());
    return made;
  }

  partition::PartitionOptions Alike(partition::PartitionOptions options) {
    options.record_reasons = options_.record_reasons;
    options.planner = &planner_;
    return options;
  }

  absl::Status Partition(const partition::PartitionOptions& options, Try* made) {
    spent_ += size_;
    GW_ASSIGN_OR_RETURN(made->program.partitioned, partition::PartitionModule(*made->program.whole, Alike(options)));
    GW_RETURN_IF_ERROR(Clean(made->program.partitioned.module.get()));
    made->peak_bytes = cost::PeakMemoryOf(*made->program.partitioned.module).total();
    made->cost = CostOf(*made->program.partitioned.module);
    made->cost += kBytesPerHeldByte * static_cast<double>(made->peak_bytes);
    return absl::OkStatus();
  }

  // Partitions again, in the knowledge of what was asked for, and keeps the best.
  absl::Status Refine(Try* made) {
    struct Way {
      bool afresh, whole_sums, plain;
    };
    const partition::Demands first = made->program.partitioned.demands;
    partition::Demands demands = first;
    for (const Way& way : {Way{true, false, false}, Way{false, false, false}, Way{false, false, false},
                           Way{false, true, false}, Way{true, false, true}, Way{false, false, true}}) {
      if (!InBudget()) break;
      if (way.afresh && way.plain == made->plain) {  // as it was partitioned first; counts, so that plans stay
        spent_ += size_;
        demands = first;
        continue;
      }
      partition::Partitioned kept = std::move(made->program.partitioned);
      const double cost = made->cost;
      const int64_t peak = made->peak_bytes;
      GW_RETURN_IF_ERROR(Partition(
          {.before = way.afresh ? nullptr : &demands, .whole_sums = way.whole_sums, .plain = way.plain}, made));
      demands = made->program.partitioned.demands;
      if (made->cost < cost) continue;
      made->program.partitioned = std::move(kept);
      made->cost = cost;
      made->peak_bytes = peak;
    }
    return absl::OkStatus();
  }

  // Indices of much arithmetic on axes that no annotation gives them, or gives another index too: who gets the axis
  // where the two meet is then a question of cost.
  std::vector<Placement> Candidates(const Try& from) const {
    std::vector<Placement> candidates;
    const std::vector<IndexClass>& indices = from.report.indices;
    const Mesh& mesh = *from.report.mesh;
    const auto& placed = from.program.placements;
    for (size_t i = 0; i < indices.size() && i < kMaxIndices; ++i) {
      if (!TakesPart(indices[i], indices[0])) break;
      for (int a = 0; a < static_cast<int>(mesh.rank()); ++a) {
        const AxisRef axis = FullAxis(mesh, a);
        if (axis.size == 1 || indices[i].extent < axis.size) continue;
        std::vector<Placement> ways;
        if (!OnlyAnnotatedHere(indices, i, axis)) ways.push_back({indices[i].id, axis});
        if (indices[i].meets_itself) ways.push_back({indices[i].id, axis, /*minor=*/true});
        for (const Placement& way : ways) {
          if (std::find(placed.begin(), placed.end(), way) == placed.end()) candidates.push_back(way);
        }
      }
    }
    return candidates;
  }

  // In enough of the arithmetic that the index of most takes part in.
  static bool TakesPart(const IndexClass& index, const IndexClass& most) {
    return most.flops > 0 ? index.flops >= most.flops * kLeastShare : index.reduced >= most.reduced * kLeastShare;
  }

  static bool OnlyAnnotatedHere(const std::vector<IndexClass>& indices, size_t here, const AxisRef& axis) {
    if (!Overlaps(indices[here].annotated, axis)) return false;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (i != here && Overlaps(indices[i].annotated, axis)) return false;
    }
    return true;
  }

  struct Outside {
    std::vector<Shardings> parameters;
    Shardings root;
  };

  void Remember(const hlo::Computation& entry) {
    outside_.emplace();
    for (const hlo::Instruction* parameter : entry.parameters())
      outside_->parameters.push_back(*parameter->shardings());
    outside_->root = *entry.root()->shardings();
  }

  // What clients see is decided: completion starts from it.
  void PinOutside(hlo::Module* module) const {
    hlo::Computation* entry = module->entry();
    for (size_t i = 0; i < outside_->parameters.size(); ++i) {
      entry->parameters()[i]->set_shardings(outside_->parameters[i]);
    }
    hlo::Instruction* root = entry->root();
    if (!root->has_sharding() && root->shape().IsArray()) {
      root = entry->Add(hlo::Opcode::kCopy, root->shape(), {root});
      entry->set_root(root);
    }
    root->set_shardings(outside_->root);
  }

  propagate::PropagateOptions PinnedOptions() const {
    propagate::PropagateOptions options = options_.propagation;
    options.propagate_to_parameters = {false};
    options.propagate_to_output = {false};
    options.empty_shards = empty_shards_;
    return options;
  }

  const std::unique_ptr<hlo::Module> original_;
  const PlanSearchOptions& options_;
  const int64_t size_;
  partition::ReshardPlanner planner_;
  int64_t spent_ = 0;
  double first_peak_ = 0;
  bool empty_shards_ = false;  // of completions from now on
  std::optional<double> first_flops_;
  std::optional<Outside> outside_;
};

}  // namespace

absl::StatusOr<PlannedProgram> SearchPlan(std::unique_ptr<hlo::Module> module, const PlanSearchOptions& options) {
  return PlanSearch(std::move(module), options).Run();
}

}  // namespace gangway::compile

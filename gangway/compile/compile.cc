#include "gangway/compile/compile.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/compile/custom_calls.h"
#include "gangway/compile/donors.h"
#include "gangway/compile/einsum_loops.h"
#include "gangway/compile/gather_again.h"
#include "gangway/compile/host_callbacks.h"
#include "gangway/compile/host_collectives.h"
#include "gangway/compile/lapack.h"
#include "gangway/compile/plan_search.h"
#include "gangway/compile/records.h"
#include "gangway/compile/single_device.h"
#include "gangway/compile/token_borders.h"
#include "gangway/cost/module_cost.h"
#include "gangway/cost/peak_memory.h"
#include "gangway/hlo/proto.h"
#include "gangway/partition/partition.h"
#include "gangway/passes/layout_mode.h"
#include "gangway/passes/pipeline.h"
#include "gangway/propagate/propagate.h"

namespace gangway::compile {
namespace {

// What the program says to the device's compiler (device/HOSTED.md).
constexpr char kOrderAttribute[] = "gangway.order", kDepthFirst[] = "depth-first";

// What is behind the borders of calls and constants shows up before shardings are chosen.
absl::Status CleanInput(hlo::Module* module, bool partitioned) {
  passes::Pipeline pipeline;
  pipeline.Add("inline-calls", passes::RunInlineCalls);
  if (partitioned) {
    pipeline.Add("recognize-scans", passes::RunRecognizeScans);
    pipeline.Add("fold-window-padding", passes::RunFoldWindowPadding);
    pipeline.Add("join-pads", passes::RunJoinPads);
    pipeline.Add("scatter-to-update", passes::RunScatterToUpdate);
    pipeline.Add("simplify-views", passes::RunSimplifyViews);
    pipeline.Add("exponents-as-bytes", passes::RunExponentsAsBytes);
  }
  pipeline.Add("choose-layouts", passes::RunChooseLayouts);
  pipeline.Add("dce", passes::RunDce);
  return pipeline.Run(*module).status();
}

std::vector<Donation> DonationOf(const hlo::Module& module) {
  std::vector<Donation> donation(module.entry()->parameters().size(), Donation::kNone);
  const auto mark = [&](int64_t parameter, Donation kind) {
    if (parameter >= 0 && parameter < static_cast<int64_t>(donation.size())) donation[parameter] = kind;
  };
  for (const hlo::BufferDonor& donor : module.config().donors) mark(donor.parameter, Donation::kMayAlias);
  for (const hlo::InputOutputAlias& alias : module.config().aliases) {
    mark(alias.parameter, alias.must_alias ? Donation::kMustAlias : Donation::kMayAlias);
  }
  return donation;
}

std::string At(const std::vector<std::string>& texts, size_t i) { return i < texts.size() ? texts[i] : std::string(); }

std::vector<ValueInfo> ValuesOf(const std::vector<Shape>& shapes, const Shardings& shardings,
                                const std::vector<std::string>& memory_kinds,
                                const std::vector<std::string>& layout_modes) {
  std::vector<ValueInfo> values;
  for (size_t i = 0; i < shapes.size(); ++i) {
    values.push_back({WithoutLayout(shapes[i]), shardings[i], At(memory_kinds, i),
                      passes::MinorToMajor(At(layout_modes, i), shapes[i].rank())});
  }
  return values;
}

void FillValues(const hlo::Module& whole, const Shardings& parameters, const Shardings& outputs,
                CompiledProgram* program) {
  const hlo::ModuleConfig& config = whole.config();
  std::vector<Shape> parameter_shapes;
  for (const hlo::Instruction* parameter : whole.entry()->parameters()) {
    for (const Shape& leaf : Leaves(parameter->shape())) parameter_shapes.push_back(leaf);
  }
  program->parameters =
      ValuesOf(parameter_shapes, parameters, config.parameter_memory_kinds, config.parameter_layout_modes);
  program->outputs =
      ValuesOf(Leaves(whole.entry()->root()->shape()), outputs, config.result_memory_kinds, config.result_layout_modes);
}

void FillStats(const hlo::Module& per_device, ProgramStats* stats) {
  const cost::ModuleCost cost = cost::CostOf(per_device);
  stats->flops_per_device = cost.flops;
  stats->bytes_accessed_per_device = cost.bytes_accessed;
  stats->peak_bytes_per_device = cost::PeakMemoryOf(per_device).total();
  for (const auto& [name, totals] : cost.collectives) {
    stats->collectives.push_back({name, {totals.count, totals.executed, totals.bytes_received}});
  }
}

class Compilation {
 public:
  Compilation(std::unique_ptr<hlo::Module> module, const CompileOptions& options)
      : whole_(std::move(module)), options_(options) {}

  absl::StatusOr<CompiledProgram> Run() {
    program_.name = whole_->name();
    program_.num_partitions = options_.num_partitions;
    program_.stats.num_partitions = options_.num_partitions;
    whole_->config().num_partitions = options_.num_partitions;
    Dump("input", *whole_);
    ReplaceTokensAtBorders(whole_.get());
    GW_RETURN_IF_ERROR(CheckCustomCalls(*whole_));  // before our own calls are made
    GW_RETURN_IF_ERROR(CleanInput(whole_.get(), options_.num_partitions > 1));
    Dump("cleaned", *whole_);
    GW_RETURN_IF_ERROR(NameHostCallbacks(whole_.get(), options_.host_callbacks));
    program_.stats.flops_total = cost::CostOf(*whole_).flops;
    GW_RETURN_IF_ERROR(options_.num_partitions > 1 ? Partition() : KeepWhole());
    options_.host_collectives ? DropPlacementCalls(program_.per_device.get())
                              : ReplaceLapackCalls(program_.per_device.get());
    GW_RETURN_IF_ERROR(passes::PerDevicePipeline(options_.num_partitions > 1).Run(*program_.per_device).status());
    if (options_.num_partitions > 1) {
      // Hosted collectives hold the device up, and plugins that have collectives of their own overlap them themselves.
      GW_RETURN_IF_ERROR(LoopWorthwhileEinsums(*program_.per_device, /*overlaps=*/false).status());
      auto smaller = options_.memory_bytes > 0 ? GatherAgain(*program_.per_device, options_.memory_bytes) : nullptr;
      if (smaller != nullptr) program_.per_device = std::move(smaller);
    }
    Dump("per-device", *program_.per_device);
    FillStats(*program_.per_device, &program_.stats);
    DropUselessDonors(program_.per_device.get());
    program_.donation = DonationOf(*program_.per_device);
    GW_RETURN_IF_ERROR(Serialize());
    return std::move(program_);
  }

 private:
  void Dump(absl::string_view stage, const hlo::Module& module) const {
    if (options_.dump) options_.dump(stage, module);
  }

  absl::Status Partition() {
    PlanSearchOptions search;
    search.propagation.propagate_to_parameters = options_.propagate_to_parameters;
    search.propagation.propagate_to_output = options_.propagate_to_output;
    search.propagation.record_origins = search.record_reasons = options_.records != nullptr;
    GW_ASSIGN_OR_RETURN(PlannedProgram planned, SearchPlan(std::move(whole_), search));
    whole_ = std::move(planned.whole);
    partition::Partitioned& partitioned = planned.partitioned;
    if (options_.records != nullptr) {
      *options_.records = {std::move(planned.report), std::move(partitioned.reasons)};
    }
    Dump("propagated", *whole_);
    Dump("partitioned", *partitioned.module);
    FillValues(*whole_, partitioned.parameters, partitioned.outputs, &program_);
    for (partition::Fallback& fallback : partitioned.fallbacks) {
      program_.fallbacks.push_back({std::move(fallback.instruction), std::move(fallback.reason), fallback.bytes});
    }
    for (partition::Inspection& inspection : partitioned.inspections) {
      program_.inspected.push_back({std::move(inspection.key), std::move(inspection.sharding)});
    }
    program_.per_device = std::move(partitioned.module);
    return absl::OkStatus();
  }

  absl::Status KeepWhole() {
    const MeshRef mesh = std::make_shared<const Mesh>();
    Shardings parameters, outputs;
    for (const hlo::Instruction* parameter : whole_->entry()->parameters()) {
      for (const Shape& leaf : Leaves(parameter->shape())) {
        parameters.push_back(Sharding::Replicated(mesh, leaf.rank()));
      }
    }
    for (const Shape& leaf : Leaves(whole_->entry()->root()->shape())) {
      outputs.push_back(Sharding::Replicated(mesh, leaf.rank()));
    }
    FillValues(*whole_, parameters, outputs, &program_);
    StripShardings(whole_.get());
    program_.per_device = std::move(whole_);
    return absl::OkStatus();
  }

  absl::Status Serialize() {
    const std::unique_ptr<hlo::Module> lowered = program_.per_device->Clone();
    DropSinks(lowered.get());
    NameFileFolder(lowered.get(), options_.files);
    GW_RETURN_IF_ERROR(passes::RunFlattenDots(*lowered).status());
    if (options_.host_collectives) {
      GW_RETURN_IF_ERROR(passes::RunReduceInOneGo(*lowered).status());
      GW_RETURN_IF_ERROR(passes::RunIntegerExtremes(*lowered).status());
      GW_RETURN_IF_ERROR(passes::RunPairsAsBytes(*lowered).status());
      GW_RETURN_IF_ERROR(passes::RunJoinInParts(*lowered).status());
      GW_RETURN_IF_ERROR(passes::RunWidenTotalOrder(*lowered).status());
      GW_RETURN_IF_ERROR(HostCollectives(lowered.get()));
      // The plugin runs it on one device; the partitions meet in the collective library.
      lowered->config().num_partitions = 1;
      if (cost::LeanerOrder(*lowered) == cost::OrderKind::kDepthFirst) {
        lowered->config().frontend_attributes[kOrderAttribute] = kDepthFirst;
      }
      Dump("hosted", *lowered);
    }
    GW_ASSIGN_OR_RETURN(program_.executable, hlo::SerializeModule(*lowered));
    return absl::OkStatus();
  }

  std::unique_ptr<hlo::Module> whole_;
  const CompileOptions& options_;
  CompiledProgram program_;
};

}  // namespace

absl::StatusOr<CompiledProgram> CompileModule(std::unique_ptr<hlo::Module> module, const CompileOptions& options) {
  if (module == nullptr || module->entry() == nullptr) return absl::InvalidArgumentError("compile: no program");
  if (options.num_partitions < 1) return absl::InvalidArgumentError("compile: num_partitions must be at least 1");
  const std::string name = module->name();
  const auto begin = std::chrono::steady_clock::now();
  GW_ASSIGN_OR_RETURN_WITH(CompiledProgram program, Compilation(std::move(module), options).Run(),
                           absl::StrCat("program ", name));
  program.stats.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return program;
}

}  // namespace gangway::compile

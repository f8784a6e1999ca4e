#include "gangway/partition/partition.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/hlo/channel.h"
#include "gangway/mesh/geometry.h"
#include "gangway/mesh/hlo_sharding.h"
#include "gangway/partition/context.h"
#include "gangway/partition/verify.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;

// The mesh shardings are expressed over: that of the program's shardings, else its first declared one, else one axis.
MeshRef MeshOf(const hlo::Module& module) {
  const int64_t partitions = module.config().num_partitions;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      if (!instruction->shardings()) continue;
      for (const Sharding& sharding : *instruction->shardings()) {
        if (sharding.mesh != nullptr && sharding.mesh->size() == partitions && sharding.mesh->rank() > 0) {
          return sharding.mesh;
        }
      }
    }
  }
  for (const auto& [name, mesh] : module.meshes()) {
    if (mesh->size() == partitions && mesh->rank() > 0) return mesh;
  }
  return std::make_shared<const Mesh>(*Mesh::Make({{"_0", partitions}}));
}

// At the border of the program every shard has the same shape and no padding: a dimension that does not divide is
// whole.
Sharding WithoutUnevenDims(Sharding sharding, const Shape& shape) {
  for (int64_t d = 0; d < sharding.rank(); ++d) {
    if (shape.dim(d) % sharding.ShardCount(d) != 0) sharding.dims[d].axes.clear();
  }
  return sharding;
}

Shardings BorderShardings(const Instruction& instruction, const Context& context) {
  Shardings shardings;
  const std::vector<Shape> leaves = Leaves(instruction.shape());
  for (size_t i = 0; i < leaves.size(); ++i) {
    shardings.push_back(WithoutUnevenDims(context.Wanted(instruction, static_cast<int64_t>(i)), leaves[i]));
  }
  return shardings;
}

const Shape* LeafAt(const Shape& shape, const DimVector& path) {
  const Shape* at = &shape;
  for (int64_t index : path) {
    if (!at->IsTuple() || index < 0 || index >= static_cast<int64_t>(at->tuple().size())) return nullptr;
    at = &at->tuple()[index];
  }
  return at;
}

// Memory can only be handed over between shards of one shape.
void CopyConfig(const hlo::Module& source, hlo::Module* target) {
  target->config() = source.config();
  target->stack_frames() = source.stack_frames();
  target->meshes() = source.meshes();
  hlo::ModuleConfig& config = target->config();
  config.parameter_layouts.reset();
  config.result_layout.reset();
  std::vector<hlo::InputOutputAlias> kept;
  for (const hlo::InputOutputAlias& alias : config.aliases) {
    const auto& parameters = target->entry()->parameters();
    if (alias.parameter >= static_cast<int64_t>(parameters.size())) continue;
    const Shape* in = LeafAt(parameters[alias.parameter]->shape(), alias.parameter_index);
    const Shape* out = LeafAt(target->entry()->root()->shape(), alias.output_index);
    if (in != nullptr && out != nullptr && Shape::Compatible(*in, *out)) kept.push_back(alias);
  }
  config.aliases = std::move(kept);
}

}  // namespace

absl::StatusOr<Partitioned> PartitionModule(const hlo::Module& module, const PartitionOptions& options) {
  Partitioned result;
  result.module = std::make_unique<hlo::Module>(module.name());
  ReshardPlanner planner;
  ModuleState state;
  state.planner = options.planner != nullptr ? options.planner : &planner;
  state.source = &module;
  state.options = options;
  state.target = result.module.get();
  state.mesh = MeshOf(module);
  state.next_channel = hlo::FirstFreeChannel(module);

  const hlo::Computation& entry = *module.entry();
  hlo::Computation* scratch = result.module->AddComputation("scratch");
  const Context wanted(&state, scratch);
  for (const Instruction* parameter : entry.parameters()) {
    const Shardings leaves = BorderShardings(*parameter, wanted);
    result.parameters.insert(result.parameters.end(), leaves.begin(), leaves.end());
  }
  result.outputs = BorderShardings(*entry.root(), wanted);
  GW_ASSIGN_OR_RETURN(hlo::Computation * target,
                      LocalizeComputation(&state, entry, result.parameters, &result.outputs));
  result.module->set_entry(target);
  CopyConfig(module, result.module.get());
  for (const auto& computation : result.module->computations()) computation->RemoveDead();
  result.module->RemoveUnreachable();
  result.module->SortComputations();
  GW_RETURN_IF_ERROR(VerifyPartitioned(*result.module, module, result.parameters, result.outputs));
  result.fallbacks = std::move(state.fallbacks);
  result.inspections = std::move(state.inspections);
  result.demands = std::move(state.demands);
  result.reasons = std::move(state.reasons);
  return result;
}

}  // namespace gangway::partition

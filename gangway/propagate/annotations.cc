// What the program says about its values, expressed over the graph's mesh.
#include <algorithm>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gangway/base/status.h"
#include "gangway/mesh/hlo_sharding.h"
#include "gangway/propagate/graph_builder.h"
#include "gangway/propagate/sharding_call.h"

namespace gangway::propagate {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool SaysNothing(const Sharding& sharding) {
  if (sharding.mesh->rank() == 0 && !sharding.IsMaximal()) return true;  // sdy's empty mesh
  return sharding.UsedAxes().empty() &&
         std::all_of(sharding.dims.begin(), sharding.dims.end(), [](const DimSharding& dim) { return dim.open; });
}

// `unspecified_dims=[0,2]` of a GSPMD constraint: completion may choose these.
void OpenUnspecified(const Instruction& instruction, Sharding* sharding) {
  const auto* call = instruction.attr_if<hlo::CustomCallAttr>();
  if (call == nullptr || call->target != "Sharding") return;
  absl::string_view config = call->backend_config;
  const size_t start = config.find("unspecified_dims=[");
  if (start == absl::string_view::npos) return;
  config.remove_prefix(start + std::string("unspecified_dims=[").size());
  for (absl::string_view text : absl::StrSplit(config.substr(0, config.find(']')), ',')) {
    int64_t dim = 0;
    if (absl::SimpleAtoi(text, &dim) && dim >= 0 && dim < sharding->rank()) sharding->dims[dim].open = true;
  }
}

bool UsesAny(const Sharding& sharding, const AxisList& axes) {
  const AxisList used = sharding.UsedAxes();
  return std::any_of(axes.begin(), axes.end(), [&](const AxisRef& ref) { return Overlaps(used, ref); });
}

bool May(const std::vector<bool>& flags, size_t leaf) {
  if (flags.size() == 1) return flags[0];
  return leaf < flags.size() && flags[leaf];
}

}  // namespace

absl::Status GraphBuilder::Annotate(const Instruction& instruction, int64_t leaf, Sharding sharding) {
  Value& value = graph_.values_[ValueOf(&instruction, leaf)];
  if (SaysNothing(sharding)) return absl::OkStatus();
  GW_RETURN_IF_ERROR_WITH(ValidateSharding(sharding, value.shape), absl::StrCat("instruction ", instruction.name()));
  OpenUnspecified(instruction, &sharding);
  std::optional<Sharding> over = OverMesh(sharding, graph_.mesh_);
  // Only the manual axes are said: the rest is open as before, but for what another leaf of the value says.
  const bool only_manual =
      over && over->DimAxes().empty() && over->unreduced.empty() && over->replicated.empty() &&
      std::all_of(over->dims.begin(), over->dims.end(), [](const DimSharding& dim) { return dim.open; });
  if (only_manual) {
    if (!value.annotated) value.sharding.manual = over->manual;
    return absl::OkStatus();
  }
  if (value.annotated) {
    if (!SamePlacement(value.sharding, over.value_or(sharding), value.shape) && report_ != nullptr) {
      report_->conflicts.push_back({instruction.name(), leaf, value.sharding.ToString(), sharding.ToString(),
                                    absl::StrCat("must be laid out as ", value.instruction->name())});
    }
    return absl::OkStatus();
  }
  value.annotated = true;
  value.frozen = !over.has_value();
  value.sharding = over.value_or(sharding);
  if (value.frozen && report_ != nullptr) {
    report_->inexpressible.push_back(absl::StrCat(instruction.name(), ": ", sharding.ToString()));
  }
  return absl::OkStatus();
}

absl::Status GraphBuilder::ReadAnnotations() {
  for (const hlo::Computation* computation : graph_.computations_) {
    for (const auto& instruction : computation->instructions()) {
      if (!instruction->has_sharding()) continue;
      const Shardings& shardings = *instruction->shardings();
      const size_t leaves = graph_.leaves_.at(instruction.get()).size();
      if (shardings.size() != leaves) {
        return absl::InvalidArgumentError(absl::StrCat("instruction ", instruction->name(), ": ", shardings.size(),
                                                       " shardings for ", leaves, " leaves"));
      }
      for (size_t leaf = 0; leaf < leaves; ++leaf) {
        if (shardings[leaf].mesh == nullptr) {
          return absl::InvalidArgumentError(
              absl::StrCat("instruction ", instruction->name(), ": sharding without mesh"));
        }
        if (!graph_.values_[ValueOf(instruction.get(), leaf)].shape.IsArray()) continue;
        GW_RETURN_IF_ERROR(Annotate(*instruction, static_cast<int64_t>(leaf), shardings[leaf]));
      }
    }
  }
  return absl::OkStatus();
}

// Parameters and results about which the program says nothing, and completion may not either, are replicated.
void GraphBuilder::CloseEntry() {
  auto close = [&](const Instruction* instruction, const std::vector<bool>& may, size_t* leaf) {
    for (int value : graph_.leaves_.at(instruction)) {
      graph_.values_[value].even = true;
      if (May(may, (*leaf)++) || graph_.values_[value].annotated) continue;
      graph_.values_[value].annotated = true;
      for (DimSharding& dim : graph_.values_[value].sharding.dims) dim.open = false;
    }
  };
  const auto& parameters = ParameterFlags(module_, options_);
  const auto& output = OutputFlags(module_, options_);
  size_t leaf = 0;
  for (const Instruction* parameter : module_.entry()->parameters()) close(parameter, parameters, &leaf);
  leaf = 0;
  close(module_.entry()->root(), output, &leaf);
}

// Values computed from values of a manual region are in it, up to the calls that lead out of it.
void GraphBuilder::SpreadManual() {
  std::deque<const Instruction*> queue;
  absl::flat_hash_map<const Instruction*, AxisList> inside;
  auto enter = [&](const Instruction* instruction, const AxisList& manual) {
    if (!inside.emplace(instruction, manual).second) return;
    queue.push_back(instruction);
    for (int value : graph_.leaves_.at(instruction)) {
      Value& v = graph_.values_[value];
      if (!v.frozen && v.sharding.manual.empty() && !UsesAny(v.sharding, manual)) v.sharding.manual = manual;
    }
  };
  for (const hlo::Computation* computation : graph_.computations_) {
    for (const auto& instruction : computation->instructions()) {
      for (int value : graph_.leaves_.at(instruction.get())) {
        const AxisList manual = graph_.values_[value].sharding.manual;
        if (!manual.empty() && !graph_.values_[value].frozen) {
          enter(instruction.get(), manual);
          break;
        }
      }
    }
  }
  while (!queue.empty()) {
    const Instruction* from = queue.front();
    queue.pop_front();
    const AxisList manual = inside.at(from);
    for (const Instruction* user : from->users()) {
      if (IsManualBoundary(*user)) continue;
      enter(user, manual);
      const bool runs =
          user->opcode() == Opcode::kWhile || user->opcode() == Opcode::kConditional || user->opcode() == Opcode::kCall;
      if (!runs) continue;
      for (const hlo::Computation* called : user->called()) {
        for (const Instruction* parameter : called->parameters()) enter(parameter, manual);
      }
    }
  }
}

}  // namespace gangway::propagate

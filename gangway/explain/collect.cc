#include "gangway/explain/collect.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/cost/collective_bytes.h"
#include "gangway/cost/trip_count.h"
#include "gangway/explain/spec.h"
#include "gangway/mesh/geometry.h"

namespace gangway::explain {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// How often each computation runs in one run of the program: callers come after callees in the module's order.
absl::flat_hash_map<const Computation*, double> Runs(const hlo::Module& module) {
  absl::flat_hash_map<const Computation*, double> runs;
  const std::vector<Computation*> order = module.PostOrder();
  if (module.entry() != nullptr) runs[module.entry()] = 1;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const double times = runs[*it];
    for (const auto& instruction : (*it)->instructions()) {
      const std::vector<Computation*>& called = instruction->called();
      if (instruction->opcode() == Opcode::kWhile) {
        const double trips = static_cast<double>(cost::TripCount(*instruction).value_or(1));
        runs[called[0]] += times * (trips + 1);
        runs[called[1]] += times * trips;
      } else {
        for (const Computation* callee : called) runs[callee] += times;
      }
    }
  }
  return runs;
}

using Groups = std::vector<std::vector<int64_t>>;

Groups Sorted(Groups groups) {
  for (std::vector<int64_t>& group : groups) std::sort(group.begin(), group.end());
  std::sort(groups.begin(), groups.end());
  return groups;
}

// The devices that differ only along some axes, whatever their order.
Groups GroupsOver(const Mesh& mesh, uint32_t axes) {
  absl::flat_hash_map<int64_t, std::vector<int64_t>> groups;
  for (int64_t position = 0; position < mesh.size(); ++position) {
    int64_t rest = position, elsewhere = 0, scale = 1;
    for (int axis = static_cast<int>(mesh.rank()) - 1; axis >= 0; --axis) {
      const int64_t size = mesh.axis_size(axis), coordinate = rest % size;
      rest /= size;
      if ((axes >> axis & 1) == 0) elsewhere += coordinate * scale;
      scale *= size;
    }
    groups[elsewhere].push_back(mesh.DeviceAt(position));
  }
  Groups list;
  for (auto& [elsewhere, group] : groups) list.push_back(std::move(group));
  return Sorted(std::move(list));
}

// Permutes: the devices of a pair are in one group.
bool Within(const std::vector<std::pair<int64_t, int64_t>>& pairs, const Groups& groups) {
  absl::flat_hash_map<int64_t, size_t> group_of;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (int64_t device : groups[i]) group_of[device] = i;
  }
  return std::all_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
    auto from = group_of.find(pair.first), to = group_of.find(pair.second);
    return from != group_of.end() && to != group_of.end() && from->second == to->second;
  });
}

// The mesh axes a collective runs along, "'data','model'"; a number of devices where it is no set of whole axes.
std::string AxesOf(const Instruction& collective, const Mesh& mesh, int64_t devices) {
  constexpr int64_t kMaxDevices = 4096;  // larger meshes are not worth the lists
  const auto* attr = collective.attr_if<hlo::CollectiveAttr>();
  if (attr == nullptr || mesh.rank() > 6 || devices > kMaxDevices) return absl::StrCat(devices, " devices");
  const bool permutes = !attr->source_target_pairs.empty();
  const Groups groups = permutes ? Groups() : Sorted(attr->groups.Expand(devices));
  for (int count = 1; count <= mesh.rank(); ++count) {
    for (uint32_t axes = 1; axes < uint32_t{1} << mesh.rank(); ++axes) {
      if (__builtin_popcount(axes) != count) continue;
      const Groups over = GroupsOver(mesh, axes);
      if (permutes ? !Within(attr->source_target_pairs, over) : groups != over) continue;
      std::vector<std::string> names;
      for (int axis = 0; axis < mesh.rank(); ++axis) {
        if (axes >> axis & 1) names.push_back(absl::StrCat("'", mesh.axis_name(axis), "'"));
      }
      return absl::StrJoin(names, ",");
    }
  }
  return absl::StrCat("groups of ", groups.empty() ? devices : static_cast<int64_t>(groups.front().size()), " devices");
}

Cause CauseOf(const partition::Reason& reason, const Program& program) {
  Cause cause;
  cause.wanted_by = program.PlaceOf(reason.wanted_by);
  cause.is_reshard = reason.is_reshard;
  if (!reason.is_reshard) return cause;
  cause.value = program.PlaceOf(reason.value);
  cause.shape = reason.shape.ToString(/*with_layout=*/false);
  cause.from = SpecOf(reason.from);
  cause.to = SpecOf(reason.to);
  if (!reason.value.empty()) cause.from_paths = program.PathsOf(reason.value, reason.from);
  cause.to_paths = program.PathsOf(reason.wanted_by, reason.to);
  cause.plan = reason.plan;
  for (const auto& [from, cost] : reason.others) cause.others.emplace_back(from, cost);
  return cause;
}

std::vector<Cause> CausesOf(const Instruction& collective, const Program& program,
                            const std::vector<partition::Reason>& reasons) {
  std::vector<size_t> numbers;
  const auto add = [&](const Instruction& instruction) {
    const std::optional<size_t> number = partition::ReasonOf(instruction.metadata());
    if (number.has_value() && *number < reasons.size()) numbers.push_back(*number);
  };
  add(collective);
  // One that was combined from several: its elements remember theirs.
  if (collective.shape().IsTuple()) {
    for (const Instruction* user : collective.users()) add(*user);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<Cause> causes;
  for (size_t number : numbers) {
    causes.push_back(CauseOf(reasons[number], program));
    causes.back().reason = number;
  }
  if (causes.empty()) {  // the user's own
    Cause cause;
    cause.wanted_by = Place{collective.name(), collective.metadata().op_name, collective.metadata().source_file,
                            collective.metadata().source_line};
    causes.push_back(std::move(cause));
  }
  return causes;
}

const Mesh& MainMesh(const Program& program) {
  static const Mesh& none = *new Mesh();
  for (const auto& instruction : program.module().entry()->instructions()) {
    if (instruction->has_sharding() && !instruction->shardings()->empty() && instruction->sharding().mesh != nullptr) {
      return *instruction->sharding().mesh;
    }
  }
  return none;
}

}  // namespace

std::vector<Collective> Collectives(const hlo::Module& per_device, const Program& program,
                                    const std::vector<partition::Reason>& reasons, const cost::Machine& machine,
                                    double seconds) {
  const int64_t devices = per_device.config().num_partitions;
  const absl::flat_hash_map<const Computation*, double> runs = Runs(per_device);
  const Mesh& mesh = MainMesh(program);
  std::vector<Collective> collectives;
  for (const auto& computation : per_device.computations()) {
    auto times = runs.find(computation.get());
    if (times == runs.end()) continue;
    for (const auto& instruction : computation->instructions()) {
      const std::optional<Opcode> kind = cost::CollectiveKind(instruction->opcode());
      if (!kind.has_value()) continue;
      const cost::CollectiveTraffic traffic = cost::TrafficOf(*instruction, devices);
      if (traffic.group_size <= 1) continue;
      Collective collective;
      collective.name = instruction->name();
      collective.kind = std::string(hlo::OpcodeName(*kind));
      collective.computation = computation->name();
      collective.axes = AxesOf(*instruction, mesh, devices);
      collective.executions = times->second;
      collective.bytes = times->second * traffic.bytes_received;
      collective.seconds =
          times->second * (machine.link.latency_seconds + traffic.bytes_received / machine.link.bytes_per_second);
      collective.share = seconds > 0 ? collective.seconds / seconds : 0;
      collective.causes = CausesOf(*instruction, program, reasons);
      collectives.push_back(std::move(collective));
    }
  }
  std::stable_sort(collectives.begin(), collectives.end(),
                   [](const Collective& a, const Collective& b) { return a.seconds > b.seconds; });
  return collectives;
}

std::vector<Tensor> Tensors(const Program& program, int64_t min_bytes, int64_t limit) {
  std::vector<std::pair<int64_t, const Instruction*>> large;
  for (const auto& computation : program.module().computations()) {
    for (const auto& instruction : computation->instructions()) {
      const bool is_array = instruction->shape().IsArray() && instruction->has_sharding();
      const int64_t bytes = instruction->shape().ByteSize();
      if (is_array && bytes >= min_bytes) large.emplace_back(bytes, instruction.get());
    }
  }
  std::stable_sort(large.begin(), large.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Tensor> tensors;
  absl::flat_hash_set<std::string> seen;
  for (const auto& [bytes, instruction] : large) {
    if (static_cast<int64_t>(tensors.size()) >= limit) break;
    const Sharding& sharding = instruction->sharding();
    // What one operation of the user became is listed once.
    const std::string& op_name = instruction->metadata().op_name;
    const std::string same = absl::StrCat(op_name.empty() ? instruction->name() : op_name, " ",
                                          instruction->metadata().source_line, " ", SpecOf(sharding));
    if (!seen.insert(same).second) continue;
    tensors.push_back({program.PlaceOf(instruction->name()), instruction->shape().ToString(/*with_layout=*/false),
                       SpecOf(sharding), bytes, ShardShape(WithoutLayout(instruction->shape()), sharding).ByteSize(),
                       program.PathsOf(instruction->name(), sharding)});
  }
  return tensors;
}

}  // namespace gangway::explain

#include "gangway/cost/module_cost.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "gangway/cost/collective_bytes.h"
#include "gangway/cost/operation_cost.h"
#include "gangway/cost/trip_count.h"

namespace gangway::cost {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// `times` runs of `part`; its instructions stand in the text once.
void Add(const ModuleCost& part, double times, ModuleCost* total) {
  total->flops += times * part.flops;
  total->matmul_flops += times * part.matmul_flops;
  total->bytes_accessed += times * part.bytes_accessed;
  for (const auto& [name, collective] : part.collectives) {
    CollectiveTotals& sum = total->collectives[name];
    sum.count += collective.count;
    sum.executed += times * collective.executed;
    sum.bytes_received += times * collective.bytes_received;
  }
  total->unknown_loops.insert(total->unknown_loops.end(), part.unknown_loops.begin(), part.unknown_loops.end());
}

class Counter {
 public:
  explicit Counter(int64_t num_devices) : num_devices_(num_devices) {}

  // By value: deeper calls may move what the map holds.
  ModuleCost Of(const Computation& computation) {
    if (auto it = done_.find(&computation); it != done_.end()) return it->second;
    ModuleCost total;
    for (const auto& instruction : computation.instructions()) AddInstruction(*instruction, &total);
    done_[&computation] = total;
    return total;
  }

 private:
  void AddInstruction(const Instruction& instruction, ModuleCost* total) {
    OperationCost own = cost::CostOf(instruction);
    total->flops += own.flops;
    total->matmul_flops += own.matmul_flops;
    total->bytes_accessed += own.bytes;
    if (std::optional<Opcode> kind = CollectiveKind(instruction.opcode())) AddCollective(instruction, *kind, total);
    switch (instruction.opcode()) {
      case Opcode::kWhile:
        return AddLoop(instruction, total);
      case Opcode::kConditional:
        return AddBranches(instruction, total);
      case Opcode::kCall:
      case Opcode::kFusion:
      case Opcode::kAsyncStart:
        for (const Computation* called : instruction.called()) Add(Of(*called), 1, total);
        return;
      default:
        return;
    }
  }

  void AddCollective(const Instruction& instruction, Opcode kind, ModuleCost* total) {
    CollectiveTraffic traffic = TrafficOf(instruction, num_devices_);
    if (traffic.group_size <= 1) return;
    CollectiveTotals& sum = total->collectives[std::string(hlo::OpcodeName(kind))];
    ++sum.count;
    sum.executed += 1;
    sum.bytes_received += traffic.bytes_received;
  }

  void AddLoop(const Instruction& loop, ModuleCost* total) {
    std::optional<int64_t> trips = TripCount(loop);
    if (!trips.has_value()) total->unknown_loops.push_back(loop.name());
    double times = static_cast<double>(trips.value_or(1));
    Add(Of(*loop.called()[0]), times + 1, total);
    Add(Of(*loop.called()[1]), times, total);
  }

  void AddBranches(const Instruction& conditional, ModuleCost* total) {
    std::vector<ModuleCost> branches;
    for (const Computation* branch : conditional.called()) branches.push_back(Of(*branch));
    auto dearer = [](const ModuleCost& a, const ModuleCost& b) {
      return std::pair(a.CollectiveBytes(), a.flops) < std::pair(b.CollectiveBytes(), b.flops);
    };
    if (!branches.empty()) Add(*std::max_element(branches.begin(), branches.end(), dearer), 1, total);
  }

  int64_t num_devices_;
  absl::flat_hash_map<const Computation*, ModuleCost> done_;
};

}  // namespace

double ModuleCost::CollectiveBytes() const {
  double bytes = 0;
  for (const auto& [name, collective] : collectives) bytes += collective.bytes_received;
  return bytes;
}

ModuleCost CostOf(const hlo::Module& module) {
  if (module.entry() == nullptr) return {};
  return Counter(module.config().num_partitions * module.config().num_replicas).Of(*module.entry());
}

}  // namespace gangway::cost

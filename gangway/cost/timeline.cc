#include "gangway/cost/timeline.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "gangway/cost/collective_bytes.h"
#include "gangway/cost/collective_time.h"
#include "gangway/cost/fusion.h"
#include "gangway/cost/operation_cost.h"
#include "gangway/cost/trip_count.h"
#include "gangway/hlo/halves.h"

namespace gangway::cost {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool Stands(const Instruction& value) {
  return IsMaterialized(value) || value.opcode() == Opcode::kParameter || IsAlias(value.opcode());
}

// What an operation reads and writes of memory when fused values are never written.
double MemoryTraffic(const Instruction& i) {
  double unfused = CostOf(i).bytes;
  if (!IsMaterialized(i)) unfused -= static_cast<double>(i.shape().ByteSize());
  for (const Instruction* operand : i.operands()) {
    if (!Stands(*operand)) unfused -= static_cast<double>(operand->shape().ByteSize());
  }
  return std::max(0.0, unfused);
}

// Arithmetic and memory traffic go on at the same time.
double ComputeSeconds(const Instruction& i, const DeviceModel& device) {
  const OperationCost cost = CostOf(i);
  const double arithmetic =
      cost.matmul_flops / device.matmul_flops_per_second + (cost.flops - cost.matmul_flops) / device.flops_per_second;
  return std::max(arithmetic, MemoryTraffic(i) / device.bytes_per_second);
}

class Walk {
 public:
  using Lengths = absl::flat_hash_map<const Computation*, double>;

  // `branch_seconds` remembers how long branches take; borrowed.
  Walk(int64_t num_devices, const Machine& machine, Lengths* branch_seconds)
      : num_devices_(num_devices), machine_(machine), branch_seconds_(*branch_seconds) {}

  void Run(const Computation& computation) {
    for (const auto& instruction : computation.instructions()) Run(*instruction);
  }

  void Run(const Instruction& i) {
    switch (i.opcode()) {
      case Opcode::kWhile:
        return RunLoop(i);
      case Opcode::kConditional:
        return RunLongest(i);
      case Opcode::kCall:
      case Opcode::kFusion:
        for (const Computation* called : i.called()) Run(*called);
        return;
      default:
        return RunOne(i);
    }
  }

  double now() const { return now_; }

  Timeline Take() {
    timeline_.seconds = now_;
    timeline_.waited_seconds = std::max(0.0, now_ - timeline_.compute_seconds);
    return std::move(timeline_);
  }

 private:
  void RunOne(const Instruction& i) {
    if (const Instruction* collective = CollectiveOf(i)) {
      Start(i, *collective);
      if (!hlo::IsStart(i.opcode())) WaitFor(i);
    } else if (hlo::IsDone(i.opcode())) {
      WaitFor(*i.operand(0));
    } else {
      Compute(i);
    }
  }

  void Compute(const Instruction& i) {
    const double seconds = ComputeSeconds(i, machine_.device);
    if (seconds == 0) return;
    timeline_.spans.push_back({&i, Engine::kCompute, now_, now_ + seconds});
    timeline_.compute_seconds += seconds * runs_;
    now_ += seconds;
  }

  // Links and network each serve one collective at a time; what goes between islands follows what goes inside.
  void Start(const Instruction& start, const Instruction& collective) {
    const CollectiveTime time = TimeOf(collective, num_devices_, machine_);
    double ready = now_;
    for (const auto& [engine, seconds] :
         {std::pair(Engine::kLink, time.link_seconds), std::pair(Engine::kNetwork, time.network_seconds)}) {
      if (seconds == 0) continue;
      double& free = engine == Engine::kLink ? link_free_ : network_free_;
      const double begin = std::max(ready, free);
      ready = free = begin + seconds;
      timeline_.spans.push_back({&start, engine, begin, ready});
      timeline_.collective_seconds += seconds * runs_;
    }
    lands_[&start] = ready;
  }

  void WaitFor(const Instruction& start) {
    const auto it = lands_.find(&start);
    if (it == lands_.end() || it->second <= now_) return;
    timeline_.waits.push_back({&start, (it->second - now_) * runs_, runs_});
    now_ = it->second;
  }

  // All turns are like the first.
  void RunLoop(const Instruction& loop) {
    const double times = static_cast<double>(TripCount(loop).value_or(1));
    const double outer = runs_, begin = now_;
    runs_ = outer * times;
    Run(*loop.called()[0]);
    Run(*loop.called()[1]);
    runs_ = outer;
    const double rest = (now_ - begin) * (times - 1);
    now_ = times == 0 ? begin : now_ + rest;
    // What the first turn left on the links, the last leaves too.
    if (link_free_ > begin) link_free_ += rest;
    if (network_free_ > begin) network_free_ += rest;
  }

  void RunLongest(const Instruction& conditional) {
    const Computation* longest = nullptr;
    double most = -1;
    for (const Computation* branch : conditional.called()) {
      const double seconds = SecondsOf(*branch);
      if (seconds <= most) continue;
      most = seconds;
      longest = branch;
    }
    if (longest != nullptr) Run(*longest);
  }

  double SecondsOf(const Computation& branch) {
    if (const auto it = branch_seconds_.find(&branch); it != branch_seconds_.end()) return it->second;
    Walk alone(num_devices_, machine_, &branch_seconds_);
    alone.Run(branch);
    return branch_seconds_[&branch] = alone.now();
  }

  const int64_t num_devices_;
  const Machine& machine_;
  Lengths& branch_seconds_;
  double now_ = 0, link_free_ = 0, network_free_ = 0;
  double runs_ = 1;  // of what is walked, by the loops around it
  absl::flat_hash_map<const Instruction*, double> lands_;
  Timeline timeline_;
};

}  // namespace

const Instruction* CollectiveOf(const Instruction& i) {
  if (CollectiveKind(i.opcode()).has_value()) return &i;
  if (i.opcode() != Opcode::kAsyncStart || i.called().empty()) return nullptr;
  const Instruction* wrapped = i.called()[0]->root();
  return CollectiveKind(wrapped->opcode()).has_value() ? wrapped : nullptr;
}

double SecondsOf(const Instruction& instruction, int64_t num_devices, const Machine& machine) {
  Walk::Lengths branch_seconds;
  Walk walk(num_devices, machine, &branch_seconds);
  walk.Run(instruction);
  return walk.now();
}

Timeline TimelineOf(const hlo::Module& module, const Machine& machine) {
  Walk::Lengths branch_seconds;
  Walk walk(module.config().num_partitions * module.config().num_replicas, machine, &branch_seconds);
  if (module.entry() != nullptr) walk.Run(*module.entry());
  return walk.Take();
}

}  // namespace gangway::cost

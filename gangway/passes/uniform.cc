#include "gangway/passes/uniform.h"

#include <algorithm>

#include "gangway/tensor/shape.h"

namespace gangway::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

std::vector<bool> Spread(const Instruction& instruction, bool differs) {
  return std::vector<bool>(static_cast<size_t>(LeafCount(instruction.shape())), differs);
}

bool Any(const std::vector<bool>& flags) { return std::find(flags.begin(), flags.end(), true) != flags.end(); }

bool ComesFromTheDevice(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
    case Opcode::kRng:
    case Opcode::kRngGetAndUpdateState:
    case Opcode::kInfeed:
    case Opcode::kRecv:
    case Opcode::kRecvDone:
    case Opcode::kAsyncStart:
    case Opcode::kCollectivePermuteStart:
    case Opcode::kCustomCall:
    case Opcode::kFusion:
      return true;
    default:
      return false;
  }
}

}  // namespace

UniformValues::UniformValues(const hlo::Module& module) : module_(module) {
  for (const Instruction* parameter : module.entry()->parameters()) {
    std::vector<bool> flags;
    for (const Shape& leaf : Leaves(parameter->shape())) flags.push_back(leaf.rank() != 0);
    differs_[parameter] = std::move(flags);
  }
  // Callers before callees; again while a loop's state or a callee's argument turned out to differ.
  std::vector<Computation*> order = module.PostOrder();
  std::reverse(order.begin(), order.end());
  do {
    changed_ = false;
    for (const Computation* computation : order) Visit(*computation);
  } while (changed_);
}

bool UniformValues::Contains(const Instruction* instruction) const {
  auto it = differs_.find(instruction);
  return it != differs_.end() && !Any(it->second);
}

bool UniformValues::Differs(const Instruction* value) const {
  auto it = differs_.find(value);
  return it != differs_.end() && Any(it->second);
}

void UniformValues::Visit(const Computation& computation) {
  for (const auto& instruction : computation.instructions()) {
    if (instruction->opcode() == Opcode::kParameter) {
      differs_.try_emplace(instruction.get(), Spread(*instruction, false));
      continue;
    }
    Flags flags = DiffersOf(*instruction);
    Flags& known = differs_[instruction.get()];
    if (known == flags) continue;
    if (known.empty() && !Any(flags)) {
      known = std::move(flags);
      continue;
    }
    known = std::move(flags);
    changed_ = true;
  }
}

void UniformValues::Enter(const Computation* callee, int64_t number, Flags flags) {
  const Instruction* parameter = callee->parameter(number);
  Flags& known = differs_[parameter];
  if (known.empty()) known = Spread(*parameter, false);
  for (size_t i = 0; i < known.size() && i < flags.size(); ++i) {
    if (!flags[i] || known[i]) continue;
    known[i] = true;
    changed_ = true;
  }
}

bool UniformValues::JoinsAllDevices(const Instruction& collective) const {
  const auto& groups = collective.attr<hlo::CollectiveAttr>().groups;
  const int64_t devices = module_.config().num_partitions;
  if (module_.config().num_replicas != 1) return false;
  switch (groups.form) {
    case hlo::ReplicaGroupList::Form::kExplicit:
      return groups.groups.empty() || (groups.groups.size() == 1 && std::ssize(groups.groups[0]) == devices);
    case hlo::ReplicaGroupList::Form::kIota:
      return groups.num_groups == 1 && groups.group_size == devices;
    case hlo::ReplicaGroupList::Form::kMeshAxes:
      return ProductOf(groups.axes) == devices;
  }
  return false;
}

UniformValues::Flags UniformValues::OperandFlags(const Instruction& instruction) const {
  Flags flags;
  for (const Instruction* operand : instruction.operands()) {
    const Flags& of = differs_.at(operand);
    flags.insert(flags.end(), of.begin(), of.end());
  }
  return flags;
}

UniformValues::Flags UniformValues::ControlFlags(const Instruction& instruction) {
  if (instruction.opcode() == Opcode::kWhile) {
    const Computation *condition = instruction.called()[0], *body = instruction.called()[1];
    Flags state = differs_.at(instruction.operand(0));
    if (auto next = differs_.find(body->root()); next != differs_.end() && next->second.size() == state.size()) {
      for (size_t i = 0; i < state.size(); ++i) state[i] = state[i] || next->second[i];
    }
    Enter(condition, 0, state);
    Enter(body, 0, state);
    return Differs(condition->root()) ? Spread(instruction, true) : state;
  }
  const bool conditional = instruction.opcode() == Opcode::kConditional;
  if (conditional && Differs(instruction.operand(0))) return Spread(instruction, true);
  Flags result = Spread(instruction, false);
  for (size_t c = 0; c < instruction.called().size(); ++c) {
    const Computation* callee = instruction.called()[c];
    const int64_t first = conditional ? static_cast<int64_t>(c) + 1 : 0;
    for (int64_t number = 0; number < std::ssize(callee->parameters()); ++number) {
      Enter(callee, number, differs_.at(instruction.operand(first + number)));
    }
    auto root = differs_.find(callee->root());
    if (root == differs_.end() || root->second.size() != result.size()) continue;
    for (size_t i = 0; i < result.size(); ++i) result[i] = result[i] || root->second[i];
  }
  return result;
}

UniformValues::Flags UniformValues::DiffersOf(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
      return ControlFlags(instruction);
    case Opcode::kTuple:
    case Opcode::kOptBarrier:
      return OperandFlags(instruction);
    case Opcode::kGetTupleElement: {
      const Shape& tuple = instruction.operand(0)->shape();
      int64_t begin = 0;
      const int64_t index = instruction.attr<hlo::TupleIndexAttr>().index;
      for (int64_t i = 0; i < index; ++i) begin += LeafCount(tuple.tuple()[i]);
      const Flags& of = differs_.at(instruction.operand(0));
      return Flags(of.begin() + begin, of.begin() + begin + LeafCount(instruction.shape()));
    }
    case Opcode::kAllReduce:
    case Opcode::kAllGather:
    case Opcode::kCollectiveBroadcast:
      if (JoinsAllDevices(instruction)) return Spread(instruction, false);
      // Over some devices: each group has a result of its own.
      return Spread(instruction, instruction.opcode() != Opcode::kAllReduce || Any(OperandFlags(instruction)));
    case Opcode::kReduceScatter:
    case Opcode::kAllToAll:
    case Opcode::kCollectivePermute:
      return Spread(instruction, true);
    default:
      return Spread(instruction, ComesFromTheDevice(instruction) || Any(OperandFlags(instruction)));
  }
}

}  // namespace gangway::passes

#include "gangway/compile/start_done.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "gangway/cost/collective_bytes.h"
#include "gangway/hlo/builder.h"

namespace gangway::compile {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

Shape OperandTuple(const Instruction& i) {
  std::vector<Shape> shapes;
  for (const Instruction* operand : i.operands()) shapes.push_back(operand->shape());
  return Shape::Tuple(std::move(shapes));
}

Shape OperandShape(const Instruction& i) { return i.operand_count() == 1 ? i.operand(0)->shape() : OperandTuple(i); }

// A computation that is one collective of its parameters.
Computation* Wrapped(const Instruction& collective) {
  Computation* wrapper = collective.parent()->module()->AddComputation(absl::StrCat("async_", collective.name()));
  hlo::Builder build(wrapper);
  std::vector<Instruction*> parameters;
  for (int64_t p = 0; p < collective.operand_count(); ++p) {
    parameters.push_back(build.Parameter(p, collective.operand(p)->shape(), ""));
  }
  wrapper->set_root(wrapper->AddClone(collective, collective.shape(), std::move(parameters)));
  return wrapper;
}

Instruction* Started(const Instruction& collective, hlo::Builder* build) {
  switch (collective.opcode()) {
    case Opcode::kAllReduce:
      return build->Add(Opcode::kAllReduceStart, collective.operands(), collective.attributes(), collective.called(),
                        collective.shape());
    case Opcode::kAllGather:
      return build->Add(Opcode::kAllGatherStart, collective.operands(), collective.attributes(), {},
                        Shape::Tuple({OperandShape(collective), collective.shape()}));
    case Opcode::kCollectivePermute:
      return build->Add(Opcode::kCollectivePermuteStart, collective.operands(), collective.attributes(), {},
                        Shape::Tuple({OperandShape(collective), collective.shape()}));
    default:
      return build->Add(Opcode::kAsyncStart, collective.operands(), {}, {Wrapped(collective)},
                        Shape::Tuple({OperandTuple(collective), collective.shape()}));
  }
}

Opcode DoneOf(Opcode start) {
  switch (start) {
    case Opcode::kAllReduceStart:
      return Opcode::kAllReduceDone;
    case Opcode::kAllGatherStart:
      return Opcode::kAllGatherDone;
    case Opcode::kCollectivePermuteStart:
      return Opcode::kCollectivePermuteDone;
    default:
      return Opcode::kAsyncDone;
  }
}

void Split(Instruction* collective) {
  hlo::Builder build(collective->parent());
  build.set_metadata(collective->metadata());
  Instruction* start = Started(*collective, &build);
  start->mutable_frontend_attributes() = collective->frontend_attributes();
  Instruction* done = build.Add(DoneOf(start->opcode()), {start}, {}, {}, collective->shape());
  collective->ReplaceAllUsesWith(done);
}

// An order that was asked for stays as it is.
absl::flat_hash_set<const Instruction*> Ordered(const Computation& computation) {
  absl::flat_hash_set<const Instruction*> ordered;
  for (const auto& i : computation.instructions()) {
    if (!i->control_predecessors().empty()) ordered.insert(i.get());
    ordered.insert(i->control_predecessors().begin(), i->control_predecessors().end());
  }
  return ordered;
}

bool MovesSomething(const Instruction& i, int64_t num_devices) {
  return hlo::IsCollective(i.opcode()) && cost::TrafficOf(i, num_devices).group_size > 1;
}

// Permutes in place name their buffers, and a result nobody takes is not waited for.
bool CanBeSplit(const Instruction& i) {
  const bool in_place = i.opcode() == Opcode::kCollectivePermute && i.operand_count() != 1;
  return !in_place && (i.IsRoot() || !i.users().empty());
}

}  // namespace

void StartAndAwaitCollectives(hlo::Module* module) {
  const int64_t num_devices = module->config().num_partitions * module->config().num_replicas;
  for (Computation* computation : module->PostOrder()) {
    const absl::flat_hash_set<const Instruction*> ordered = Ordered(*computation);
    std::vector<Instruction*> collectives;
    for (const auto& i : computation->instructions()) {
      if (MovesSomething(*i, num_devices) && CanBeSplit(*i) && !ordered.contains(i.get())) {
        collectives.push_back(i.get());
      }
    }
    if (collectives.empty()) continue;
    for (Instruction* collective : collectives) Split(collective);
    computation->RemoveDead();
    computation->SortTopologically();
  }
  module->SortComputations();
}

}  // namespace gangway::compile

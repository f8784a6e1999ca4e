#include "gangway/passes/loop.h"

#include <algorithm>

#include "gangway/hlo/builder.h"

namespace gangway::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool OnlyElementsAreUsed(const Instruction* tuple) {
  for (const Instruction* user : tuple->users()) {
    if (user->opcode() != Opcode::kGetTupleElement || user->has_sharding()) return false;
  }
  return !tuple->IsRoot();
}

// Who takes the loop's result as a whole takes a tuple of its elements instead.
void TakeApart(const Loop& loop) {
  hlo::Builder builder(loop.loop->parent());
  std::vector<Instruction*> takers, elements;
  for (Instruction* user : loop.loop->users()) {
    if (user->opcode() != Opcode::kGetTupleElement) takers.push_back(user);
  }
  const bool root = loop.loop->IsRoot();
  for (int64_t i = 0; i < loop.size; ++i) elements.push_back(builder.GetTupleElement(loop.loop, i));
  Instruction* tuple = builder.Tuple(std::move(elements));
  for (Instruction* taker : takers) {
    for (int64_t i = 0; i < taker->operand_count(); ++i) {
      if (taker->operand(i) == loop.loop) taker->ReplaceOperand(i, tuple);
    }
  }
  if (root) loop.loop->parent()->set_root(tuple);
}

}  // namespace

CallCounts CountCalls(const hlo::Module& module) {
  CallCounts counts;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      for (const Computation* called : instruction->called()) ++counts[called];
    }
  }
  return counts;
}

bool Loop::IsTakenWhole() const {
  const std::vector<Instruction*>& users = loop->users();
  return loop->IsRoot() || std::any_of(users.begin(), users.end(), [](const Instruction* user) {
           return user->opcode() != Opcode::kGetTupleElement;
         });
}

bool Loop::PassesThrough(int64_t index) const {
  const Instruction* after = body_root()->operand(index);
  return after->opcode() == Opcode::kGetTupleElement && after->operand(0) == body_state() &&
         ElementIndex(after) == index;
}

Instruction* Loop::Initial(int64_t index) const {
  Instruction* state = loop->operand(0);
  return state->opcode() == Opcode::kTuple ? state->operand(index) : nullptr;
}

Instruction* Loop::InitialOrRead(int64_t index) const {
  Instruction* at_hand = Initial(index);
  return at_hand != nullptr ? at_hand : hlo::Builder(loop->parent()).GetTupleElement(loop->operand(0), index);
}

std::optional<Loop> AsLoop(Instruction* instruction, const CallCounts& calls) {
  if (instruction->opcode() != Opcode::kWhile || !instruction->shape().IsTuple()) return std::nullopt;
  Loop loop{instruction, instruction->called()[0], instruction->called()[1],
            static_cast<int64_t>(instruction->shape().tuple().size())};
  if (calls.at(loop.condition) != 1 || calls.at(loop.body) != 1) return std::nullopt;
  // Per-leaf shardings would have to be cut along: before partitioning, loops stay as they are.
  for (const Instruction* i : {loop.loop, loop.body_root(), loop.body_state(), loop.condition_state()}) {
    if (i->has_sharding()) return std::nullopt;
  }
  if (loop.body_root()->opcode() != Opcode::kTuple || !loop.body_root()->users().empty()) return std::nullopt;
  if (!OnlyElementsAreUsed(loop.body_state()) || !OnlyElementsAreUsed(loop.condition_state())) return std::nullopt;
  return loop;
}

std::vector<Loop> LoopsOf(const Computation& computation, const CallCounts& calls) {
  std::vector<Loop> loops;
  for (const auto& instruction : computation.instructions()) {
    if (std::optional<Loop> loop = AsLoop(instruction.get(), calls)) loops.push_back(*loop);
  }
  return loops;
}

int64_t ElementIndex(const Instruction* get) { return get->attr<hlo::TupleIndexAttr>().index; }

std::vector<Instruction*> ElementsOf(const Instruction* tuple, int64_t index) {
  std::vector<Instruction*> elements;
  for (Instruction* user : tuple->users()) {
    if (user->opcode() == Opcode::kGetTupleElement && ElementIndex(user) == index) elements.push_back(user);
  }
  return elements;
}

int64_t AddElements(Loop* loop, const std::vector<Instruction*>& initial) {
  if (loop->IsTakenWhole()) TakeApart(*loop);
  const int64_t first = loop->size;
  std::vector<Instruction*> outside, inside = loop->body_root()->operands();
  std::vector<Shape> shapes = loop->loop->shape().tuple();
  for (int64_t i = 0; i < first; ++i) outside.push_back(loop->InitialOrRead(i));
  for (Instruction* element : initial) {
    outside.push_back(element);
    shapes.push_back(element->shape());
  }
  hlo::Builder before(loop->loop->parent()), within(loop->body);
  loop->loop->ReplaceOperand(0, before.Tuple(std::move(outside)));
  const Shape state = Shape::Tuple(std::move(shapes));
  for (Instruction* tuple : {loop->loop, loop->body_state(), loop->condition_state()}) tuple->set_shape(state);
  for (size_t i = 0; i < initial.size(); ++i) {
    inside.push_back(within.GetTupleElement(loop->body_state(), first + static_cast<int64_t>(i)));
  }
  Instruction* old_root = loop->body_root();
  loop->body->set_root(within.Tuple(std::move(inside)));
  loop->body->Remove(old_root);
  loop->size += static_cast<int64_t>(initial.size());
  return first;
}

void SetNext(const Loop& loop, int64_t index, Instruction* next) { loop.body_root()->ReplaceOperand(index, next); }

}  // namespace gangway::passes

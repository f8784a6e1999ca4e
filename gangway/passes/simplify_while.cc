#include <vector>

#include "absl/container/flat_hash_set.h"
#include "gangway/hlo/builder.h"
#include "gangway/passes/loop.h"
#include "gangway/passes/passes.h"

namespace gangway::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr int64_t kMaxSunkElements = 16;  // constants up to this size are copied into the body

// A copy of a small constant, or of a broadcast of one, in another computation.
Instruction* CopyConstant(const Instruction* constant, Computation* into) {
  if (constant->opcode() == Opcode::kConstant && constant->shape().ElementCount() <= kMaxSunkElements) {
    return into->AddClone(*constant, constant->shape(), {});
  }
  if (constant->opcode() == Opcode::kBroadcast && constant->operand(0)->opcode() == Opcode::kConstant &&
      constant->operand(0)->shape().rank() == 0) {
    Instruction* scalar = into->AddClone(*constant->operand(0), constant->operand(0)->shape(), {});
    return into->AddClone(*constant, constant->shape(), {scalar});
  }
  return nullptr;
}

void SinkInto(Computation* computation, const Instruction* state, int64_t index, const Instruction* constant,
              bool* changed) {
  for (Instruction* element : ElementsOf(state, index)) {
    if (element->users().empty()) continue;
    // The root keeps passing the element on, so that it is seen to be unused.
    std::vector<Instruction*> users = element->users();
    Instruction* copy = nullptr;
    for (Instruction* user : users) {
      if (user->IsRoot() && user->opcode() == Opcode::kTuple) continue;
      if (copy == nullptr) copy = CopyConstant(constant, computation);
      if (copy == nullptr) return;
      for (int64_t i = 0; i < user->operand_count(); ++i) {
        if (user->operand(i) == element) user->ReplaceOperand(i, copy);
      }
      *changed = true;
    }
  }
}

bool ReadInvariantsFromOutside(const Loop& loop) {
  bool changed = false;
  for (int64_t index = 0; index < loop.size; ++index) {
    Instruction* initial = loop.Initial(index);
    if (initial == nullptr || !loop.PassesThrough(index)) continue;
    for (Instruction* element : ElementsOf(loop.loop, index)) {
      if (element->users().empty() && !element->IsRoot()) continue;
      element->ReplaceAllUsesWith(initial);
      changed = true;
    }
    SinkInto(loop.body, loop.body_state(), index, initial, &changed);
    SinkInto(loop.condition, loop.condition_state(), index, initial, &changed);
  }
  return changed;
}

void MarkElements(const Instruction* tuple, std::vector<bool>* live) {
  for (const Instruction* user : tuple->users()) {
    if (!user->users().empty() || user->IsRoot()) (*live)[ElementIndex(user)] = true;
  }
}

// Elements that something needs: code after the loop, the condition, a side effect, or a needed element's next value.
std::vector<bool> LiveElements(const Loop& loop) {
  std::vector<bool> live(loop.size, false);
  MarkElements(loop.loop, &live);
  MarkElements(loop.condition_state(), &live);
  absl::flat_hash_set<const Instruction*> reached;
  std::vector<const Instruction*> worklist;
  for (const auto& instruction : loop.body->instructions()) {
    if (instruction->HasSideEffect()) worklist.push_back(instruction.get());
  }
  std::vector<bool> followed(loop.size, false);
  while (true) {
    for (int64_t i = 0; i < loop.size; ++i) {
      if (live[i] && !followed[i]) {
        followed[i] = true;
        worklist.push_back(loop.body_root()->operand(i));
      }
    }
    if (worklist.empty()) return live;
    while (!worklist.empty()) {
      const Instruction* top = worklist.back();
      worklist.pop_back();
      if (!reached.insert(top).second) continue;
      if (top->opcode() == Opcode::kGetTupleElement && top->operand(0) == loop.body_state())
        live[ElementIndex(top)] = true;
      for (const Instruction* operand : top->operands()) worklist.push_back(operand);
    }
  }
}

// The elements that stay get new places; readers of those that go have no users and go too.
void Renumber(Instruction* tuple, const std::vector<int64_t>& place, const Shape& shape) {
  std::vector<Instruction*> elements = tuple->users();
  for (Instruction* element : elements) {
    int64_t to = place[ElementIndex(element)];
    if (to < 0) {
      element->parent()->Remove(element);
    } else {
      element->mutable_attr<hlo::TupleIndexAttr>().index = to;
    }
  }
  tuple->set_shape(shape);
}

bool DropUnused(const Loop& loop) {
  std::vector<bool> live = LiveElements(loop);
  std::vector<int64_t> place(loop.size, -1);
  std::vector<Shape> shapes;
  for (int64_t i = 0; i < loop.size; ++i) {
    if (!live[i]) continue;
    place[i] = static_cast<int64_t>(shapes.size());
    shapes.push_back(loop.loop->shape().tuple()[i]);
  }
  if (static_cast<int64_t>(shapes.size()) == loop.size) return false;
  Shape shape = Shape::Tuple(shapes);
  hlo::Builder outside(loop.loop->parent()), inside(loop.body);
  std::vector<Instruction*> initial, next;
  for (int64_t i = 0; i < loop.size; ++i) {
    if (!live[i]) continue;
    Instruction* at_hand = loop.Initial(i);
    initial.push_back(at_hand != nullptr ? at_hand : outside.GetTupleElement(loop.loop->operand(0), i));
    next.push_back(loop.body_root()->operand(i));
  }
  Instruction* new_root = inside.Tuple(std::move(next));
  Instruction* old_root = loop.body->root();
  loop.body->set_root(new_root);
  loop.body->Remove(old_root);
  loop.loop->ReplaceOperand(0, outside.Tuple(std::move(initial)));
  loop.body->RemoveDead();  // what computed the dropped elements
  loop.condition->RemoveDead();
  Renumber(loop.loop, place, shape);
  Renumber(loop.body_state(), place, shape);
  Renumber(loop.condition_state(), place, shape);
  loop.loop->parent()->SortTopologically();
  loop.body->SortTopologically();
  return true;
}

bool RunOn(Computation& computation, const CallCounts& calls) {
  bool changed = false;
  for (const Loop& loop : LoopsOf(computation, calls)) {
    if (ReadInvariantsFromOutside(loop)) {
      loop.body->SortTopologically();
      loop.condition->SortTopologically();
      changed = true;
    }
    if (loop.loop->users().empty() || loop.IsTakenWhole()) continue;
    changed |= DropUnused(loop);
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> RunSimplifyWhile(hlo::Module& module) {
  module.RemoveUnreachable();
  const CallCounts calls = CountCalls(module);
  bool changed = false;
  for (Computation* computation : module.PostOrder()) {  // inner loops first
    changed |= RunOn(*computation, calls);
    computation->RemoveDead();
  }
  return changed;
}

}  // namespace gangway::passes

#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "gangway/hlo/builder.h"
#include "gangway/passes/passes.h"

namespace gangway::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr int64_t kMaxSunkElements = 16;  // constants up to this size are copied into the body

int64_t IndexOf(const Instruction* get) { return get->attr<hlo::TupleIndexAttr>().index; }

bool OnlyElementsAreUsed(const Instruction* tuple) {
  for (const Instruction* user : tuple->users()) {
    if (user->opcode() != Opcode::kGetTupleElement || user->has_sharding()) return false;
  }
  return !tuple->IsRoot();
}

// A loop whose state is a flat tuple seen through its elements everywhere, with a body and condition of its own.
struct Loop {
  Instruction* loop;
  Computation *condition, *body;
  int64_t size;

  Instruction* body_root() const { return body->root(); }
  Instruction* body_state() const { return body->parameter(0); }
  Instruction* condition_state() const { return condition->parameter(0); }
};

absl::flat_hash_map<const Computation*, int> CallCounts(const hlo::Module& module) {
  absl::flat_hash_map<const Computation*, int> counts;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      for (const Computation* called : instruction->called()) ++counts[called];
    }
  }
  return counts;
}

std::optional<Loop> AsLoop(Instruction* instruction, const absl::flat_hash_map<const Computation*, int>& calls) {
  if (instruction->opcode() != Opcode::kWhile || !instruction->shape().IsTuple()) return std::nullopt;
  Loop loop{instruction, instruction->called()[0], instruction->called()[1],
            static_cast<int64_t>(instruction->shape().tuple().size())};
  if (calls.at(loop.condition) != 1 || calls.at(loop.body) != 1) return std::nullopt;
  // Per-leaf shardings would have to be cut along: before partitioning, loops stay as they are.
  for (const Instruction* i : {loop.loop, loop.body_root(), loop.body_state(), loop.condition_state()}) {
    if (i->has_sharding()) return std::nullopt;
  }
  if (loop.body_root()->opcode() != Opcode::kTuple || !loop.body_root()->users().empty()) return std::nullopt;
  if (!OnlyElementsAreUsed(loop.loop) || !OnlyElementsAreUsed(loop.body_state()) ||
      !OnlyElementsAreUsed(loop.condition_state())) {
    return std::nullopt;
  }
  return loop;
}

std::vector<Instruction*> ElementsOf(const Instruction* tuple, int64_t index) {
  std::vector<Instruction*> elements;
  for (Instruction* user : tuple->users()) {
    if (IndexOf(user) == index) elements.push_back(user);
  }
  return elements;
}

bool PassesThrough(const Loop& loop, int64_t index) {
  const Instruction* after = loop.body_root()->operand(index);
  return after->opcode() == Opcode::kGetTupleElement && after->operand(0) == loop.body_state() &&
         IndexOf(after) == index;
}

// The value an element starts from, when it is at hand.
Instruction* InitialOf(const Loop& loop, int64_t index) {
  Instruction* state = loop.loop->operand(0);
  return state->opcode() == Opcode::kTuple ? state->operand(index) : nullptr;
}

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
    Instruction* initial = InitialOf(loop, index);
    if (initial == nullptr || !PassesThrough(loop, index)) continue;
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
    if (!user->users().empty() || user->IsRoot()) (*live)[IndexOf(user)] = true;
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
      if (top->opcode() == Opcode::kGetTupleElement && top->operand(0) == loop.body_state()) live[IndexOf(top)] = true;
      for (const Instruction* operand : top->operands()) worklist.push_back(operand);
    }
  }
}

// The elements that stay get new places; readers of those that go have no users and go too.
void Renumber(Instruction* tuple, const std::vector<int64_t>& place, const Shape& shape) {
  std::vector<Instruction*> elements = tuple->users();
  for (Instruction* element : elements) {
    int64_t to = place[IndexOf(element)];
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
    Instruction* at_hand = InitialOf(loop, i);
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

bool RunOn(Computation& computation, const absl::flat_hash_map<const Computation*, int>& calls) {
  std::vector<Instruction*> loops;
  for (const auto& instruction : computation.instructions()) {
    if (instruction->opcode() == Opcode::kWhile) loops.push_back(instruction.get());
  }
  bool changed = false;
  for (Instruction* instruction : loops) {
    std::optional<Loop> loop = AsLoop(instruction, calls);
    if (!loop.has_value()) continue;
    if (ReadInvariantsFromOutside(*loop)) {
      loop->body->SortTopologically();
      loop->condition->SortTopologically();
      changed = true;
    }
    if (instruction->users().empty()) continue;  // dead as a whole
    changed |= DropUnused(*loop);
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> RunSimplifyWhile(hlo::Module& module) {
  module.RemoveUnreachable();
  const absl::flat_hash_map<const Computation*, int> calls = CallCounts(module);
  bool changed = false;
  for (Computation* computation : module.PostOrder()) {  // inner loops first
    changed |= RunOn(*computation, calls);
    computation->RemoveDead();
  }
  return changed;
}

}  // namespace gangway::passes

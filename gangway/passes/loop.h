// A while loop as the passes see it: state elements by index, each with what it starts from and what it becomes.
// Internal to passes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "gangway/hlo/module.h"

namespace gangway::passes {

// How often each computation of the module is called.
using CallCounts = absl::flat_hash_map<const hlo::Computation*, int>;
CallCounts CountCalls(const hlo::Module& module);

// A loop whose state is a flat tuple seen through its elements everywhere, with a body and condition of its own.
// Borrows all it points to.
struct Loop {
  hlo::Instruction* loop;
  hlo::Computation *condition, *body;
  int64_t size;  // elements of the state

  hlo::Instruction* body_root() const { return body->root(); }
  hlo::Instruction* body_state() const { return body->parameter(0); }
  hlo::Instruction* condition_state() const { return condition->parameter(0); }

  // Somebody takes the result as a whole, or it is a root: all its elements are needed.
  bool IsTakenWhole() const;
  // The body leaves the element as it is.
  bool PassesThrough(int64_t index) const;
  // The value an element starts from, when it is at hand; null otherwise.
  hlo::Instruction* Initial(int64_t index) const;
  // The same, read from the tuple where it is not at hand.
  hlo::Instruction* InitialOrRead(int64_t index) const;
};

// Nullopt for what is no such loop.
std::optional<Loop> AsLoop(hlo::Instruction* instruction, const CallCounts& calls);
// Those of a computation, in program order.
std::vector<Loop> LoopsOf(const hlo::Computation& computation, const CallCounts& calls);

int64_t ElementIndex(const hlo::Instruction* get);
// Readers of one element of a tuple.
std::vector<hlo::Instruction*> ElementsOf(const hlo::Instruction* tuple, int64_t index);

// Grows the state by elements that start as given (instructions of the loop's own computation) and that the body passes
// through; gives the index of the first. The body's reads of them exist afterwards.
int64_t AddElements(Loop* loop, const std::vector<hlo::Instruction*>& initial);
// What the body makes of an element from now on.
void SetNext(const Loop& loop, int64_t index, hlo::Instruction* next);

}  // namespace gangway::passes

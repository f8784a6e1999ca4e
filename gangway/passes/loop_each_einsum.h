// What the passes that make loops of products share: where they look, and what they leave behind.
#pragma once

#include <cstdint>
#include <vector>

#include "gangway/hlo/channel.h"
#include "gangway/hlo/module.h"

namespace gangway::passes {

// Makes a loop of every einsum that is `worthwhile`, for programs of one replica; whether there was one. `find` says
// which einsum an instruction is, if any; `Loop(einsum, next_channel).Emit()` replaces it.
template <typename Loop, typename Find, typename Worthwhile>
bool LoopEachEinsum(hlo::Module& module, Find find, const Worthwhile& worthwhile) {
  if (module.config().num_replicas != 1) return false;
  int64_t next_channel = hlo::FirstFreeChannel(module);
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    std::vector<Loop> chosen;
    for (const auto& instruction : computation->instructions()) {
      const auto einsum = find(instruction.get());
      if (einsum && worthwhile(*einsum)) chosen.emplace_back(*einsum, &next_channel);
    }
    if (chosen.empty()) continue;
    for (Loop& loop : chosen) loop.Emit();
    computation->RemoveDead();
    computation->SortTopologically();
    changed = true;
  }
  if (changed) module.SortComputations();
  return changed;
}

}  // namespace gangway::passes

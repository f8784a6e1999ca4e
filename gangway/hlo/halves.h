// The halves of an operation that runs beside others: what starts it, and what waits for it.
#pragma once

#include "gangway/hlo/opcode.h"

namespace gangway::hlo {

// async-start and the collectives that have a form of their own.
inline bool IsStart(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAllGatherStart:
    case Opcode::kAllReduceStart:
    case Opcode::kCollectivePermuteStart:
    case Opcode::kAsyncStart:
      return true;
    default:
      return false;
  }
}

inline bool IsDone(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAllGatherDone:
    case Opcode::kAllReduceDone:
    case Opcode::kCollectivePermuteDone:
    case Opcode::kAsyncDone:
      return true;
    default:
      return false;
  }
}

}  // namespace gangway::hlo

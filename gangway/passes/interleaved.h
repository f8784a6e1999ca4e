// Parts of the trees that jax.lax.associative_scan writes: every second element of an array, and two arrays whose
// elements take turns.
#pragma once

#include <cstdint>
#include <optional>

#include "gangway/hlo/instruction.h"

namespace gangway::passes {

// x is the elements first, first + stride ... of dimension `dim` of `of`, as many as x has.
bool IsStrided(const hlo::Instruction* x, const hlo::Instruction* of, int64_t dim, int64_t first, int64_t stride);

// x = a[0], b[0], a[1], b[1] ... where a = e[0], rest.
struct Interleaved {
  int64_t dim = 0;
  hlo::Instruction* elements = nullptr;  // e
  hlo::Instruction* rest = nullptr;      // null, or empty, where x has two elements
  hlo::Instruction* odd = nullptr;       // b
};

// nullopt when `x` is none.
std::optional<Interleaved> AsInterleaved(const hlo::Instruction* x);

}  // namespace gangway::passes

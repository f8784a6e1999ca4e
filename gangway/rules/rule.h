// The sharding rule of an operation: which dimensions of its operands and results are the same index. One row an
// operation, read by propagation, partitioner, cost and explain alike (GSPMD sections 3 and 4; sdy's op_sharding_rule).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/hlo/instruction.h"
#include "gangway/mesh/sharding.h"

namespace gangway::rules {

enum class FactorKind : uint8_t {
  // Split alike in everything that has it: a shard of the results needs the same shard of the operands only, and the
  // operation on local shapes is right.
  kPassThrough,
  // In operands only: on local shapes the results are partial over its axes, to be combined by `reduction`.
  kReduction,
  // In operands and results (maybe of different extents), but a shard of the result needs more than its own shard of
  // the operands, or has to know where it lies: sliced and padded dimensions, windows, concatenation, reversal, iota.
  // Propagation splits both alike; a family's localizer makes it work (halo, offset, mask), the generic path gathers.
  kPermutation,
  // Whole on every device while the operation runs: sorted and transformed dimensions, gathered ones.
  kNeedReplication,
};

struct Factor {
  int64_t size = 1;  // the largest extent among the dimensions made of this factor alone
  FactorKind kind = FactorKind::kPassThrough;
  Reduction reduction = Reduction::kSum;  // of kReduction

  friend bool operator==(const Factor&, const Factor&) = default;
};

// Factors of one dimension, major to minor (a reshape's merged dimension has several; the product of their sizes is its
// extent). Empty: a dimension that plays no part (extent 1 in a reshape).
using DimFactors = std::vector<int>;
// One entry per dimension of an array; of no meaning for tuples and tokens.
using ValueFactors = std::vector<DimFactors>;

enum class RuleForm : uint8_t {
  kFactors,      // `factors`, `operands` and `results` hold
  kControl,      // values pass through leaf by leaf: tuple, while, call, parameter ...; propagation ties them
  kUnsupported,  // everything replicated, because of `reason`
};

// A value. Everything is empty unless the form is kFactors.
struct OpRule {
  RuleForm form = RuleForm::kFactors;
  std::string reason;
  std::vector<Factor> factors;
  std::vector<ValueFactors> operands;  // per operand
  std::vector<ValueFactors> results;   // per leaf of the result
  // Operands that are combined into the result once (init values of a reduction, the array a scatter adds to). Where a
  // kReduction factor is split, only one shard may count them: the others take the identity.
  std::vector<int> accumulated;

  // `(b i k),(k j)->(b i j) reduce{k}`: factors are i, j, k, ... z, a ... h, then f16, f17, ...; dimensions are
  // separated by blanks, several factors of one are joined by '*', none is '1'. A reduction other than sum is named:
  // `reduce{k:max}`. Then permute{...} and replicate{...}. Other forms: `control`, `unsupported: reason`.
  std::string ToString() const;
  friend bool operator==(const OpRule&, const OpRule&) = default;
};

OpRule Control();
OpRule Unsupported(std::string reason);

// The rule of an instruction of a verified module. Errors are bugs of a rule, with the instruction named. Pure.
absl::StatusOr<OpRule> RuleFor(const hlo::Instruction& instruction);

// The operation by which a computation combines its two parameters, when it is exactly one of the known monoids.
std::optional<Reduction> ReductionOf(const hlo::Computation& computation);

}  // namespace gangway::rules

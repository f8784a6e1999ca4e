// Joins of very many arrays become joins of joins.
//
// A CPU's compiler makes one function of a join and of what computes the parts, and takes time that grows with the
// square of its length.
#include <algorithm>
#include <utility>
#include <vector>

#include "gangway/passes/passes.h"
#include "gangway/passes/replace_each.h"

namespace gangway::passes {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

constexpr size_t kMost = 64;  // arrays joined at once
// Of a result; it is written twice, and held twice.
constexpr int64_t kMaxBytes = int64_t{64} << 20;

// What is joined, seen through joins that are for this one alone: the compiler makes one of them.
std::vector<Instruction*> JoinedBy(const Instruction& join) {
  const int64_t dim = join.attr<hlo::DimensionsAttr>().dims[0];
  std::vector<Instruction*> parts, rest(join.operands().rbegin(), join.operands().rend());
  while (!rest.empty()) {
    Instruction* part = rest.back();
    rest.pop_back();
    if (part->opcode() == Opcode::kConcatenate && part->users().size() == 1 &&
        part->attr<hlo::DimensionsAttr>().dims[0] == dim) {
      rest.insert(rest.end(), part->operands().rbegin(), part->operands().rend());
    } else {
      parts.push_back(part);
    }
  }
  return parts;
}

bool InParts(Instruction* join, Builder& builder) {
  if (join->shape().ByteSize() > kMaxBytes) return false;
  std::vector<Instruction*> parts = JoinedBy(*join);
  if (parts.size() <= kMost) return false;
  const int64_t dim = join->attr<hlo::DimensionsAttr>().dims[0];
  builder.set_metadata(join->metadata());
  while (parts.size() > kMost) {
    std::vector<Instruction*> joined;
    for (size_t i = 0; i < parts.size(); i += kMost) {
      const auto first = parts.begin() + static_cast<std::ptrdiff_t>(i);
      const auto count = static_cast<std::ptrdiff_t>(std::min(kMost, parts.size() - i));
      Instruction* some = builder.Concatenate(std::vector<Instruction*>(first, first + count), dim);
      // Without it they would be made one join again.
      joined.push_back(builder.Unary(Opcode::kOptBarrier, some));
    }
    parts = std::move(joined);
  }
  join->ReplaceAllUsesWith(builder.Concatenate(std::move(parts), dim));
  return true;
}

}  // namespace

absl::StatusOr<bool> RunJoinInParts(hlo::Module& module) { return ReplaceEach(module, Opcode::kConcatenate, InParts); }

}  // namespace gangway::passes

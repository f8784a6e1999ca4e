// A prefix combination written as a tree of slices (jax.lax.associative_scan): neighbours combined in pairs, the pairs
// scanned by the same tree, and what it gives interleaved with its combination with the elements in between. By known
// monoids it becomes one cumulative reduce-window, which the partitioner scans shard by shard.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "gangway/hlo/builder.h"
#include "gangway/passes/passes.h"

namespace gangway::passes {
namespace {

using hlo::Builder;
using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Shorter ones are as well left alone.
constexpr int64_t kMinExtent = 4;

bool IsZero(const Instruction* x) {
  while (x->opcode() == Opcode::kBroadcast) x = x->operand(0);
  const auto* constant = x->attr_if<hlo::ConstantAttr>();
  if (constant == nullptr) return false;
  const auto bytes = constant->literal->bytes();
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; });
}

// Elements first, first + stride ... of dimension `dim` of `of`, as many as x has.
bool IsStrided(const Instruction* x, const Instruction* of, int64_t dim, int64_t first, int64_t stride) {
  const int64_t count = x->shape().dim(dim);
  if (x == of) return first == 0 && (stride == 1 || count == 1);
  const auto* slice = x->attr_if<hlo::SliceAttr>();
  if (slice == nullptr || x->operand(0) != of || slice->starts[dim] != first) return false;
  if (count > 1 && (slice->strides.empty() ? 1 : slice->strides[dim]) != stride) return false;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    if (d != dim && x->shape().dim(d) != of->shape().dim(d)) return false;
  }
  return true;
}

// x = a[0], b[0], a[1], b[1] ... where a = e[0], rest.
struct Interleaved {
  int64_t dim = 0;
  Instruction* elements = nullptr;  // e
  Instruction* rest = nullptr;
  Instruction* odd = nullptr;  // b
};

// The dimension that a pad spreads out by one; -1 when it does anything else.
int64_t SpreadDim(const Instruction* pad, int64_t low) {
  if (pad->opcode() != Opcode::kPad || !IsZero(pad->operand(1))) return -1;
  int64_t dim = -1;
  const auto& dims = pad->attr<hlo::PadAttr>().dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == hlo::PadDim{}) continue;
    if (dim >= 0 || dims[d].interior != 1 || dims[d].low != low || dims[d].high < 0) return -1;
    dim = static_cast<int64_t>(d);
  }
  return dim;
}

std::optional<Interleaved> AsInterleaved(const Instruction* x) {
  if (x->opcode() != Opcode::kAdd && x->opcode() != Opcode::kOr) return std::nullopt;
  Interleaved found;
  found.dim = SpreadDim(x->operand(0), 0);
  if (found.dim < 0 || SpreadDim(x->operand(1), 1) != found.dim) return std::nullopt;
  Instruction* even = x->operand(0)->operand(0);
  found.odd = x->operand(1)->operand(0);
  const int64_t extent = x->shape().dim(found.dim);
  if (even->shape().dim(found.dim) != (extent + 1) / 2 || found.odd->shape().dim(found.dim) != extent / 2) {
    return std::nullopt;
  }
  if (even->opcode() != Opcode::kConcatenate || even->operand_count() != 2) return std::nullopt;
  if (even->attr<hlo::DimensionsAttr>().dims[0] != found.dim) return std::nullopt;
  const Instruction* first = even->operand(0);
  found.rest = even->operand(1);
  if (first->opcode() != Opcode::kSlice || first->shape().dim(found.dim) != 1) return std::nullopt;
  found.elements = first->operand(0);
  if (!IsStrided(first, found.elements, found.dim, 0, 1)) return std::nullopt;
  if (!Shape::Compatible(found.elements->shape(), x->shape())) return std::nullopt;
  return found;
}

class ScanMatcher {
 public:
  explicit ScanMatcher(const Interleaved& top) : dim_(top.dim) {}

  // What combines two elements; nullopt when `root` is no scan of `elements`.
  std::optional<Opcode> Match(const Instruction* root, const Instruction* elements) {
    while (root->shape().dim(dim_) > 1) {
      const int64_t extent = root->shape().dim(dim_), pairs = extent / 2;
      const auto level = AsInterleaved(root);
      if (!level || level->dim != dim_ || level->elements != elements) return std::nullopt;
      const Instruction* combined = level->odd;  // the elements of the next level
      if (pairs > 1) {
        const auto next = AsInterleaved(level->odd);
        if (!next) return std::nullopt;
        combined = next->elements;
      }
      if (!Combines(combined, elements, 0, 2, elements, 1)) return std::nullopt;
      const bool has_rest = level->rest->shape().dim(dim_) > 0;
      if (has_rest && !Combines(level->rest, level->odd, 0, 1, elements, 2)) return std::nullopt;
      elements = combined;
      root = level->odd;
    }
    return root == elements ? combiner_ : std::nullopt;
  }

 private:
  // x = op(a[first::stride], b[second::2]) with the one operation of this scan.
  bool Combines(const Instruction* x, const Instruction* a, int64_t first, int64_t stride, const Instruction* b,
                int64_t second) {
    switch (x->opcode()) {
      case Opcode::kAdd:
      case Opcode::kMultiply:
      case Opcode::kMaximum:
      case Opcode::kMinimum:
      case Opcode::kAnd:
      case Opcode::kOr:
        break;
      default:
        return false;
    }
    if (combiner_ && *combiner_ != x->opcode()) return false;
    combiner_ = x->opcode();
    const auto are = [&](const Instruction* left, const Instruction* right) {
      return IsStrided(left, a, dim_, first, stride) && IsStrided(right, b, dim_, second, 2);
    };
    return are(x->operand(0), x->operand(1)) || are(x->operand(1), x->operand(0));  // all of them commute
  }

  const int64_t dim_;
  std::optional<Opcode> combiner_;
};

double NeutralOf(Opcode combiner, DType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (combiner) {
    case Opcode::kMultiply:
      return 1;
    case Opcode::kMaximum:
      return -infinity;
    case Opcode::kMinimum:
      return infinity;
    default:
      return 0;
  }
}

// Types whose neutral element the doubles above name.
bool IsSupported(Opcode combiner, DType dtype) {
  if (combiner == Opcode::kAnd || combiner == Opcode::kOr) return false;
  if (combiner == Opcode::kMaximum || combiner == Opcode::kMinimum) return dtype == DType::kF32 || dtype == DType::kF64;
  return dtype != DType::kPred && (IsFloat(dtype) || IsInteger(dtype));
}

Instruction* CumulativeWindow(Instruction* x, int64_t dim, Opcode combiner, bool reverse, Builder& builder) {
  const DType dtype = x->shape().dtype();
  hlo::WindowAttr attr;
  attr.window.resize(x->shape().rank());
  attr.window[dim].size = x->shape().dim(dim);
  (reverse ? attr.window[dim].pad_high : attr.window[dim].pad_low) = x->shape().dim(dim) - 1;
  return builder.Add(Opcode::kReduceWindow, {x, builder.Scalar(dtype, NeutralOf(combiner, dtype))}, attr,
                     {builder.ScalarComputation(combiner, dtype)});
}

bool IsReversal(const Instruction* x, int64_t dim) {
  return x->opcode() == Opcode::kReverse && x->attr<hlo::DimensionsAttr>().dims == DimVector{dim};
}

bool Replace(Instruction* root, Builder& builder) {
  const auto top = AsInterleaved(root);
  if (!top || root->shape().dim(top->dim) < kMinExtent) return false;
  const auto combiner = ScanMatcher(*top).Match(root, top->elements);
  if (!combiner || !IsSupported(*combiner, root->shape().dtype())) return false;
  builder.set_metadata(root->metadata());
  if (!IsReversal(top->elements, top->dim)) {
    root->ReplaceAllUsesWith(CumulativeWindow(top->elements, top->dim, *combiner, false, builder));
    return true;
  }
  // From the end: both reversals go.
  Instruction* scan = CumulativeWindow(top->elements->operand(0), top->dim, *combiner, true, builder);
  const std::vector<Instruction*> users = root->users();
  for (Instruction* user : users) {
    if (IsReversal(user, top->dim) && !user->has_sharding()) user->ReplaceAllUsesWith(scan);
  }
  root->ReplaceAllUsesWith(builder.Add(Opcode::kReverse, {scan}, hlo::DimensionsAttr{{top->dim}}));
  return true;
}

bool RunOn(Computation& computation) {
  std::vector<Instruction*> instructions;
  for (const auto& instruction : computation.instructions()) instructions.push_back(instruction.get());
  Builder builder(&computation);
  bool changed = false;
  // From the end: the top of a tree before its levels, which look the same.
  for (size_t i = instructions.size(); i-- > 0;) {
    Instruction* root = instructions[i];
    if (root->has_sharding() || (root->users().empty() && !root->IsRoot())) continue;
    changed |= Replace(root, builder);
  }
  if (changed) {
    computation.RemoveDead();
    computation.SortTopologically();
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> RunRecognizeScans(hlo::Module& module) {
  bool changed = false;
  for (size_t i = 0; i < module.computations().size(); ++i) changed |= RunOn(*module.computations()[i]);
  if (changed) module.SortComputations();
  return changed;
}

}  // namespace gangway::passes

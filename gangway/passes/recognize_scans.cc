// A prefix combination written as a tree of slices (jax.lax.associative_scan): neighbours combined in pairs, the pairs
// scanned by the same tree, and what it gives interleaved with its combination with the elements in between. By known
// monoids it becomes one cumulative reduce-window, by any other function, of several arrays together too, a scan call
// (hlo/scan_call.h): the partitioner scans both shard by shard.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "gangway/hlo/builder.h"
#include "gangway/hlo/scan_call.h"
#include "gangway/passes/interleaved.h"
#include "gangway/passes/passes.h"
#include "gangway/passes/scan_tree.h"

namespace gangway::passes {
namespace {

using hlo::Builder;
using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Shorter ones are as well left alone.
constexpr int64_t kMinExtent = 4;

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
      const bool has_rest = level->rest != nullptr && level->rest->shape().dim(dim_) > 0;
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

// Scans of arrays together; roots that belong to one scan share it.
class JointScans {
 public:
  explicit JointScans(Computation* computation) : computation_(computation), builder_(computation) {}

  bool Replace(Instruction* root) {
    if (inner_.contains(root)) return false;
    const auto tree = MatchScanTree(root);
    if (!tree) return false;
    inner_.insert(tree->inner.begin(), tree->inner.end());
    builder_.set_metadata(root->metadata());
    root->ReplaceAllUsesWith(ResultOf(*tree));
    return true;
  }

 private:
  using Arrays = std::vector<ScanTree::Array>;

  Instruction* ResultOf(const ScanTree& tree) {
    for (const auto& [arrays, scan] : made_) {
      if (!std::is_permutation(arrays.begin(), arrays.end(), tree.arrays.begin(), tree.arrays.end())) continue;
      const auto it = std::find(arrays.begin(), arrays.end(), tree.arrays[0]);
      return builder_.GetTupleElement(scan, it - arrays.begin());
    }
    Instruction* scan = ScanCall(tree);
    if (tree.arrays.size() == 1) return scan;
    made_.emplace_back(tree.arrays, scan);
    return builder_.GetTupleElement(scan, 0);
  }

  Instruction* ScanCall(const ScanTree& tree) {
    std::vector<Instruction*> operands;
    std::vector<Shape> shapes;
    for (const ScanTree::Array& array : tree.arrays) {
      operands.push_back(array.elements);
      shapes.push_back(WithoutLayout(array.elements->shape()));
    }
    hlo::CustomCallAttr attr;
    attr.target = std::string(hlo::kScanCall);
    attr.backend_config = absl::StrCat(tree.dim);
    const Shape shape = shapes.size() == 1 ? shapes[0] : Shape::Tuple(shapes);
    return builder_.Add(Opcode::kCustomCall, std::move(operands), std::move(attr),
                        {ScalarCombiner(tree, computation_->module())}, shape);
  }

  Computation* computation_;
  Builder builder_;
  absl::flat_hash_set<const Instruction*> inner_;  // of trees that are replaced
  std::vector<std::pair<Arrays, Instruction*>> made_;
};

bool RunOn(Computation& computation) {
  std::vector<Instruction*> instructions;
  for (const auto& instruction : computation.instructions()) instructions.push_back(instruction.get());
  Builder builder(&computation);
  JointScans joint(&computation);
  bool changed = false;
  // From the end: the top of a tree before its levels, which look the same.
  for (size_t i = instructions.size(); i-- > 0;) {
    Instruction* root = instructions[i];
    if (root->has_sharding() || (root->users().empty() && !root->IsRoot())) continue;
    changed |= Replace(root, builder) || joint.Replace(root);
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

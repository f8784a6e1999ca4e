#include "gangway/passes/scan_tree.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "gangway/passes/interleaved.h"

namespace gangway::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

constexpr int64_t kMinExtent = 4;  // of a tree that shows its function twice
constexpr size_t kMaxArrays = 16;
constexpr size_t kMaxOperations = 200;  // of the function

// The scalar constant that `x` repeats; null when it is no such thing.
const Literal* RepeatedConstant(const Instruction* x) {
  while (x->opcode() == Opcode::kBroadcast) x = x->operand(0);
  const auto* constant = x->attr_if<hlo::ConstantAttr>();
  return constant != nullptr && x->shape().rank() == 0 ? constant->literal.get() : nullptr;
}

// An argument of the function: elements of an array, or those after them.
struct Argument {
  size_t array = 0;
  bool after = false;
};

// What one expression of the function reads at the top level of the tree.
class Arguments {
 public:
  Arguments(int64_t dim, int64_t extent) : dim_(dim), extent_(extent) {}

  // Of every array, in the order they were met.
  const std::vector<Instruction*>& arrays() const { return arrays_; }

  size_t Add(Instruction* array) {
    const auto it = std::find(arrays_.begin(), arrays_.end(), array);
    if (it == arrays_.end()) arrays_.push_back(array);
    return static_cast<size_t>((it == arrays_.end() ? arrays_.end() - 1 : it) - arrays_.begin());
  }

  std::optional<Argument> Of(const Instruction* x) const {
    if (x->opcode() != Opcode::kSlice || x->operand(0)->shape().dim(dim_) != extent_) return std::nullopt;
    const auto it = std::find(arrays_.begin(), arrays_.end(), x->operand(0));
    for (const bool after : {false, true}) {
      if (it != arrays_.end() && IsStrided(x, *it, dim_, after, 2)) {
        return Argument{static_cast<size_t>(it - arrays_.begin()), after};
      }
    }
    return std::nullopt;
  }

  // Collects the arrays that `x`, of the next level, is made of by elementwise operations; false when it is not.
  bool Collect(Instruction* x) {
    std::vector<Instruction*> stack = {x};
    absl::flat_hash_set<const Instruction*> seen;
    while (!stack.empty()) {
      Instruction* top = stack.back();
      stack.pop_back();
      if (!seen.insert(top).second || RepeatedConstant(top) != nullptr) continue;
      if (seen.size() > kMaxOperations || top->has_sharding() || top->shape().dims() != x->shape().dims()) return false;
      if (top->opcode() == Opcode::kSlice) {
        Instruction* array = top->operand(0);
        const bool is_argument = array->shape().dim(dim_) == extent_ &&
                                 (IsStrided(top, array, dim_, 0, 2) || IsStrided(top, array, dim_, 1, 2));
        if (!is_argument) return false;
        Add(array);
      } else if (hlo::IsElementwise(top->opcode())) {
        stack.insert(stack.end(), top->operands().begin(), top->operands().end());
      } else {
        return false;
      }
    }
    return arrays_.size() <= kMaxArrays;
  }

 private:
  const int64_t dim_, extent_;
  std::vector<Instruction*> arrays_;
};

class TreeMatcher {
 public:
  explicit TreeMatcher(int64_t dim, int64_t extent) : dim_(dim), arguments_(dim, extent) {
    for (int64_t n = extent; n > 0; n /= 2) extents_.push_back(n);
  }

  std::optional<ScanTree> Match(Instruction* root, Instruction* elements) {
    arguments_.Add(elements);
    arrays_.resize(1);
    arrays_[0].elements.assign(extents_.size(), nullptr);
    arrays_[0].scans.assign(extents_.size(), nullptr);
    arrays_[0].elements[0] = elements;
    arrays_[0].scans[0] = root;
    if (!WalkDown(0)) return std::nullopt;
    // What one array's expressions read is bound level by level, and may bind more.
    do {
      bound_ = false;
      for (size_t a = 0; a < arrays_.size(); ++a) {
        if (!CheckReductions(a) || !WalkDown(a) || !CheckScans(a)) return std::nullopt;
      }
    } while (bound_);
    return Found();
  }

 private:
  struct Array {
    std::vector<Instruction*> elements, scans;  // by level; null where unknown
  };

  ScanTree Found() const {
    ScanTree tree{dim_, {}, {}};
    for (const Array& array : arrays_) {
      tree.arrays.push_back({array.elements[0], array.elements[1]});
      std::copy_if(array.scans.begin() + 1, array.scans.end(), std::back_inserter(tree.inner),
                   [](const Instruction* scan) { return scan != nullptr; });
    }
    return tree;
  }

  bool Bind(Instruction* value, Instruction** slot) {
    if (*slot == nullptr) {
      *slot = value;
      bound_ = true;
    }
    return *slot == value;
  }

  // Elements and scans of the lower levels, as the scans of the upper ones show them.
  bool WalkDown(size_t a) {
    Array& array = arrays_[a];
    for (size_t k = 0; k + 1 < extents_.size(); ++k) {
      if (array.scans[k] == nullptr) continue;
      const auto level = AsInterleaved(array.scans[k]);
      if (!level || level->dim != dim_) return false;
      if (!Bind(level->elements, &array.elements[k]) || !Bind(level->odd, &array.scans[k + 1])) return false;
    }
    Instruction* last = array.scans.back();
    return last == nullptr || Bind(last, &array.elements.back());
  }

  // The elements of a level are the function of those of the level above.
  bool CheckReductions(size_t a) {
    Instruction* reduced = arrays_[a].elements[1];
    if (reduced == nullptr || !arguments_.Collect(reduced)) return false;
    for (size_t n = arrays_.size(); n < arguments_.arrays().size(); ++n) {
      arrays_.push_back({std::vector<Instruction*>(extents_.size()), std::vector<Instruction*>(extents_.size())});
      Bind(arguments_.arrays()[n], &arrays_.back().elements[0]);
    }
    for (size_t k = 1; k + 1 < extents_.size(); ++k) {
      if (arrays_[a].elements[k + 1] != nullptr && !Unify(a, arrays_[a].elements[k + 1], k, false)) return false;
    }
    return true;
  }

  // Between the scans of the level below: the function of those and of the elements that come after.
  bool CheckScans(size_t a) {
    for (size_t k = 0; k + 1 < extents_.size(); ++k) {
      if (arrays_[a].scans[k] == nullptr || extents_[k] < 3) continue;
      if (!Unify(a, AsInterleaved(arrays_[a].scans[k])->rest, k, true)) return false;
    }
    return true;
  }

  // `x` is the function for array `a` at level `k`: of neighbours, or (`of_scans`) of scans and what comes after.
  bool Unify(size_t a, Instruction* x, size_t k, bool of_scans) {
    std::vector<std::pair<const Instruction*, Instruction*>> stack = {{arrays_[a].elements[1], x}};
    absl::flat_hash_set<std::pair<const Instruction*, const Instruction*>> seen;
    while (!stack.empty()) {
      const auto [pattern, here] = stack.back();
      stack.pop_back();
      if (!seen.insert({pattern, here}).second) continue;
      if (const auto argument = arguments_.Of(pattern)) {
        if (!UnifyArgument(*argument, here, k, of_scans)) return false;
      } else if (const Literal* constant = RepeatedConstant(pattern)) {
        const Literal* other = RepeatedConstant(here);
        if (other == nullptr || other->shape() != constant->shape() || other->bytes() != constant->bytes())
          return false;
      } else {
        if (pattern->opcode() != here->opcode() || pattern->attributes() != here->attributes()) return false;
        if (pattern->operand_count() != here->operand_count() || here->has_sharding()) return false;
        if (pattern->shape().dtype() != here->shape().dtype()) return false;
        for (int64_t i = 0; i < here->operand_count(); ++i) stack.emplace_back(pattern->operand(i), here->operand(i));
      }
    }
    return true;
  }

  bool UnifyArgument(const Argument& argument, Instruction* x, size_t k, bool of_scans) {
    Array& array = arrays_[argument.array];
    const bool is_scan = of_scans && !argument.after;
    Instruction** slot = is_scan ? &array.scans[k + 1] : &array.elements[k];
    const int64_t first = argument.after ? (of_scans ? 2 : 1) : 0, stride = is_scan ? 1 : 2;
    if (*slot == nullptr) {
      const bool whole = x->shape().dim(dim_) == extents_[is_scan ? k + 1 : k] && first == 0;
      if (!whole && x->opcode() != Opcode::kSlice) return false;
      Bind(whole ? x : x->operand(0), slot);
      if ((*slot)->shape().dim(dim_) != extents_[is_scan ? k + 1 : k]) return false;
    }
    return IsStrided(x, *slot, dim_, first, stride);
  }

  const int64_t dim_;
  Arguments arguments_;
  std::vector<int64_t> extents_;  // by level
  std::vector<Array> arrays_;     // as in arguments_
  bool bound_ = false;            // something that was unknown
};

}  // namespace

std::optional<ScanTree> MatchScanTree(Instruction* root) {
  const auto top = AsInterleaved(root);
  if (!top || root->shape().dim(top->dim) < kMinExtent) return std::nullopt;
  return TreeMatcher(top->dim, root->shape().dim(top->dim)).Match(root, top->elements);
}

hlo::Computation* ScalarCombiner(const ScanTree& tree, hlo::Module* module) {
  hlo::Computation* combiner = module->AddComputation("combine");
  hlo::Builder builder(combiner);
  Arguments arguments(tree.dim, tree.arrays[0].elements->shape().dim(tree.dim));
  for (const ScanTree::Array& array : tree.arrays) arguments.Add(array.elements);
  std::vector<Instruction*> parameters;
  for (size_t i = 0; i < 2 * tree.arrays.size(); ++i) {
    const Shape scalar(tree.arrays[i % tree.arrays.size()].elements->shape().dtype(), {});
    parameters.push_back(builder.Parameter(static_cast<int64_t>(i), scalar, "p"));
  }
  absl::flat_hash_map<const Instruction*, Instruction*> made;
  std::vector<Instruction*> results;
  for (const ScanTree::Array& array : tree.arrays) {
    std::vector<Instruction*> stack = {array.reduced};
    while (!stack.empty()) {
      const Instruction* top = stack.back();
      if (made.contains(top)) {
        stack.pop_back();
        continue;
      }
      if (const auto argument = arguments.Of(top)) {
        made[top] = parameters[argument->array + (argument->after ? tree.arrays.size() : 0)];
        continue;
      }
      if (const Literal* constant = RepeatedConstant(top)) {
        made[top] = builder.Constant(*constant);
        continue;
      }
      std::vector<Instruction*> operands;
      for (Instruction* operand : top->operands()) {
        made.contains(operand) ? operands.push_back(made.at(operand)) : stack.push_back(operand);
      }
      if (static_cast<int64_t>(operands.size()) < top->operand_count()) continue;
      made[top] = combiner->AddClone(*top, Shape(top->shape().dtype(), {}), std::move(operands));
    }
    results.push_back(made.at(array.reduced));
  }
  combiner->set_root(results.size() == 1 ? results[0] : builder.Tuple(std::move(results)));
  return combiner;
}

}  // namespace gangway::passes

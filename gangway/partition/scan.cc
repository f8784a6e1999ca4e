#include "gangway/partition/scan.h"

#include <utility>

#include "absl/container/flat_hash_map.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Arrays = std::vector<Instruction*>;

// Up: neighbours are combined in pairs until one element is left. Down: every pair's first element is combined with
// what comes before the pair; the second one's result is that of the pair.
class Scanner {
 public:
  Scanner(const ScanSpec& spec, const Sharding& sharding, Context& context)
      : spec_(spec), sharding_(sharding), context_(context), builder_(context.builder()) {}

  Arrays Run(Arrays arrays) {
    const AxisList& axes = sharding_.dims[spec_.dim].axes;
    std::vector<Level> levels;
    Arrays totals = Up(std::move(arrays), &levels);
    Carry carry;
    if (!axes.empty()) carry = CarryFrom(totals, axes);
    return Down(levels, std::move(totals), carry);
  }

 private:
  struct Level {
    int64_t extent = 0;
    Arrays outer;  // what meets the carry: of every pair the first in scan order, and a last one without partner
  };
  // What comes before the shard; meaningless where `present` is false.
  struct Carry {
    Arrays values;
    Instruction* present = nullptr;
  };

  int64_t ExtentOf(const Arrays& arrays) const { return arrays[0]->shape().dim(spec_.dim); }

  Arrays Up(Arrays arrays, std::vector<Level>* levels) {
    while (ExtentOf(arrays) > 1) {
      const int64_t extent = ExtentOf(arrays), pairs = extent / 2;
      const Arrays even = Strided(arrays, 0), odd = Strided(arrays, 1);
      // In reverse an odd number leaves the first element alone.
      const Arrays& single = even;
      Arrays next;
      if (extent % 2 == 0) {
        next = Combine(even, odd);
        levels->push_back({extent, spec_.reverse ? odd : even});
      } else if (!spec_.reverse) {
        next = Join(Combine(Cut(even, 0, pairs), odd), Cut(single, pairs, pairs + 1));
        levels->push_back({extent, even});
      } else {
        next = Join(Cut(single, 0, 1), Combine(odd, Cut(even, 1, pairs + 1)));
        levels->push_back({extent, even});
      }
      arrays = std::move(next);
    }
    return arrays;
  }

  Arrays Down(const std::vector<Level>& levels, Arrays top, const Carry& carry) {
    Arrays scans = WithCarry(std::move(top), carry);
    for (size_t i = levels.size(); i-- > 0;) scans = Expand(levels[i], scans, carry);
    return scans;
  }

  // The scans of `level` from those of its pairs.
  Arrays Expand(const Level& level, const Arrays& scans, const Carry& carry) {
    const int64_t count = ExtentOf(scans);  // of pairs, and a single one where the extent is odd
    const bool reverse = spec_.reverse;
    const Arrays first = reverse ? Cut(level.outer, count - 1, count) : Cut(level.outer, 0, 1);
    const Arrays rest = reverse ? Cut(level.outer, 0, count - 1) : Cut(level.outer, 1, count);
    Arrays outer = WithCarry(first, carry);
    if (count > 1) {
      const Arrays before = reverse ? Cut(scans, 1, count) : Cut(scans, 0, count - 1);
      const Arrays others = Ordered(before, rest);
      outer = reverse ? Join(others, outer) : Join(outer, others);
    }
    const Arrays both = reverse ? Interleave(scans, outer) : Interleave(outer, scans);
    const int64_t surplus = 2 * count - level.extent;
    return reverse ? Cut(both, surplus, 2 * count) : Cut(both, 0, level.extent);
  }

  // Elements next to the shard's beginning, with what comes before it.
  Arrays WithCarry(Arrays arrays, const Carry& carry) {
    if (carry.present == nullptr) return arrays;
    const Arrays combined = Ordered(carry.values, arrays);
    Arrays result;
    for (size_t i = 0; i < arrays.size(); ++i) {
      Instruction* present =
          builder_.BroadcastScalar(carry.present, WithDType(WithoutLayout(arrays[i]->shape()), DType::kPred));
      result.push_back(builder_.Select(present, combined[i], arrays[i]));
    }
    return result;
  }

  // Every shard's total, scanned by everyone; a shard needs the scan up to the one before it.
  Carry CarryFrom(const Arrays& totals, const AxisList& axes) {
    const int64_t shards = ProductOf(axes);
    Arrays all;
    for (Instruction* total : totals) {
      all.push_back(context_.collectives().AllGather(total, spec_.dim, *sharding_.mesh, axes));
    }
    Sharding whole = sharding_;
    whole.dims[spec_.dim].axes.clear();
    all = Scanner(spec_, whole, context_).Run(std::move(all));
    Instruction* place = context_.coordinates().Of(sharding_.mesh, axes);
    Instruction* source = builder_.Binary(spec_.reverse ? Opcode::kAdd : Opcode::kSubtract, place, builder_.Index(1));
    Carry carry;
    carry.present = spec_.reverse ? builder_.Compare(hlo::ComparisonDirection::kLt, place, builder_.Index(shards - 1))
                                  : builder_.Compare(hlo::ComparisonDirection::kGt, place, builder_.Index(0));
    for (Instruction* scan : all) {
      std::vector<Instruction*> starts(scan->shape().rank(), builder_.Index(0));
      starts[spec_.dim] = source;
      DimVector sizes = scan->shape().dims();
      sizes[spec_.dim] = 1;
      carry.values.push_back(builder_.DynamicSlice(scan, std::move(starts), std::move(sizes)));
    }
    return carry;
  }

  // `before` comes before `after` in the order of the scan; the combiner takes the lower positions first.
  Arrays Ordered(const Arrays& before, const Arrays& after) {
    return spec_.reverse ? Combine(after, before) : Combine(before, after);
  }

  Arrays Combine(const Arrays& a, const Arrays& b) {
    absl::flat_hash_map<const Instruction*, Instruction*> made;
    for (size_t i = 0; i < a.size(); ++i) {
      made[spec_.combiner->parameter(static_cast<int64_t>(i))] = a[i];
      made[spec_.combiner->parameter(static_cast<int64_t>(i + a.size()))] = b[i];
    }
    const DimVector& dims = a[0]->shape().dims();
    for (const auto& instruction : spec_.combiner->instructions()) {
      if (made.contains(instruction.get()) || instruction->opcode() == Opcode::kTuple) continue;
      const Shape shape(instruction->shape().dtype(), dims);
      Arrays operands;
      for (const Instruction* operand : instruction->operands()) operands.push_back(made.at(operand));
      Instruction*& result = made[instruction.get()];
      if (instruction->opcode() == Opcode::kConstant) {
        Literal literal = *instruction->attr<hlo::ConstantAttr>().literal;
        result = builder_.BroadcastScalar(builder_.Constant(std::move(literal)), shape);
      } else {
        result = context_.target()->AddClone(*instruction, shape, std::move(operands));
        result->set_shardings(std::nullopt);
      }
    }
    const Instruction* root = spec_.combiner->root();
    if (root->opcode() != Opcode::kTuple) return {made.at(root)};
    Arrays results;
    for (const Instruction* element : root->operands()) results.push_back(made.at(element));
    return results;
  }

  Arrays Cut(const Arrays& arrays, int64_t begin, int64_t end) {
    Arrays result;
    for (Instruction* x : arrays) {
      DimVector starts(x->shape().rank(), 0), limits = x->shape().dims();
      starts[spec_.dim] = begin;
      limits[spec_.dim] = end;
      const bool whole = begin == 0 && end == x->shape().dim(spec_.dim);
      result.push_back(whole ? x : builder_.Slice(x, starts, limits));
    }
    return result;
  }

  Arrays Strided(const Arrays& arrays, int64_t begin) {
    Arrays result;
    for (Instruction* x : arrays) {
      DimVector starts(x->shape().rank(), 0), strides(x->shape().rank(), 1);
      starts[spec_.dim] = begin;
      strides[spec_.dim] = 2;
      result.push_back(builder_.Slice(x, starts, x->shape().dims(), strides));
    }
    return result;
  }

  Arrays Join(const Arrays& a, const Arrays& b) {
    Arrays result;
    for (size_t i = 0; i < a.size(); ++i) result.push_back(builder_.Concatenate({a[i], b[i]}, spec_.dim));
    return result;
  }

  Arrays Interleave(const Arrays& a, const Arrays& b) {
    Arrays result;
    for (size_t i = 0; i < a.size(); ++i) {
      DimVector apart = a[i]->shape().dims(), joined = apart;
      apart.insert(apart.begin() + spec_.dim + 1, 1);
      joined[spec_.dim] *= 2;
      Instruction* pair =
          builder_.Concatenate({builder_.Reshape(a[i], apart), builder_.Reshape(b[i], apart)}, spec_.dim + 1);
      result.push_back(builder_.Reshape(pair, joined));
    }
    return result;
  }

  const ScanSpec& spec_;
  const Sharding& sharding_;
  Context& context_;
  hlo::Builder& builder_;
};

}  // namespace

bool IsArrayCombiner(const hlo::Computation& combiner) {
  for (const auto& instruction : combiner.instructions()) {
    const Opcode opcode = instruction->opcode();
    if (opcode == Opcode::kTuple && instruction->IsRoot()) continue;
    if (!instruction->shape().IsArray() || instruction->shape().rank() != 0) return false;
    if (!hlo::IsElementwise(opcode) && opcode != Opcode::kConstant && opcode != Opcode::kParameter) return false;
  }
  return true;
}

std::vector<Instruction*> EmitScan(const ScanSpec& spec, std::vector<Instruction*> arrays, const Sharding& sharding,
                                   Context& context) {
  return Scanner(spec, sharding, context).Run(std::move(arrays));
}

}  // namespace gangway::partition

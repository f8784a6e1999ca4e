// sort along a split dimension, without gathering it: Leighton's columnsort (IEEE Trans. Comput. C-34, 1985). Shards
// are sorted, dealt out among all shards, sorted, brought back, sorted, and at last neighbours' halves are merged.
// Every element travels about three times, however many shards there are.
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/table.h"
#include "gangway/partition/shard_pairs.h"

namespace gangway::partition {
namespace {

using hlo::Builder;
using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using Arrays = std::vector<Instruction*>;

bool IsSplat(const Instruction& i) { return i.opcode() == Opcode::kConstant; }

// The value itself, but for values that are equal anyway: zeros of either sign, numbers that are none.
const Instruction* WithoutCanonicalForm(const Instruction* i) {
  while (i->opcode() == Opcode::kSelect && IsSplat(*i->operand(1))) {
    const Instruction &test = *i->operand(0), &otherwise = *i->operand(2);
    const auto* compare = test.attr_if<hlo::CompareAttr>();
    if (compare == nullptr) return i;
    const bool is_nan = compare->direction == hlo::ComparisonDirection::kNe && test.operand(0) == test.operand(1);
    const bool is_zero =
        compare->direction == hlo::ComparisonDirection::kEq && IsIdentity(*test.operand(1), Reduction::kSum);
    if (!is_nan && !is_zero) return i;
    i = &otherwise;
  }
  return i;
}

// Elements of which neither comes before the other are the same: nothing tells their order afterwards.
bool TellsAllApart(const Computation& less) {
  const Instruction& root = *less.root();
  if (root.opcode() != Opcode::kCompare || less.parameters().size() != 2) return false;
  const Instruction *a = WithoutCanonicalForm(root.operand(0)), *b = WithoutCanonicalForm(root.operand(1));
  return a != b && a->opcode() == Opcode::kParameter && b->opcode() == Opcode::kParameter;
}

// The operand that numbers the elements along the sorted dimension; -1 when none does.
int64_t PlacesAmong(const Instruction& sort) {
  for (int64_t i = 0; i < sort.operand_count(); ++i) {
    const auto* dims = sort.operand(i)->attr_if<hlo::DimensionsAttr>();
    if (sort.operand(i)->opcode() == Opcode::kIota && dims->dims[0] == sort.attr<hlo::SortAttr>().dimension &&
        BitWidth(sort.shape().IsTuple() ? sort.shape().tuple()[i].dtype() : sort.shape().dtype()) >= 32) {
      return i;
    }
  }
  return -1;
}

class ColumnSort {
 public:
  ColumnSort(const Instruction& instruction, Context& context)
      : instruction_(instruction),
        dim_(instruction.attr<hlo::SortAttr>().dimension),
        context_(context),
        builder_(context.builder()) {}

  // False when the dimension is not split or its shards are too small or too odd.
  bool Choose() {
    const LocalValue& value = context_.Value(*instruction_.operand(0));
    held_ = value.sharding;
    const Sharding wanted = context_.Wanted(instruction_);
    if (!SameMesh(held_.mesh, context_.mesh())) return false;
    if (!held_.IsSplit(dim_) && SameMesh(wanted.mesh, context_.mesh()))
      held_ = Context::WithManual(wanted, held_.manual);
    held_.unreduced.clear();
    shards_ = held_.ShardCount(dim_);
    const int64_t extent = value.global.dim(dim_);
    rows_ = extent / shards_;
    if (shards_ < 2 || extent % shards_ != 0 || rows_ % shards_ != 0 || rows_ % 2 != 0) return false;
    if (rows_ < 2 * (shards_ - 1) * (shards_ - 1)) return false;
    places_ = PlacesAmong(instruction_);
    numbers_ = places_ < 0 && (instruction_.operand_count() > 1 || !TellsAllApart(*instruction_.called()[0]));
    return true;
  }

  double Cost() {
    double cost = 0;
    Shape shard;
    for (int64_t i = 0; i < instruction_.operand_count(); ++i) {
      const LocalValue& value = context_.Value(*instruction_.operand(i));
      shard = ShardShape(value.global, held_);
      cost += context_.ReshardCost(value, held_) + CostOf(shard) + ResultCost(instruction_, i, held_, context_);
    }
    return numbers_ ? cost + CostOf(WithDType(shard, DType::kS32)) : cost;
  }

  absl::Status Emit() {
    Arrays arrays;
    for (const Instruction* operand : instruction_.operands()) {
      GW_ASSIGN_OR_RETURN(Instruction * local, context_.Reshard(context_.Value(*operand), held_));
      arrays.push_back(local);
    }
    if (numbers_) {
      places_ = static_cast<int64_t>(arrays.size());
      arrays.push_back(Numbers(arrays[0]->shape()));
    }
    less_ = places_ < 0 ? context_.CloneCallee(instruction_.called()[0]) : LessByPlace(arrays);
    arrays = Sort(std::move(arrays));
    arrays = Sort(Deal(std::move(arrays)));
    arrays = Sort(TakeBack(std::move(arrays)));
    arrays = MergeHalves(arrays);
    arrays.resize(instruction_.operand_count());
    LocalValues values;
    const std::vector<Shape> globals = Leaves(instruction_.shape());
    for (size_t i = 0; i < arrays.size(); ++i) values.push_back({arrays[i], held_, WithoutLayout(globals[i]), nullptr});
    context_.Set(instruction_, std::move(values));
    return absl::OkStatus();
  }

 private:
  const AxisList& axes() const { return held_.dims[dim_].axes; }

  // Two all-to-alls and two permutes of half a shard.
  double CostOf(const Shape& shard) const {
    const double bytes = static_cast<double>(shard.ByteSize());
    return bytes * (1 + 2 * (1 - 1 / static_cast<double>(shards_))) + 4 * kBytesPerCollective;
  }

  // Where each element stands in the whole array.
  Instruction* Numbers(const Shape& like) {
    const Shape shape = WithDType(WithoutLayout(like), DType::kS32);
    Instruction* offset = context_.coordinates().Scaled(held_.mesh, axes(), rows_);
    return builder_.Binary(Opcode::kAdd, builder_.Iota(shape, dim_), builder_.BroadcastScalar(offset, shape));
  }

  // The program's comparison; of elements that it leaves equal the one that stood first comes first.
  Computation* LessByPlace(const Arrays& arrays) {
    const Computation& source = *instruction_.called()[0];
    Computation* less = context_.module().target->AddComputation(source.name() + ".by_place");
    Builder builder(less);
    std::vector<Instruction*> parameters;
    for (size_t i = 0; i < 2 * arrays.size(); ++i) {
      const Shape scalar = Shape::Scalar(arrays[i / 2]->shape().dtype());
      parameters.push_back(builder.Parameter(static_cast<int64_t>(i), scalar, i % 2 == 0 ? "a" : "b"));
    }
    Instruction* first = Inlined(source, parameters, less);
    std::vector<Instruction*> swapped = parameters;
    for (size_t i = 0; i < swapped.size(); i += 2) std::swap(swapped[i], swapped[i + 1]);
    Instruction* second = Inlined(source, swapped, less);
    Instruction* earlier =
        builder.Compare(hlo::ComparisonDirection::kLt, parameters[2 * places_], parameters[2 * places_ + 1]);
    Instruction* tie = builder.Binary(Opcode::kAnd, builder.Unary(Opcode::kNot, second), earlier);
    less->set_root(builder.Binary(Opcode::kOr, first, tie));
    return less;
  }

  Instruction* Inlined(const Computation& source, const std::vector<Instruction*>& arguments, Computation* into) {
    absl::flat_hash_map<const Instruction*, Instruction*> made;
    for (const auto& owned : source.instructions()) {
      const Instruction& i = *owned;
      if (i.opcode() == Opcode::kParameter) {
        made[&i] = arguments[i.attr<hlo::ParameterAttr>().number];
        continue;
      }
      Arrays operands;
      for (const Instruction* operand : i.operands()) operands.push_back(made.at(operand));
      Instruction* copy = into->AddClone(i, i.shape(), std::move(operands));
      copy->set_called(context_.CloneCallees(i));
      made[&i] = copy;
    }
    return made.at(source.root());
  }

  Arrays Sort(Arrays arrays) {
    Instruction* sort = builder_.Add(Opcode::kSort, std::move(arrays), instruction_.attr<hlo::SortAttr>(), {less_});
    return context_.Unpack(sort);
  }

  // Element i of a shard goes to shard i mod p.
  Arrays Deal(Arrays arrays) {
    for (Instruction*& x : arrays) {
      x = AllToAll(Regrouped(x, rows_ / shards_, shards_));
    }
    return arrays;
  }

  Arrays TakeBack(Arrays arrays) {
    for (Instruction*& x : arrays) {
      x = Regrouped(AllToAll(x), shards_, rows_ / shards_);
    }
    return arrays;
  }

  Instruction* AllToAll(Instruction* x) { return context_.collectives().AllToAll(x, dim_, *held_.mesh, axes()); }

  // The dimension seen as `major` times `minor` elements, the other way round.
  Instruction* Regrouped(Instruction* x, int64_t major, int64_t minor) {
    const DimVector dims = x->shape().dims();
    DimVector apart = dims, order;
    apart[dim_] = major;
    apart.insert(apart.begin() + dim_ + 1, minor);
    for (int64_t d = 0; d < static_cast<int64_t>(apart.size()); ++d) order.push_back(d);
    std::swap(order[dim_], order[dim_ + 1]);
    return builder_.Reshape(builder_.Transpose(builder_.Reshape(x, apart), order), dims);
  }

  // No element is further than half a shard from its place: the second half of each shard is sorted together with the
  // first half of the next.
  Arrays MergeHalves(const Arrays& arrays) {
    const int64_t half = rows_ / 2;
    Arrays joined, first, result;
    for (Instruction* x : arrays) {
      first.push_back(Cut(x, 0, half));
      joined.push_back(builder_.Concatenate({Shifted(Cut(x, half, rows_), 1), first.back()}, dim_));
    }
    joined = Sort(std::move(joined));
    Instruction* place = context_.coordinates().Of(held_.mesh, axes());
    Instruction* is_first = builder_.Compare(hlo::ComparisonDirection::kEq, place, builder_.Index(0));
    Instruction* is_last = builder_.Compare(hlo::ComparisonDirection::kEq, place, builder_.Index(shards_ - 1));
    for (size_t i = 0; i < arrays.size(); ++i) {
      Instruction* upper = Either(is_first, first[i], Cut(joined[i], half, rows_));
      Instruction* lower = Either(is_last, Cut(arrays[i], half, rows_), Shifted(Cut(joined[i], 0, half), -1));
      result.push_back(builder_.Concatenate({upper, lower}, dim_));
    }
    return result;
  }

  Instruction* Either(Instruction* predicate, Instruction* on_true, Instruction* on_false) {
    const Shape shape = WithDType(WithoutLayout(on_true->shape()), DType::kPred);
    return builder_.Select(builder_.BroadcastScalar(predicate, shape), on_true, on_false);
  }

  // What the shard `by` places before this one has.
  Instruction* Shifted(Instruction* x, int64_t by) {
    return context_.collectives().Permute(x, ShiftPairs(*held_.mesh, axes(), -by));
  }

  Instruction* Cut(Instruction* x, int64_t begin, int64_t end) {
    DimVector starts(x->shape().rank(), 0), limits = x->shape().dims();
    starts[dim_] = begin;
    limits[dim_] = end;
    return builder_.Slice(x, starts, limits);
  }

  const Instruction& instruction_;
  const int64_t dim_;
  Context& context_;
  Builder& builder_;
  Sharding held_;
  int64_t shards_ = 1, rows_ = 0;  // of a shard, along the dimension
  int64_t places_ = -1;            // operand that breaks ties
  bool numbers_ = false;           // it has to be added
  Computation* less_ = nullptr;
};

}  // namespace

absl::Status LocalizeSort(const Instruction& instruction, Context& context) {
  ColumnSort sort(instruction, context);
  if (!sort.Choose()) return LocalizeByRule(instruction, context);
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  GW_ASSIGN_OR_RETURN(const OpPlan by_rule, PlanOp(instruction, rule, OptionsFor(instruction), context));
  return by_rule.cost - by_rule.work <= sort.Cost() ? LocalizeByChoice(instruction, context) : sort.Emit();
}

}  // namespace gangway::partition

#include "gangway/partition/emit_reshard.h"

#include <algorithm>
#include <numeric>

#include "absl/functional/function_ref.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/other_mesh.h"
#include "gangway/partition/permute_pairs.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;

// Emits the steps of one stage. The value between steps has the dimensions of the array; steps that work inside a
// dimension view it expanded, one dimension per digit and one per tile.
class StageEmitter {
 public:
  StageEmitter(const ReshardStage& stage, const DimVector& extents, CollectiveBuilder* collectives)
      : stage_(stage),
        view_(stage.view),
        mesh_(*stage.view.mesh),
        collectives_(*collectives),
        builder_(*collectives->builder()),
        extents_(extents) {}

  Instruction* Run(Instruction* value) {
    value = Pad(value);
    for (const ReshardStep& step : stage_.steps) value = Emit(step, value);
    return Trim(value);
  }

 private:
  // --- views -------------------------------------------------------------------------------------------------------
  int64_t rank() const { return static_cast<int64_t>(view_.padded.size()); }

  DimVector LocalDims(const Holders& holders) const {
    DimVector dims = view_.padded;
    for (size_t i = 0; i < holders.size(); ++i) {
      if (holders[i] != kLocal) dims[view_.digits[i].dim] /= view_.digits[i].size;
    }
    return dims;
  }

  // The digits (as index) and tiles (as -1 - dim) in order.
  std::vector<int> Places() const {
    std::vector<int> places;
    size_t digit = 0;
    for (int64_t d = 0; d < rank(); ++d) {
      while (digit < view_.digits.size() && view_.digits[digit].dim == d) places.push_back(static_cast<int>(digit++));
      places.push_back(static_cast<int>(-1 - d));
    }
    return places;
  }

  int64_t ExtentOf(int place, const Holders& holders) const {
    if (place < 0) return view_.TileExtent(-1 - place);
    return holders[place] == kLocal ? view_.digits[place].size : 1;
  }

  // x as [digits of `front`..., everything else in order].
  Instruction* ToFront(Instruction* x, const Holders& holders, const std::vector<int>& front) {
    const std::vector<int> places = Places();
    DimVector expanded, permutation;
    for (int place : places) expanded.push_back(ExtentOf(place, holders));
    for (int digit : front) permutation.push_back(std::find(places.begin(), places.end(), digit) - places.begin());
    for (size_t i = 0; i < places.size(); ++i) {
      if (std::find(front.begin(), front.end(), places[i]) == front.end())
        permutation.push_back(static_cast<int64_t>(i));
    }
    return Transposed(Reshaped(x, expanded), permutation);
  }

  // The inverse: leading dimensions are the digits of `front`.
  Instruction* FromFront(Instruction* x, const Holders& holders, const std::vector<int>& front) {
    const std::vector<int> places = Places();
    DimVector dims, permutation(places.size());
    std::vector<int> order = front;
    for (int place : places) {
      if (std::find(front.begin(), front.end(), place) == front.end()) order.push_back(place);
    }
    for (int place : order) dims.push_back(ExtentOf(place, holders));
    for (size_t i = 0; i < places.size(); ++i) {
      permutation[i] = std::find(order.begin(), order.end(), places[i]) - order.begin();
    }
    return Reshaped(Transposed(Reshaped(x, dims), permutation), LocalDims(holders));
  }

  Instruction* Reshaped(Instruction* x, const DimVector& dims) {
    return x->shape().dims() == dims ? x : builder_.Reshape(x, dims);
  }

  // Moves of dimensions of extent one are reshapes; the rest is a transpose.
  Instruction* Transposed(Instruction* x, const DimVector& permutation) {
    DimVector dims;
    std::vector<int64_t> moved;
    for (int64_t p : permutation) {
      dims.push_back(x->shape().dim(p));
      if (x->shape().dim(p) != 1) moved.push_back(p);
    }
    if (std::is_sorted(moved.begin(), moved.end())) return Reshaped(x, dims);
    return builder_.Transpose(x, permutation);
  }

  // x as [product of the first `count` dimensions, the rest].
  Instruction* JoinFront(Instruction* x, size_t count) {
    DimVector dims = {1};
    for (size_t i = 0; i < count; ++i) dims[0] *= x->shape().dim(static_cast<int64_t>(i));
    dims.insert(dims.end(), x->shape().dims().begin() + static_cast<int64_t>(count), x->shape().dims().end());
    return Reshaped(x, dims);
  }

  // --- what a step changes -----------------------------------------------------------------------------------------
  static std::vector<int> Released(const ReshardStep& step) {  // held, then local
    std::vector<int> digits;
    for (size_t i = 0; i < step.before.size(); ++i) {
      if (step.before[i] != kLocal && step.after[i] == kLocal) digits.push_back(static_cast<int>(i));
    }
    return digits;
  }
  static std::vector<int> Taken(const ReshardStep& step) {  // local, then held
    std::vector<int> digits;
    for (size_t i = 0; i < step.before.size(); ++i) {
      if (step.before[i] == kLocal && step.after[i] != kLocal) digits.push_back(static_cast<int>(i));
    }
    return digits;
  }
  AxisList AxesOf(const std::vector<int>& digits, const Holders& holders) const {
    AxisList axes;
    for (int digit : digits) axes.push_back(view_.atoms[holders[digit]]);
    return axes;
  }
  AxisList Resolved(const ReshardStep& step) const {
    AxisList axes;
    for (size_t a = 0; a < view_.atoms.size(); ++a) {
      if ((step.unreduced_before ^ step.unreduced_after) >> a & 1) axes.push_back(view_.atoms[a]);
    }
    return axes;
  }

  // The digits of one dimension that `digits` names, when they are its first local ones (in `holders`, where all of
  // them are local): then joining or splitting them is joining or splitting the dimension. -1 otherwise.
  int64_t LeadingDim(const std::vector<int>& digits, const Holders& holders) const {
    if (digits.empty()) return -1;
    const int dim = view_.digits[digits[0]].dim;
    size_t next = 0;
    for (size_t i = 0; i < holders.size(); ++i) {
      if (view_.digits[i].dim != dim || holders[i] != kLocal) continue;
      if (next == digits.size()) break;
      if (digits[next] != static_cast<int>(i)) return -1;
      ++next;
    }
    return next == digits.size() ? dim : -1;
  }

  // `digits` split by dimension.
  std::vector<std::vector<int>> ByDim(const std::vector<int>& digits) const {
    std::vector<std::vector<int>> groups;
    for (int digit : digits) {
      if (groups.empty() || view_.digits[groups.back()[0]].dim != view_.digits[digit].dim) groups.emplace_back();
      groups.back().push_back(digit);
    }
    return groups;
  }

  // --- steps -------------------------------------------------------------------------------------------------------
  Instruction* Emit(const ReshardStep& step, Instruction* x) {
    switch (step.kind) {
      case StepKind::kSlice:
        return Slice(step, x);
      case StepKind::kAllGather:
        return Gather(step, x);
      case StepKind::kAllToAll:
        return AllToAll(step, x);
      case StepKind::kPermute:
        return collectives_.Permute(x, PermutePairs(view_, step.before, step.after));
      case StepKind::kExchange:
        return Exchange(step, x);
      case StepKind::kReduceScatter:
        return ReduceScatter(step, x);
      case StepKind::kAllReduce:
        return collectives_.AllReduce(x, mesh_, Resolved(step), reduction());
      case StepKind::kMakePartial:
        return MakePartial(step, x);
      case StepKind::kSpread:
        return Spread(step, x);
      case StepKind::kMove:
        break;  // a stage of its own
    }
    return x;
  }

  Reduction reduction() const { return stage_.from.unreduced.empty() ? stage_.to.reduction : stage_.from.reduction; }

  Instruction* Slice(const ReshardStep& step, Instruction* x) {
    Holders holders = step.before;
    for (const std::vector<int>& digits : ByDim(Taken(step))) {
      const int64_t dim = LeadingDim(digits, holders);
      Holders next = holders;
      for (int digit : digits) next[digit] = step.after[digit];
      if (dim >= 0) {
        x = SliceDim(x, dim, LocalDims(next)[dim], AxesOf(digits, step.after));
      } else {
        x = JoinFront(ToFront(x, holders, digits), digits.size());
        x = SliceDim(x, 0, 1, AxesOf(digits, step.after));
        x = FromFront(x, next, digits);
      }
      holders = next;
    }
    return x;
  }

  Instruction* SliceDim(Instruction* x, int64_t dim, int64_t extent, const AxisList& axes) {
    std::vector<Instruction*> starts(x->shape().rank(), builder_.Index(0));
    starts[dim] = collectives_.coordinates()->Scaled(view_.mesh, axes, extent);
    DimVector sizes = x->shape().dims();
    sizes[dim] = extent;
    return builder_.DynamicSlice(x, std::move(starts), std::move(sizes));
  }

  Instruction* Gather(const ReshardStep& step, Instruction* x) {
    return Lengthen(step, x, [this](Instruction* part, int64_t dim, const AxisList& axes) {
      return collectives_.AllGather(part, dim, mesh_, axes);
    });
  }

  Instruction* Spread(const ReshardStep& step, Instruction* x) {
    return Lengthen(step, x, [this](Instruction* part, int64_t dim, const AxisList& axes) {
      return PlaceInIdentity(part, dim, axes);
    });
  }

  // The digits that the step releases become local: `lengthen` makes of a part a dimension as long as all parts over
  // the axes together, for one array dimension after the other.
  Instruction* Lengthen(const ReshardStep& step, Instruction* x,
                        absl::FunctionRef<Instruction*(Instruction*, int64_t, const AxisList&)> lengthen) {
    Holders holders = step.before;
    for (const std::vector<int>& digits : ByDim(Released(step))) {
      Holders next = holders;
      for (int digit : digits) next[digit] = kLocal;
      const AxisList axes = AxesOf(digits, step.before);
      if (const int64_t dim = LeadingDim(digits, next); dim >= 0) {
        x = lengthen(x, dim, axes);
      } else {
        x = JoinFront(ToFront(x, holders, digits), digits.size());
        x = FromFront(lengthen(x, 0, axes), next, digits);
      }
      holders = next;
    }
    return x;
  }

  // A dimension as long as all parts together, with the identity in the places of the others.
  Instruction* PlaceInIdentity(Instruction* x, int64_t dim, const AxisList& axes) {
    Shape whole = WithoutLayout(x->shape());
    whole.set_dim(dim, whole.dim(dim) * ProductOf(axes));
    Instruction* identity = builder_.Constant(ReductionIdentity(stage_.to.reduction, whole.dtype()));
    std::vector<Instruction*> starts(whole.rank(), builder_.Index(0));
    starts[dim] = collectives_.coordinates()->Scaled(view_.mesh, axes, x->shape().dim(dim));
    return builder_.DynamicUpdateSlice(builder_.BroadcastScalar(identity, whole), x, std::move(starts));
  }

  Instruction* ReduceScatter(const ReshardStep& step, Instruction* x) {
    Holders holders = step.before;
    for (const std::vector<int>& digits : ByDim(Taken(step))) {
      Holders next = holders;
      for (int digit : digits) next[digit] = step.after[digit];
      const AxisList axes = AxesOf(digits, step.after);
      if (const int64_t dim = LeadingDim(digits, holders); dim >= 0) {
        x = collectives_.ReduceScatter(x, dim, mesh_, axes, reduction());
      } else {
        x = JoinFront(ToFront(x, holders, digits), digits.size());
        x = FromFront(collectives_.ReduceScatter(x, 0, mesh_, axes, reduction()), next, digits);
      }
      holders = next;
    }
    return x;
  }

  // The digit of `digits` that `holders` gives to the same axes, for each of `order`.
  static std::vector<int> SameAxes(const std::vector<int>& order, const Holders& order_holders,
                                   const std::vector<int>& digits, const Holders& holders) {
    std::vector<int> result;
    for (int wanted : order) {
      for (int digit : digits) {
        if (holders[digit] == order_holders[wanted]) result.push_back(digit);
      }
    }
    return result;
  }

  Instruction* AllToAll(const ReshardStep& step, Instruction* x) {
    const std::vector<int> joined = Released(step);
    const std::vector<int> split = SameAxes(joined, step.before, Taken(step), step.after);
    const AxisList axes = AxesOf(joined, step.before);
    if (const int64_t dim = LeadingDim(split, step.before); dim >= 0) {
      x = collectives_.AllToAll(x, dim, mesh_, axes);
      // The pieces now lie one after the other along `dim`, in the places of `split`; they belong to `joined`.
      return FromFront(ToFront(x, step.before, split), step.after, joined);
    }
    x = JoinFront(ToFront(x, step.before, split), split.size());
    return FromFront(collectives_.AllToAll(x, 0, mesh_, axes), step.after, joined);
  }

  // Round k sends piece (own place + k) to the device that wants it there; the rounds together move every piece once.
  Instruction* Exchange(const ReshardStep& step, Instruction* x) {
    const std::vector<int> joined = Released(step);
    const std::vector<int> split = PairBySize(view_, joined, Taken(step));
    const AxisList sender = AxesOf(joined, step.before);
    const AxisList receiver = AxesOf(split, step.after);
    const int64_t pieces = ProductOf(sender);
    x = JoinFront(ToFront(x, step.before, split), split.size());
    Instruction* result = builder_.Splat(WithoutLayout(x->shape()), 0);
    for (int64_t round = 0; round < pieces; ++round) {
      Instruction* piece = PieceAt(x, Shifted(sender, round, pieces));
      piece = collectives_.Permute(piece, ExchangePairs(view_, step.before, step.after, joined, split, round));
      std::vector<Instruction*> starts(x->shape().rank(), builder_.Index(0));
      starts[0] = Shifted(receiver, pieces - round, pieces);
      result = builder_.DynamicUpdateSlice(result, piece, std::move(starts));
    }
    return FromFront(result, step.after, joined);
  }

  Instruction* Shifted(const AxisList& axes, int64_t by, int64_t modulus) {
    Instruction* place = collectives_.coordinates()->Of(view_.mesh, axes);
    if (by % modulus == 0) return place;
    place = builder_.Binary(hlo::Opcode::kAdd, place, builder_.Index(by));
    return builder_.Binary(hlo::Opcode::kRemainder, place, builder_.Index(modulus));
  }

  Instruction* PieceAt(Instruction* x, Instruction* index) {
    std::vector<Instruction*> starts(x->shape().rank(), builder_.Index(0));
    starts[0] = index;
    DimVector sizes = x->shape().dims();
    sizes[0] = 1;
    return builder_.DynamicSlice(x, std::move(starts), std::move(sizes));
  }

  Instruction* MakePartial(const ReshardStep& step, Instruction* x) {
    Instruction* place = collectives_.coordinates()->Of(view_.mesh, Resolved(step));
    Instruction* first = builder_.Compare(hlo::ComparisonDirection::kEq, place, builder_.Index(0));
    const Shape shape = WithoutLayout(x->shape());
    Instruction* identity = builder_.Constant(ReductionIdentity(stage_.to.reduction, shape.dtype()));
    return builder_.Select(builder_.BroadcastScalar(first, WithDType(shape, DType::kPred)), x,
                           builder_.BroadcastScalar(identity, shape));
  }

  // --- uneven dimensions -------------------------------------------------------------------------------------------
  // Local dimensions grow to what the digits divide ...
  Instruction* Pad(Instruction* x) {
    const DimVector wanted = LocalDims(view_.from);
    std::vector<hlo::PadDim> pad(rank());
    bool needed = false;
    for (int64_t d = 0; d < rank(); ++d) {
      pad[d].high = wanted[d] - x->shape().dim(d);
      needed |= pad[d].high != 0;
    }
    if (!needed) return x;
    return builder_.Pad(x, builder_.Constant(Literal(Shape::Scalar(x->shape().dtype()))), std::move(pad));
  }

  // ... and lose the surplus once they are local again.
  Instruction* Trim(Instruction* x) {
    DimVector limits = x->shape().dims();
    for (int64_t d = 0; d < rank(); ++d) {
      if (!stage_.to.IsSplit(d)) limits[d] = std::min(limits[d], extents_[d]);
    }
    if (limits == x->shape().dims()) return x;
    return builder_.Slice(x, DimVector(rank(), 0), limits);
  }

  const ReshardStage& stage_;
  const DigitView& view_;
  const Mesh& mesh_;
  CollectiveBuilder& collectives_;
  hlo::Builder& builder_;
  const DimVector& extents_;  // of the whole array
};

}  // namespace

Instruction* EmitReshard(const ReshardPlan& plan, CollectiveBuilder* collectives, Instruction* value) {
  if (plan.empty()) return value;
  if (plan.shape.ElementCount() == 0) {
    return collectives->builder()->Splat(ShardShape(WithoutLayout(plan.shape), plan.stages.back().to), 0);
  }
  for (const ReshardStage& stage : plan.stages) {
    if (!SameMesh(stage.from.mesh, stage.to.mesh)) {
      if (!stage.steps.empty()) value = collectives->Permute(value, TilePairs(stage.from, stage.to));
      continue;
    }
    value = StageEmitter(stage, plan.shape.dims(), collectives).Run(value);
  }
  return value;
}

}  // namespace gangway::partition

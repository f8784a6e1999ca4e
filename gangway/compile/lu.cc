#include "gangway/compile/lu.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace gangway::compile {
namespace {

using hlo::Builder;
using hlo::ComparisonDirection;
using hlo::Instruction;
using hlo::Opcode;

// (value, index) of the larger value, of equal ones the first.
hlo::Computation* FirstMaximum(hlo::Module* module, DType dtype) {
  hlo::Computation* computation = module->AddComputation("first_maximum");
  Builder builder(computation);
  Instruction* x = builder.Parameter(0, Shape::Scalar(dtype), "x");
  Instruction* i = builder.Parameter(1, Shape::Scalar(DType::kS32), "i");
  Instruction* y = builder.Parameter(2, Shape::Scalar(dtype), "y");
  Instruction* j = builder.Parameter(3, Shape::Scalar(DType::kS32), "j");
  Instruction* larger = builder.Compare(ComparisonDirection::kGt, x, y);
  Instruction* tie = builder.Binary(Opcode::kAnd, builder.Compare(ComparisonDirection::kEq, x, y),
                                    builder.Compare(ComparisonDirection::kLt, i, j));
  Instruction* left = builder.Binary(Opcode::kOr, larger, tie);
  computation->set_root(builder.Tuple({builder.Select(left, x, y), builder.Select(left, i, j)}));
  return computation;
}

// One step of the elimination inside the loop's body.
class Step {
 public:
  Step(Builder* builder, Instruction* k, Instruction* a)
      : builder_(*builder),
        a_(a),
        shape_(WithoutLayout(a->shape())),
        row_dim_(shape_.rank() - 2),
        col_dim_(shape_.rank() - 1) {
    const Shape index = WithDType(shape_, DType::kS32);
    rows_ = builder_.Iota(index, row_dim_);
    cols_ = builder_.Iota(index, col_dim_);
    k_ = builder_.BroadcastScalar(k, index);
    in_col_ = builder_.Compare(ComparisonDirection::kEq, cols_, k_);
    below_ = builder_.Compare(ComparisonDirection::kGt, rows_, k_);
  }

  // The row with the largest element of column k at or below the diagonal, per batch element.
  Instruction* PivotRow() {
    Instruction* size = builder_.Unary(Opcode::kAbs, Picked(in_col_, a_, col_dim_));
    const Shape column = WithoutLayout(size->shape());
    Instruction* index = builder_.Iota(WithDType(column, DType::kS32), row_dim_);
    Instruction* k = builder_.BroadcastScalar(k_->operand(0), WithDType(column, DType::kS32));
    size = builder_.Select(builder_.Compare(ComparisonDirection::kGe, index, k), size, builder_.Splat(column, -1));
    Instruction* found =
        builder_.Add(Opcode::kReduce, {size, index, builder_.Scalar(column.dtype(), -1), builder_.Index(0)},
                     hlo::DimensionsAttr{{row_dim_}}, {FirstMaximum(builder_.computation()->module(), column.dtype())});
    return builder_.GetTupleElement(found, 1);
  }

  Instruction* Eliminate(Instruction* pivot_row) {
    DimVector batch(row_dim_);
    std::iota(batch.begin(), batch.end(), 0);
    Instruction* in_pivot =
        builder_.Compare(ComparisonDirection::kEq, rows_, builder_.Broadcast(pivot_row, k_->shape(), batch));
    Instruction* in_row = builder_.Compare(ComparisonDirection::kEq, rows_, k_);
    Instruction* upper = AlongCols(Picked(in_pivot, a_, row_dim_));
    Instruction* a =
        builder_.Select(in_row, upper, builder_.Select(in_pivot, AlongCols(Picked(in_row, a_, row_dim_)), a_));

    // Multipliers below the pivot, then the rest of the rows below it.
    Instruction* column = AlongRows(Picked(in_col_, a, col_dim_));
    Instruction* pivot = builder_.Broadcast(
        Picked(builder_.Binary(Opcode::kAnd, in_row, in_col_), a, row_dim_, col_dim_), shape_, batch);
    Instruction* usable = builder_.Compare(ComparisonDirection::kNe, pivot, builder_.Splat(shape_, 0));
    Instruction* factor = builder_.Select(usable, builder_.Binary(Opcode::kDivide, column, pivot), column);
    Instruction* right = builder_.Compare(ComparisonDirection::kGt, cols_, k_);
    Instruction* rest = builder_.Binary(Opcode::kSubtract, a, builder_.Binary(Opcode::kMultiply, factor, upper));
    a = builder_.Select(builder_.Binary(Opcode::kAnd, below_, in_col_), factor, a);
    return builder_.Select(builder_.Binary(Opcode::kAnd, below_, right), rest, a);
  }

 private:
  // The one element that `mask` holds along the dimensions.
  Instruction* Picked(Instruction* mask, Instruction* x, int64_t dim, int64_t other = -1) {
    DimVector dims = {dim};
    if (other >= 0) dims.push_back(other);
    const DType dtype = shape_.dtype();
    return builder_.Reduce(builder_.Select(mask, x, builder_.Splat(shape_, 0)), builder_.Scalar(dtype, 0), dims,
                           builder_.ScalarComputation(Opcode::kAdd, dtype));
  }
  Instruction* Spread(Instruction* x, int64_t without) {
    DimVector dims;
    for (int64_t d = 0; d < shape_.rank(); ++d) {
      if (d != without) dims.push_back(d);
    }
    return builder_.Broadcast(x, shape_, dims);
  }
  Instruction* AlongCols(Instruction* row) { return Spread(row, row_dim_); }
  Instruction* AlongRows(Instruction* column) { return Spread(column, col_dim_); }

  Builder& builder_;
  Instruction* a_;
  const Shape shape_;
  const int64_t row_dim_, col_dim_;
  Instruction *rows_, *cols_, *k_, *in_col_, *below_;
};

}  // namespace

LuResult EmitLu(Builder* outer, Instruction* a) {
  hlo::Module* module = outer->computation()->module();
  const Shape shape = WithoutLayout(a->shape());
  DimVector dims = shape.dims();
  const int64_t steps = std::min(dims[dims.size() - 2], dims.back());
  dims.pop_back();
  dims.back() = steps;
  const Shape pivots(DType::kS32, dims);
  const Shape state = Shape::Tuple({Shape::Scalar(DType::kS32), shape, pivots});

  hlo::Computation* condition = module->AddComputation("lu_condition");
  {
    Builder builder(condition);
    Instruction* p = builder.Parameter(0, state, "state");
    condition->set_root(builder.Compare(ComparisonDirection::kLt, builder.GetTupleElement(p, 0), builder.Index(steps)));
  }
  hlo::Computation* body = module->AddComputation("lu_body");
  {
    Builder builder(body);
    Instruction* p = builder.Parameter(0, state, "state");
    Instruction* k = builder.GetTupleElement(p, 0);
    Step step(&builder, k, builder.GetTupleElement(p, 1));
    Instruction* row = step.PivotRow();
    Instruction* next = step.Eliminate(row);
    DimVector batch(pivots.rank() - 1);
    std::iota(batch.begin(), batch.end(), 0);
    Instruction* here = builder.Compare(ComparisonDirection::kEq, builder.Iota(pivots, pivots.rank() - 1),
                                        builder.BroadcastScalar(k, pivots));
    Instruction* counted =
        builder.Binary(Opcode::kAdd, builder.Broadcast(row, pivots, batch), builder.Splat(pivots, 1));
    Instruction* kept = builder.Select(here, counted, builder.GetTupleElement(p, 2));
    body->set_root(builder.Tuple({builder.Binary(Opcode::kAdd, k, builder.Index(1)), next, kept}));
  }
  Instruction* loop =
      outer->Add(Opcode::kWhile, {outer->Tuple({outer->Index(0), a, outer->Splat(pivots, 0)})}, {}, {condition, body});
  return {outer->GetTupleElement(loop, 1), outer->GetTupleElement(loop, 2)};
}

}  // namespace gangway::compile

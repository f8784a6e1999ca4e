// Random programs: sort, argmax, top-k.
#include <algorithm>
#include <numeric>

#include "gangway/hlo/builder.h"
#include "tests/equivalence/random_generator.h"

namespace gangway::equivalence {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

// Compares the first of `operands` values of each side; the others ride along.
hlo::Computation* Generator::Compare(DType dtype, int operands) {
  hlo::Computation* compare = module_->AddComputation("less");
  Builder builder(compare);
  std::vector<Instruction*> sides;
  for (int i = 0; i < 2 * operands; ++i) {
    sides.push_back(builder.Parameter(i, Shape::Scalar(i < 2 ? dtype : DType::kS32), "p"));
  }
  compare->set_root(builder.Compare(hlo::ComparisonDirection::kLt, sides[0], sides[1]));
  return compare;
}

Instruction* Generator::Sort() {
  Instruction* x = Any();
  if (x->shape().rank() == 0) return nullptr;
  return builder_->Add(Opcode::kSort, {x}, hlo::SortAttr{Below(x->shape().rank()), true},
                       {Compare(x->shape().dtype(), 1)});
}

// A reduction of values and positions as one.
Instruction* Generator::ArgMax() {
  Instruction* x = Any();
  if (x->shape().rank() == 0) return nullptr;
  const int64_t dim = Below(x->shape().rank());
  const DType dtype = x->shape().dtype();
  hlo::Computation* combiner = module_->AddComputation("argmax");
  Builder builder(combiner);
  Instruction* va = builder.Parameter(0, Shape::Scalar(dtype), "va");
  Instruction* ia = builder.Parameter(1, Shape::Scalar(DType::kS32), "ia");
  Instruction* vb = builder.Parameter(2, Shape::Scalar(dtype), "vb");
  Instruction* ib = builder.Parameter(3, Shape::Scalar(DType::kS32), "ib");
  Instruction* gt = builder.Compare(hlo::ComparisonDirection::kGt, va, vb);
  Instruction* eq = builder.Compare(hlo::ComparisonDirection::kEq, va, vb);
  Instruction* lt = builder.Compare(hlo::ComparisonDirection::kLt, ia, ib);
  Instruction* first = builder.Binary(Opcode::kOr, gt, builder.Binary(Opcode::kAnd, eq, lt));
  combiner->set_root(builder.Tuple({builder.Select(first, va, vb), builder.Select(first, ia, ib)}));
  Instruction* iota = builder_->Iota(WithDType(x->shape(), DType::kS32), dim);
  Instruction* reduce = builder_->Add(
      Opcode::kReduce,
      {x, iota, builder_->Scalar(dtype, IsUnsigned(dtype) ? 0 : -30000), builder_->Scalar(DType::kS32, 1e9)},
      hlo::DimensionsAttr{{dim}}, {combiner});
  Keep(builder_->GetTupleElement(reduce, 1));
  return builder_->GetTupleElement(reduce, 0);
}

Instruction* Generator::SortPairs() {
  Instruction* x = AnyOfRank(1);
  if (x == nullptr) return nullptr;
  const int64_t dim = Below(x->shape().rank());
  Instruction* places = builder_->Iota(WithDType(x->shape(), DType::kS32), dim);
  Instruction* sort =
      builder_->Add(Opcode::kSort, {x, places}, hlo::SortAttr{dim, true}, {Compare(x->shape().dtype(), 2)});
  Keep(builder_->GetTupleElement(sort, 0));
  return builder_->GetTupleElement(sort, 1);
}

Instruction* Generator::TopK() {
  Instruction* x = AnyOfRank(1);
  if (x == nullptr) return nullptr;
  const int64_t k = 1 + Below(std::min<int64_t>(4, x->shape().dims().back()));
  Instruction* top = builder_->Add(Opcode::kTopK, {x}, hlo::TopKAttr{k, Chance(80)});
  Keep(builder_->GetTupleElement(top, 1));
  return builder_->GetTupleElement(top, 0);
}

}  // namespace gangway::equivalence

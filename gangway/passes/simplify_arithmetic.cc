#include <algorithm>
#include <numeric>

#include "gangway/hlo/splat.h"
#include "gangway/passes/simplify_rules.h"

namespace gangway::passes {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;
using Simpler = std::optional<Instruction*>;

// All bits set: true, -1 or the largest unsigned number.
bool IsAllOnes(const Instruction* i) {
  const Literal* literal = hlo::SplatOf(i);
  if (literal == nullptr) return false;
  DType dtype = literal->shape().dtype();
  if (dtype == DType::kPred) return literal->data()[0] != 0;
  if (!IsInteger(dtype)) return false;
  char ones[8];
  StoreInt64(dtype, -1, ones);
  return std::memcmp(ones, literal->data(), ByteWidth(dtype)) == 0;
}

Simpler OtherThan(Instruction* i, bool (*is_neutral)(const Instruction*)) {
  if (is_neutral(i->operand(1))) return i->operand(0);
  if (is_neutral(i->operand(0))) return i->operand(1);
  return std::nullopt;
}

bool IsZero(const Instruction* i) { return hlo::IsSplat(i, 0); }
bool IsOne(const Instruction* i) { return hlo::IsSplat(i, 1); }

// x + 0 is x, up to the sign of a zero.
Simpler AddZero(Builder&, Instruction* i) { return OtherThan(i, IsZero); }
Simpler MultiplyOne(Builder&, Instruction* i) { return OtherThan(i, IsOne); }
Simpler OrZero(Builder&, Instruction* i) { return OtherThan(i, IsZero); }
Simpler AndOnes(Builder&, Instruction* i) { return OtherThan(i, IsAllOnes); }

Simpler SubtractZero(Builder&, Instruction* i) {
  if (!IsZero(i->operand(1))) return std::nullopt;
  return i->operand(0);
}
Simpler DivideByOne(Builder&, Instruction* i) {
  if (!IsOne(i->operand(1))) return std::nullopt;
  return i->operand(0);
}

// Integers only: 0 * inf is no zero.
Simpler MultiplyZero(Builder&, Instruction* i) {
  if (!IsInteger(i->shape().dtype())) return std::nullopt;
  if (IsZero(i->operand(0))) return i->operand(0);
  if (IsZero(i->operand(1))) return i->operand(1);
  return std::nullopt;
}
Simpler AndZero(Builder&, Instruction* i) {
  if (IsZero(i->operand(0))) return i->operand(0);
  if (IsZero(i->operand(1))) return i->operand(1);
  return std::nullopt;
}
Simpler OrOnes(Builder&, Instruction* i) {
  if (IsAllOnes(i->operand(0))) return i->operand(0);
  if (IsAllOnes(i->operand(1))) return i->operand(1);
  return std::nullopt;
}

Simpler SelectConstant(Builder&, Instruction* i) {
  const Literal* predicate = hlo::SplatOf(i->operand(0));
  if (predicate == nullptr) return std::nullopt;
  return predicate->data()[0] != 0 ? i->operand(1) : i->operand(2);
}

Simpler SelectSame(Builder&, Instruction* i) {
  if (i->operand(1) != i->operand(2)) return std::nullopt;
  return i->operand(1);
}

Simpler NotNot(Builder&, Instruction* i) {
  if (i->operand(0)->opcode() != i->opcode()) return std::nullopt;
  return i->operand(0)->operand(0);
}

// The branch that a constant selects becomes a call, which inlining removes.
Simpler ConditionalConstant(Builder& b, Instruction* i) {
  const Literal* selector = hlo::SplatOf(i->operand(0));
  if (selector == nullptr) return std::nullopt;
  int64_t value = ElementAsInt64(selector->shape().dtype(), selector->data());
  int64_t count = static_cast<int64_t>(i->called().size());
  int64_t branch = selector->shape().dtype() == DType::kPred ? (value != 0 ? 0 : 1)
                                                             : (value < 0 || value >= count ? count - 1 : value);
  return b.Add(Opcode::kCall, {i->operand(branch + 1)}, {}, {i->called()[branch]}, i->shape());
}

// A side of a product that nothing is contracted in, over the product's dimensions: batch, free of the left, of the
// right; its own free ones begin at `free`.
Instruction* SpreadOver(Builder& b, Instruction* x, const DimVector& batch, int64_t free, const Shape& product) {
  DimVector order = batch, dims(batch.size());
  std::iota(dims.begin(), dims.end(), 0);
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    if (std::find(batch.begin(), batch.end(), d) != batch.end()) continue;
    order.push_back(d);
    dims.push_back(free++);
  }
  if (!std::is_sorted(order.begin(), order.end())) x = b.Transpose(x, order);
  if (x->shape().dtype() != product.dtype()) x = b.Convert(x, product.dtype());
  return b.Broadcast(x, WithoutLayout(product), std::move(dims));
}

// An outer product is no sum of products. What is wider than the product is rounded once, when it is multiplied.
Simpler DotWithoutContraction(Builder& b, Instruction* i) {
  const auto& dot = i->attr<hlo::DotAttr>();
  if (!dot.lhs_contracting.empty()) return std::nullopt;
  const int64_t batch = static_cast<int64_t>(dot.lhs_batch.size());
  Shape wide = WithoutLayout(i->shape());
  for (const Instruction* side : {i->operand(0), i->operand(1)}) {
    if (BitWidth(side->shape().dtype()) > BitWidth(wide.dtype())) wide = Shape(side->shape().dtype(), wide.dims());
  }
  Instruction* lhs = SpreadOver(b, i->operand(0), dot.lhs_batch, batch, wide);
  Instruction* rhs = SpreadOver(b, i->operand(1), dot.rhs_batch, i->operand(0)->shape().rank(), wide);
  Instruction* product = b.Binary(Opcode::kMultiply, lhs, rhs);
  return wide.dtype() == i->shape().dtype() ? product : b.Convert(product, i->shape().dtype());
}

// `x` without `dropped` dimensions, which have one element; `kept` is renumbered.
Instruction* WithoutDims(Builder& b, Instruction* x, const DimVector& dropped, DimVector* kept) {
  DimVector dims;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    if (std::find(dropped.begin(), dropped.end(), d) == dropped.end()) dims.push_back(x->shape().dim(d));
  }
  for (int64_t& d : *kept) d -= std::count_if(dropped.begin(), dropped.end(), [&](int64_t gone) { return gone < d; });
  return b.Reshape(x, dims);
}

// A sum of one product is none.
Simpler DotOverOneElement(Builder& b, Instruction* i) {
  hlo::DotAttr dot = i->attr<hlo::DotAttr>();
  const Shape& shape = i->operand(0)->shape();
  const auto is_one = [&](int64_t d) { return shape.dim(d) == 1; };
  if (dot.lhs_contracting.empty() || !std::all_of(dot.lhs_contracting.begin(), dot.lhs_contracting.end(), is_one))
    return std::nullopt;
  Instruction* lhs = WithoutDims(b, i->operand(0), dot.lhs_contracting, &dot.lhs_batch);
  Instruction* rhs = WithoutDims(b, i->operand(1), dot.rhs_contracting, &dot.rhs_batch);
  dot.lhs_contracting.clear();
  dot.rhs_contracting.clear();
  return b.Dot(lhs, rhs, std::move(dot), i->shape().dtype());
}

// An operand of a product as [batch..., contracted...], without its free dimensions, which have one element.
Instruction* BatchThenContracted(Builder& b, Instruction* x, const DimVector& batch, const DimVector& contracting,
                                 DType dtype) {
  DimVector order = batch, dims;
  order.insert(order.end(), contracting.begin(), contracting.end());
  for (int64_t d : order) dims.push_back(x->shape().dim(d));
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    if (std::find(order.begin(), order.end(), d) == order.end()) order.push_back(d);
  }
  if (!std::is_sorted(order.begin(), order.end())) x = b.Transpose(x, order);
  if (dims != x->shape().dims()) x = b.Reshape(x, dims);
  return x->shape().dtype() == dtype ? x : b.Convert(x, dtype);
}

// Products of vectors are sums of products: there is no matrix whose elements are read more than once. Not for narrow
// numbers, which a product adds up in wider ones.
Simpler DotOfVectors(Builder& b, Instruction* i) {
  const auto& dot = i->attr<hlo::DotAttr>();
  const DType dtype = i->shape().dtype();
  int64_t batch = 1;
  for (int64_t d : dot.lhs_batch) batch *= i->operand(0)->shape().dim(d);
  if (i->shape().ElementCount() != batch || dot.lhs_contracting.empty() || BitWidth(dtype) < 32) return std::nullopt;
  Instruction* lhs = BatchThenContracted(b, i->operand(0), dot.lhs_batch, dot.lhs_contracting, dtype);
  Instruction* rhs = BatchThenContracted(b, i->operand(1), dot.rhs_batch, dot.rhs_contracting, dtype);
  DimVector summed(dot.lhs_contracting.size());
  std::iota(summed.begin(), summed.end(), static_cast<int64_t>(dot.lhs_batch.size()));
  Instruction* zero = b.Constant(Literal(Shape::Scalar(dtype)));
  Instruction* sum = b.Reduce(b.Binary(Opcode::kMultiply, lhs, rhs), zero, std::move(summed),
                              b.ScalarComputation(Opcode::kAdd, dtype));
  return sum->shape().dims() == i->shape().dims() ? sum : b.Reshape(sum, i->shape().dims());
}

constexpr OpRule kRules[] = {
    {Opcode::kAdd, AddZero},
    {Opcode::kSubtract, SubtractZero},
    {Opcode::kMultiply, MultiplyOne},
    {Opcode::kMultiply, MultiplyZero},
    {Opcode::kDivide, DivideByOne},
    {Opcode::kAnd, AndOnes},
    {Opcode::kAnd, AndZero},
    {Opcode::kOr, OrZero},
    {Opcode::kOr, OrOnes},
    {Opcode::kXor, OrZero},
    {Opcode::kNot, NotNot},
    {Opcode::kNegate, NotNot},
    {Opcode::kSelect, SelectConstant},
    {Opcode::kSelect, SelectSame},
    {Opcode::kConditional, ConditionalConstant},
    {Opcode::kDot, DotWithoutContraction},
    {Opcode::kDot, DotOverOneElement},
    {Opcode::kDot, DotOfVectors},
};

}  // namespace

absl::Span<const OpRule> ArithmeticRules() { return kRules; }

}  // namespace gangway::passes

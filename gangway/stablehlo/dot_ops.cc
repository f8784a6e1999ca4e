// Matrix products: dot, dot_general, einsum.
#include <optional>

#include "absl/strings/ascii.h"
#include "gangway/stablehlo/dot_precision.h"
#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {
namespace {

using hlo::Opcode;

absl::Status DotGeneral(OpContext& context) {
  const OpView& op = context.op();
  hlo::DotAttr attr;
  GW_ASSIGN_OR_RETURN(attr.lhs_batch, op.Ints("lhs_batching_dimensions"));
  GW_ASSIGN_OR_RETURN(attr.rhs_batch, op.Ints("rhs_batching_dimensions"));
  GW_ASSIGN_OR_RETURN(attr.lhs_contracting, op.Ints("lhs_contracting_dimensions"));
  GW_ASSIGN_OR_RETURN(attr.rhs_contracting, op.Ints("rhs_contracting_dimensions"));
  GW_ASSIGN_OR_RETURN(attr.precision.operands, ReadPrecisions(op));
  GW_ASSIGN_OR_RETURN(attr.precision.algorithm, ReadDotAlgorithm(op));
  return context.FinishWith(Opcode::kDot, context.operands(), std::move(attr));
}

// Contracts the last dimension of lhs with the first of rhs.
absl::Status Dot(OpContext& context) {
  hlo::DotAttr attr;
  const Shape& lhs = context.operand(0)->shape();
  if (lhs.rank() == 0 || context.operand(1)->shape().rank() == 0) return OpContext::Error("an operand is a scalar");
  attr.lhs_contracting = {lhs.rank() - 1};
  attr.rhs_contracting = {0};
  GW_ASSIGN_OR_RETURN(attr.precision.operands, ReadPrecisions(context.op()));
  return context.FinishWith(Opcode::kDot, context.operands(), std::move(attr));
}

struct Einsum {
  std::vector<std::string> operands;
  std::string result;
};

// "ab,bc->ac". Letters only, none twice in one term.
absl::StatusOr<Einsum> ParseEinsum(const OpContext& context) {
  GW_ASSIGN_OR_RETURN(absl::string_view text, context.op().String("einsum_config"));
  const auto unsupported = [&] {
    return absl::UnimplementedError(absl::StrCat("attribute einsum_config: \"", text.substr(0, 80), "\""));
  };
  Einsum einsum;
  const size_t arrow = text.find("->");
  if (arrow == absl::string_view::npos) return unsupported();
  einsum.result = std::string(text.substr(arrow + 2));
  std::string term;
  for (char c : absl::StrCat(text.substr(0, arrow), ",")) {
    if (c != ',') {
      term += c;
      continue;
    }
    einsum.operands.push_back(term);
    term.clear();
  }
  if (einsum.operands.size() != context.operands().size()) return unsupported();
  for (size_t i = 0; i <= einsum.operands.size(); ++i) {
    const std::string& letters = i < einsum.operands.size() ? einsum.operands[i] : einsum.result;
    const Shape& shape = i < einsum.operands.size() ? context.operand(i)->shape() : context.result_shape();
    if (static_cast<int64_t>(letters.size()) != shape.rank()) return unsupported();
    for (size_t j = 0; j < letters.size(); ++j) {
      if (!absl::ascii_isalpha(letters[j]) || letters.find(letters[j], j + 1) != std::string::npos)
        return unsupported();
    }
  }
  return einsum;
}

bool Has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

// Permutes `x`, whose dimensions are called `from`, to the order `to`.
absl::StatusOr<hlo::Instruction*> TransposeTo(OpContext& context, hlo::Instruction* x, const std::string& from,
                                              const std::string& to) {
  if (from == to) return x;
  DimVector permutation, dims;
  for (char c : to) {
    const size_t position = from.find(c);
    if (position == std::string::npos || from.size() != to.size()) {
      return absl::UnimplementedError("attribute einsum_config: a result dimension no operand has");
    }
    permutation.push_back(static_cast<int64_t>(position));
    dims.push_back(x->shape().dim(static_cast<int64_t>(position)));
  }
  return context.Emit(Opcode::kTranspose, Shape(x->shape().dtype(), std::move(dims)), {x},
                      hlo::DimensionsAttr{std::move(permutation)});
}

// Sums `x` over the dimensions whose letters are not in `keep`, and removes those letters.
hlo::Instruction* SumOthers(OpContext& context, hlo::Instruction* x, const std::string& keep, std::string* letters) {
  DimVector reduced, dims;
  std::string left;
  for (size_t i = 0; i < letters->size(); ++i) {
    if (Has(keep, (*letters)[i])) {
      left += (*letters)[i];
      dims.push_back(x->shape().dim(static_cast<int64_t>(i)));
    } else {
      reduced.push_back(static_cast<int64_t>(i));
    }
  }
  if (reduced.empty()) return x;
  *letters = left;
  const Shape scalar = Shape::Scalar(x->shape().dtype());
  hlo::Computation* sum = context.program().module().AddComputation("sum");
  hlo::Instruction* a = sum->Add(Opcode::kParameter, scalar, {}, hlo::ParameterAttr{0});
  hlo::Instruction* b = sum->Add(Opcode::kParameter, scalar, {}, hlo::ParameterAttr{1});
  sum->set_root(sum->Add(Opcode::kAdd, scalar, {a, b}));
  return context.Emit(Opcode::kReduce, Shape(x->shape().dtype(), std::move(dims)),
                      {x, context.EmitScalar(x->shape().dtype(), 0)}, hlo::DimensionsAttr{std::move(reduced)}, {sum});
}

absl::Status UnaryEinsum(OpContext& context) {
  GW_ASSIGN_OR_RETURN(Einsum einsum, ParseEinsum(context));
  hlo::Instruction* x = SumOthers(context, context.operand(0), einsum.result, &einsum.operands[0]);
  GW_ASSIGN_OR_RETURN(x, TransposeTo(context, x, einsum.operands[0], einsum.result));
  return context.FinishValues({x});
}

absl::Status BinaryEinsum(OpContext& context) {
  GW_ASSIGN_OR_RETURN(Einsum einsum, ParseEinsum(context));
  std::string& lhs = einsum.operands[0];
  std::string& rhs = einsum.operands[1];
  hlo::Instruction* x = SumOthers(context, context.operand(0), einsum.result + rhs, &lhs);
  hlo::Instruction* y = SumOthers(context, context.operand(1), einsum.result + lhs, &rhs);
  hlo::DotAttr attr;
  std::string batch, lhs_free, rhs_free;
  DimVector dims;
  for (size_t i = 0; i < lhs.size(); ++i) {
    if (!Has(rhs, lhs[i])) {
      lhs_free += lhs[i];
      continue;
    }
    const int64_t j = static_cast<int64_t>(rhs.find(lhs[i]));
    const bool kept = Has(einsum.result, lhs[i]);
    (kept ? attr.lhs_batch : attr.lhs_contracting).push_back(static_cast<int64_t>(i));
    (kept ? attr.rhs_batch : attr.rhs_contracting).push_back(j);
    if (kept) batch += lhs[i];
  }
  for (char c : rhs) {
    if (!Has(lhs, c)) rhs_free += c;
  }
  for (int64_t i : attr.lhs_batch) dims.push_back(x->shape().dim(i));
  for (char c : lhs_free) dims.push_back(x->shape().dim(static_cast<int64_t>(lhs.find(c))));
  for (char c : rhs_free) dims.push_back(y->shape().dim(static_cast<int64_t>(rhs.find(c))));
  hlo::Instruction* product =
      context.Emit(Opcode::kDot, Shape(context.result_shape().dtype(), std::move(dims)), {x, y}, std::move(attr));
  GW_ASSIGN_OR_RETURN(product, TransposeTo(context, product, batch + lhs_free + rhs_free, einsum.result));
  return context.FinishValues({product});
}

}  // namespace

void AddDotOps(OpTable& table) {
  for (const OpRow& row : {
           OpRow{"vhlo.dot_v1", 2, 1, 0, Dot},
           OpRow{"vhlo.dot_general_v1", 2, 1, 0, DotGeneral},
           OpRow{"vhlo.dot_general_v2", 2, 1, 0, DotGeneral},
           OpRow{"vhlo.einsum_v1", 2, 1, 0, BinaryEinsum},
           OpRow{"vhlo.unary_einsum_v1", 1, 1, 0, UnaryEinsum},
       }) {
    table.emplace(row.name, row);
  }
}

}  // namespace gangway::stablehlo

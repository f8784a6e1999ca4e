// Dimensions of a dot that lie next to each other and play the same part become one: most dots are then products of
// two matrices. XLA folds the transpose of a matrix into its product; of an array of more dimensions it makes a copy,
// and computes whatever is fused into that copy once more. A batch of one, which is what partitioning leaves of a stage
// or an expert for each device, is no batch.
#include <algorithm>
#include <utility>

#include "gangway/passes/dimension_list.h"
#include "gangway/passes/passes.h"
#include "gangway/passes/replace_each.h"

namespace gangway::passes {
namespace {

using hlo::Instruction;

// `own` dimensions are paired with the other operand's: two of them are one only where their partners are one too.
bool BelongTogether(int64_t dim, int64_t next, const DimVector& own, const DimVector& partners) {
  const int64_t first = PositionOf(dim, own), second = PositionOf(next, own);
  return next == dim + 1 && first >= 0 && second == first + 1 && partners[second] == partners[first] + 1;
}

struct Operand {
  DimVector batch, contracting;
  DimVector part_of;  // for each old dimension the new one; -1: dropped
  DimVector extents;  // of the new ones
};

DimVector Renamed(const DimVector& dims, const DimVector& part_of) {
  DimVector renamed;
  for (int64_t dim : dims) {
    const int64_t part = part_of[dim];
    if (part >= 0 && (renamed.empty() || renamed.back() != part)) renamed.push_back(part);
  }
  return renamed;
}

Operand Flattened(const Shape& shape, const DimVector& batch, const DimVector& batch_partners,
                  const DimVector& contracting, const DimVector& contracting_partners) {
  auto is_free = [&](int64_t dim) { return PositionOf(dim, batch) < 0 && PositionOf(dim, contracting) < 0; };
  Operand flat;
  int64_t last = -1;  // that was kept
  for (int64_t dim = 0; dim < shape.rank(); ++dim) {
    if (shape.dim(dim) == 1 && PositionOf(dim, batch) >= 0) {
      flat.part_of.push_back(-1);
      continue;
    }
    if (last >= 0 && ((is_free(last) && is_free(dim)) || BelongTogether(last, dim, batch, batch_partners) ||
                      BelongTogether(last, dim, contracting, contracting_partners))) {
      flat.extents.back() *= shape.dim(dim);
    } else {
      flat.extents.push_back(shape.dim(dim));
    }
    flat.part_of.push_back(static_cast<int64_t>(flat.extents.size()) - 1);
    last = dim;
  }
  flat.batch = Renamed(batch, flat.part_of);
  flat.contracting = Renamed(contracting, flat.part_of);
  return flat;
}

bool Flatten(Instruction* dot, hlo::Builder& builder) {
  const auto& attr = dot->attr<hlo::DotAttr>();
  Instruction *lhs = dot->operand(0), *rhs = dot->operand(1);
  const Operand left =
      Flattened(lhs->shape(), attr.lhs_batch, attr.rhs_batch, attr.lhs_contracting, attr.rhs_contracting);
  const Operand right =
      Flattened(rhs->shape(), attr.rhs_batch, attr.lhs_batch, attr.rhs_contracting, attr.lhs_contracting);
  const size_t ranks = static_cast<size_t>(lhs->shape().rank() + rhs->shape().rank());
  if (left.extents.size() + right.extents.size() == ranks) return false;
  builder.set_metadata(dot->metadata());
  Instruction* flat = builder.Dot(builder.Reshape(lhs, left.extents), builder.Reshape(rhs, right.extents),
                                  {.lhs_batch = left.batch,
                                   .rhs_batch = right.batch,
                                   .lhs_contracting = left.contracting,
                                   .rhs_contracting = right.contracting,
                                   .precision = attr.precision},
                                  dot->shape().dtype());
  dot->ReplaceAllUsesWith(builder.Reshape(flat, dot->shape().dims()));
  return true;
}

// Whether a dot's result so permuted has the free dimensions of the right operand before those of the left one.
bool SwapsFreeDims(const DimVector& permutation, int64_t batch, int64_t left) {
  const int64_t rank = static_cast<int64_t>(permutation.size()), right = rank - batch - left;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t from = i < batch ? i : i < batch + right ? i + left : i - right;
    if (permutation[i] != from) return false;
  }
  return true;
}

// A product that is only used transposed, as gradients of weights are: its operands change places.
bool SwapOperands(Instruction* transpose, hlo::Builder& builder) {
  const Instruction* dot = transpose->operand(0);
  if (dot->opcode() != hlo::Opcode::kDot || dot->users().size() != 1) return false;
  const auto& attr = dot->attr<hlo::DotAttr>();
  const int64_t batch = static_cast<int64_t>(attr.lhs_batch.size());
  const int64_t left = dot->operand(0)->shape().rank() - batch - static_cast<int64_t>(attr.lhs_contracting.size());
  if (!SwapsFreeDims(transpose->attr<hlo::DimensionsAttr>().dims, batch, left)) return false;
  hlo::PrecisionConfig precision = attr.precision;
  std::reverse(precision.operands.begin(), precision.operands.end());
  builder.set_metadata(dot->metadata());
  transpose->ReplaceAllUsesWith(builder.Dot(dot->operand(1), dot->operand(0),
                                            {.lhs_batch = attr.rhs_batch,
                                             .rhs_batch = attr.lhs_batch,
                                             .lhs_contracting = attr.rhs_contracting,
                                             .rhs_contracting = attr.lhs_contracting,
                                             .precision = std::move(precision)},
                                            dot->shape().dtype()));
  return true;
}

}  // namespace

absl::StatusOr<bool> RunFlattenDots(hlo::Module& module) {
  const bool swapped = ReplaceEach(module, hlo::Opcode::kTranspose, SwapOperands);
  return ReplaceEach(module, hlo::Opcode::kDot, Flatten) || swapped;
}

}  // namespace gangway::passes

// Gather and scatter: batch dimensions and whole slices pass through.
#include <algorithm>

#include "gangway/rules/family.h"

namespace gangway::rules {
namespace {

// Dimensions of the indices in order, without the one that holds the index vector.
DimVector IndexDims(const Shape& indices, int64_t index_vector_dim) {
  DimVector dims;
  for (int64_t dim = 0; dim < indices.rank(); ++dim) {
    if (dim != index_vector_dim) dims.push_back(dim);
  }
  return dims;
}

// Dimensions 0..rank-1 not in `taken`.
DimVector OtherDims(int64_t rank, const DimVector& taken) {
  DimVector dims;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (!Has(taken, dim)) dims.push_back(dim);
  }
  return dims;
}

// Dimensions of the operand that windows run over: not collapsed, not batching.
DimVector WindowDims(int64_t rank, DimVector collapsed, const DimVector& batching) {
  collapsed.insert(collapsed.end(), batching.begin(), batching.end());
  return OtherDims(rank, collapsed);
}

}  // namespace

OpRule GatherRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const auto& gather = instruction.attr<hlo::GatherAttr>();
  const DimVector index_dims = IndexDims(rule.operand(1), gather.index_vector_dim);
  const DimVector batch_dims = OtherDims(rule.result().rank(), gather.offset_dims);  // of the result
  for (size_t i = 0; i < index_dims.size(); ++i) {
    const int factor = rule.AddFactor(rule.operand(1).dim(index_dims[i]), FactorKind::kPassThrough);
    rule.Operand(1, index_dims[i], factor);
    rule.Result(0, batch_dims[i], factor);
    for (size_t b = 0; b < gather.operand_batching_dims.size(); ++b) {
      if (gather.start_indices_batching_dims[b] == index_dims[i]) {
        rule.Operand(0, gather.operand_batching_dims[b], factor);
      }
    }
  }
  const DimVector window =
      WindowDims(rule.operand(0).rank(), gather.collapsed_slice_dims, gather.operand_batching_dims);
  for (size_t i = 0; i < window.size(); ++i) {
    if (gather.slice_sizes[window[i]] != rule.operand(0).dim(window[i])) continue;
    const int factor = rule.AddFactor(rule.operand(0).dim(window[i]), FactorKind::kPassThrough);
    rule.Operand(0, window[i], factor);
    rule.Result(0, gather.offset_dims[i], factor);
  }
  return rule.Take();
}

// Operands: N arrays, the indices, N updates. Along the indices' own dimensions every shard adds its updates to the
// whole array: a reduction when the combiner is a monoid. Along scattered dimensions array and result are one index,
// and each shard may take the updates that fall into it.
OpRule ScatterRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const auto& scatter = instruction.attr<hlo::ScatterAttr>();
  const int arrays = rule.operand_count() / 2;
  const Shape &indices = rule.operand(arrays), &updates = rule.operand(arrays + 1), &array = rule.operand(0);
  std::optional<Reduction> reduction;
  if (arrays == 1) reduction = ReductionOf(*instruction.called()[0]);

  auto on_arrays = [&](int64_t dim, int factor) {
    for (int i = 0; i < arrays; ++i) rule.Operand(i, dim, factor);
    rule.AllResults(dim, factor);
  };
  auto on_updates = [&](int64_t dim, int factor) {
    for (int i = arrays + 1; i < rule.operand_count(); ++i) rule.Operand(i, dim, factor);
  };

  const DimVector index_dims = IndexDims(indices, scatter.index_vector_dim);
  const DimVector scatter_dims = OtherDims(updates.rank(), scatter.update_window_dims);
  for (size_t i = 0; i < index_dims.size(); ++i) {
    const auto& batching = scatter.scatter_indices_batching_dims;
    const auto batch = std::find(batching.begin(), batching.end(), index_dims[i]);
    const FactorKind kind = batch != batching.end() ? FactorKind::kPassThrough
                            : reduction             ? FactorKind::kReduction
                                                    : FactorKind::kNeedReplication;
    const int factor = rule.AddFactor(indices.dim(index_dims[i]), kind, reduction.value_or(Reduction::kSum));
    rule.Operand(arrays, index_dims[i], factor);
    on_updates(scatter_dims[i], factor);
    if (batch != batching.end()) on_arrays(scatter.input_batching_dims[batch - batching.begin()], factor);
  }

  const DimVector window = WindowDims(array.rank(), scatter.inserted_window_dims, scatter.input_batching_dims);
  for (size_t i = 0; i < window.size(); ++i) {
    const int64_t update_dim = scatter.update_window_dims[i];
    const bool whole = updates.dim(update_dim) == array.dim(window[i]);
    const int factor =
        rule.AddFactor(array.dim(window[i]), whole ? FactorKind::kPassThrough : FactorKind::kPermutation);
    on_arrays(window[i], factor);
    if (whole) on_updates(update_dim, factor);
  }
  for (int64_t dim : scatter.inserted_window_dims) {
    on_arrays(dim, rule.AddFactor(array.dim(dim), FactorKind::kPermutation));
  }
  for (int i = 0; i < arrays; ++i) rule.Accumulates(i);
  return rule.Take();
}

}  // namespace gangway::rules

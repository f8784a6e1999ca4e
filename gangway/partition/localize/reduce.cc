// Reductions. Sums, maxima and the like give partial results (a sharding); anything else combined over split dimensions
// is reduced locally, gathered and reduced again by the same computation.
#include <vector>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;

// The operands' common sharding when it splits reduced dimensions; nullopt when two steps do not apply.
std::optional<Sharding> SplitReducedDims(const Instruction& instruction, const Context& context) {
  const auto& dims = instruction.attr<hlo::DimensionsAttr>().dims;
  const int64_t inputs = instruction.operand_count() / 2;
  for (int64_t i = 0; i < inputs; ++i) {
    const LocalValue& value = context.Value(*instruction.operand(i));
    if (!SameMesh(value.sharding.mesh, context.mesh())) continue;
    for (int64_t d : dims) {
      if (!value.sharding.IsSplit(d)) continue;
      Sharding sharding = value.sharding;
      sharding.unreduced.clear();
      return sharding;
    }
  }
  return std::nullopt;
}

}  // namespace

absl::Status LocalizeReduce(const Instruction& instruction, Context& context) {
  const bool monoid = instruction.operand_count() == 2 && rules::ReductionOf(*instruction.called()[0]).has_value();
  if (monoid) return LocalizeByRule(instruction, context);
  const std::optional<Sharding> split = SplitReducedDims(instruction, context);
  if (!split) return LocalizeByRule(instruction, context);

  hlo::Builder& builder = context.builder();
  const auto& dims = instruction.attr<hlo::DimensionsAttr>().dims;
  const int64_t inputs = instruction.operand_count() / 2;
  std::vector<Instruction*> operands, inits;
  for (int64_t i = 0; i < inputs; ++i) {
    GW_ASSIGN_OR_RETURN(Instruction * init, context.Replicate(context.Value(*instruction.operand(inputs + i))));
    inits.push_back(init);
  }
  for (int64_t i = 0; i < inputs; ++i) {
    const LocalValue& value = context.Value(*instruction.operand(i));
    GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, *split));
    operands.push_back(context.MaskPadding(local, *split, value.global, dims, inits[i]));
  }
  operands.insert(operands.end(), inits.begin(), inits.end());

  // Result: the kept dimensions; the second reduction runs over a new leading one that the gather makes.
  Sharding result = Sharding::Replicated(split->mesh, 0).Closed();
  result.manual = split->manual;
  AxisList reduced;
  for (int64_t d = 0; d < split->rank(); ++d) {
    const bool gone = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (gone) {
      reduced.insert(reduced.end(), split->dims[d].axes.begin(), split->dims[d].axes.end());
    } else {
      result.dims.push_back(split->dims[d]);
    }
  }
  const Shardings results(static_cast<size_t>(inputs), result);
  const Shape shape = ShardShape(WithoutLayout(instruction.shape()), results);
  std::vector<Instruction*> parts = context.Unpack(context.Clone(instruction, shape, operands));
  for (Instruction*& part : parts) {
    DimVector stacked = part->shape().dims();
    stacked.insert(stacked.begin(), 1);
    part = context.collectives().AllGather(builder.Reshape(part, stacked), 0, *split->mesh, reduced);
  }
  parts.insert(parts.end(), inits.begin(), inits.end());
  Instruction* whole = context.Clone(instruction, shape, parts);
  whole->mutable_attr<hlo::DimensionsAttr>().dims = {0};
  SetResults(instruction, whole, results, context);
  return absl::OkStatus();
}

}  // namespace gangway::partition

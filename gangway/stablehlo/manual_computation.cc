#include "gangway/stablehlo/manual_computation.h"

#include <utility>

namespace gangway::stablehlo {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool IsManual(const ManualAxes& manual, const AxisRef& axis) { return Overlaps(manual.axes, axis); }

// What is left of the sharding inside: the manual axes no longer split dimensions.
Sharding LocalSharding(Sharding full, const ManualAxes& manual) {
  for (DimSharding& dim : full.dims) RemoveOverlapping(&dim.axes, manual.axes);
  RemoveOverlapping(&full.replicated, manual.axes);
  RemoveOverlapping(&full.unreduced, manual.axes);
  full.manual = manual.axes;
  return full;
}

// What the region is given and returns is whole along manual axes that do not split it, whatever completion would like.
Sharding WholeAlongOthers(Sharding full, const ManualAxes& manual) {
  if (std::none_of(full.dims.begin(), full.dims.end(), [](const DimSharding& dim) { return dim.open; })) return full;
  for (const AxisRef& axis : manual.axes) {
    if (!Overlaps(full.UsedAxes(), axis)) full.replicated.push_back(axis);
  }
  return full;
}

// The local extent times the manual axes of its dimension is the whole extent.
absl::Status CheckShapes(const Sharding& full, const ManualAxes& manual, const Shape& whole, const Shape& local) {
  bool fits = whole.dtype() == local.dtype() && whole.rank() == local.rank() && whole.rank() == full.rank();
  for (int64_t i = 0; fits && i < whole.rank(); ++i) {
    int64_t parts = 1;
    for (const AxisRef& axis : full.dims[i].axes) parts *= IsManual(manual, axis) ? axis.size : 1;
    fits = local.dim(i) <= whole.dim(i) && local.dim(i) * parts == whole.dim(i);
  }
  if (fits) return absl::OkStatus();
  return OpContext::Error(
      absl::StrCat("local shape ", local.ToString(), " is not ", whole.ToString(), " sharded as ", full.ToString()));
}

Instruction* EmitCall(OpContext& context, absl::string_view target, Instruction* x, const Shape& shape,
                      Sharding sharding) {
  hlo::CustomCallAttr call;
  call.target = std::string(target);
  Instruction* result = context.Emit(Opcode::kCustomCall, shape, {x}, std::move(call));
  result->set_shardings(Shardings{std::move(sharding)});
  return result;
}

}  // namespace

absl::StatusOr<ManualAxes> AddManualAxes(const OpContext& context, const MeshRef& mesh, const AxisList& inner) {
  ManualAxes manual = context.scope().manual;
  if (manual.empty()) return ManualAxes{mesh, inner};
  if (!SameMesh(manual.mesh, mesh)) {
    return absl::UnimplementedError("a manual computation inside one over another mesh");
  }
  for (const AxisRef& axis : inner) {
    if (Overlaps(manual.axes, axis)) {
      return OpContext::Error(absl::StrCat("axis ", AxisToString(*mesh, axis), " is manual already"));
    }
    manual.axes.push_back(axis);
  }
  return manual;
}

absl::StatusOr<Instruction*> EmitFullToShard(OpContext& context, Instruction* x, const Sharding& full,
                                             const ManualAxes& manual, const Shape& local) {
  GW_RETURN_IF_ERROR(CheckShapes(full, manual, x->shape(), local));
  GW_ASSIGN_OR_RETURN(Sharding outside, context.WithManual(full));
  x = context.EmitSharding(x, WholeAlongOthers(std::move(outside), manual));
  return EmitCall(context, "SPMDFullToShardShape", x, local, LocalSharding(full, manual));
}

absl::StatusOr<Instruction*> EmitShardToFull(OpContext& context, Instruction* x, const Sharding& full,
                                             const ManualAxes& manual, const Shape& whole) {
  GW_RETURN_IF_ERROR(CheckShapes(full, manual, whole, x->shape()));
  GW_ASSIGN_OR_RETURN(Sharding outside, context.WithManual(full));
  x = context.EmitSharding(x, LocalSharding(full, manual));
  return EmitCall(context, "SPMDShardToFullShape", x, whole, WholeAlongOthers(std::move(outside), manual));
}

}  // namespace gangway::stablehlo

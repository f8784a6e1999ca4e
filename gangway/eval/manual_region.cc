#include "gangway/eval/manual_region.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/eval/strided.h"
#include "gangway/mesh/sharding.h"

namespace gangway::eval {
namespace {

using hlo::Instruction;

absl::StatusOr<const Sharding*> ShardingOf(const Instruction& instruction) {
  if (!instruction.has_sharding() || instruction.shardings()->size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(instruction.name(), " has no sharding"));
  }
  return &instruction.sharding();
}

// Axes that are manual inside and not outside.
AxisList Entered(const Sharding& inside, const Sharding& outside) {
  AxisList axes;
  for (const AxisRef& axis : inside.manual) {
    if (!Contains(outside.manual, axis)) axes.push_back(axis);
  }
  return axes;
}

// The split of each dimension along the entered axes; other axes of the sharding are the partitioner's business.
std::vector<AxisList> SplitsOf(const Sharding& sharding, const AxisList& entered) {
  std::vector<AxisList> splits;
  for (const DimSharding& dim : sharding.dims) {
    AxisList& axes = splits.emplace_back();
    for (const AxisRef& axis : dim.axes) {
      if (Contains(entered, axis)) axes.push_back(axis);
    }
  }
  return splits;
}

absl::Status CheckNoPendingSums(const Sharding& outside) {
  if (outside.unreduced.empty()) return absl::OkStatus();
  return absl::UnimplementedError("sums that are pending at the border of a manual computation");
}

// Where the shard of a mesh position lies in the whole array.
DimVector OffsetsOf(const Mesh& mesh, int64_t position, const std::vector<AxisList>& splits, const Shape& shard) {
  DimVector offsets;
  for (size_t d = 0; d < splits.size(); ++d) {
    offsets.push_back(CoordinateOf(mesh, position, splits[d]) * shard.dim(static_cast<int64_t>(d)));
  }
  return offsets;
}

absl::Status CheckFits(const Shape& whole, const Shape& shard, const std::vector<AxisList>& splits) {
  bool fits = whole.rank() == shard.rank() && static_cast<int64_t>(splits.size()) == whole.rank();
  for (int64_t d = 0; fits && d < whole.rank(); ++d) fits = whole.dim(d) == shard.dim(d) * ProductOf(splits[d]);
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(shard.ToString(), " is no shard of ", whole.ToString(), " along the manual axes"));
}

// Every part must be computed by somebody.
absl::Status CheckAllRun(const LockstepCall& call, const Mesh& mesh) {
  if (static_cast<int64_t>(call.devices.size()) == mesh.size()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("a manual computation over ", mesh.size(), " devices runs on ", call.devices.size()));
}

absl::StatusOr<int64_t> PositionOf(const Mesh& mesh, int64_t device) {
  int64_t position = mesh.PositionOf(device);
  if (position < 0) return absl::InvalidArgumentError(absl::StrCat("device ", device, " is not in ", mesh.ToString()));
  return position;
}

}  // namespace

absl::StatusOr<PerDevice> EnterManualRegion(const LockstepCall& call) {
  GW_ASSIGN_OR_RETURN(const Sharding* outside, ShardingOf(*call.instruction.operand(0)));
  GW_ASSIGN_OR_RETURN(const Sharding* inside, ShardingOf(call.instruction));
  const Mesh& mesh = *outside->mesh;
  GW_RETURN_IF_ERROR(CheckAllRun(call, mesh));
  GW_RETURN_IF_ERROR(CheckNoPendingSums(*outside));
  std::vector<AxisList> splits = SplitsOf(*outside, Entered(*inside, *outside));
  const Shape& shape = call.instruction.shape();
  GW_RETURN_IF_ERROR(CheckFits(call.instruction.operand(0)->shape(), shape, splits));
  DimVector strides = Strides(call.instruction.operand(0)->shape().dims());
  PerDevice results;
  for (size_t d = 0; d < call.devices.size(); ++d) {
    GW_ASSIGN_OR_RETURN(int64_t position, PositionOf(mesh, call.devices[d]));
    Literal shard(WithoutLayout(shape));
    CopyStrided(shape.dims(), ByteWidth(shape.dtype()), call.operands[0][d].array().data(),
                {Offset(OffsetsOf(mesh, position, splits, shape), strides), strides}, shard.data(),
                {0, Strides(shape.dims())});
    results.emplace_back(std::move(shard));
  }
  return results;
}

absl::StatusOr<PerDevice> LeaveManualRegion(const LockstepCall& call) {
  GW_ASSIGN_OR_RETURN(const Sharding* inside, ShardingOf(*call.instruction.operand(0)));
  GW_ASSIGN_OR_RETURN(const Sharding* outside, ShardingOf(call.instruction));
  const Mesh& mesh = *outside->mesh;
  GW_RETURN_IF_ERROR(CheckAllRun(call, mesh));
  GW_RETURN_IF_ERROR(CheckNoPendingSums(*outside));
  AxisList entered = Entered(*inside, *outside);
  std::vector<AxisList> splits = SplitsOf(*outside, entered);
  const Shape &shape = call.instruction.shape(), &shard = call.instruction.operand(0)->shape();
  GW_RETURN_IF_ERROR(CheckFits(shape, shard, splits));
  DimVector strides = Strides(shape.dims());
  AxisList others = UnusedAxes(mesh, entered);
  PerDevice results;
  for (int64_t device : call.devices) {
    GW_ASSIGN_OR_RETURN(int64_t here, PositionOf(mesh, device));
    Literal whole(WithoutLayout(shape));
    for (size_t d = 0; d < call.devices.size(); ++d) {
      GW_ASSIGN_OR_RETURN(int64_t there, PositionOf(mesh, call.devices[d]));
      if (CoordinateOf(mesh, here, others) != CoordinateOf(mesh, there, others)) continue;
      CopyStrided(shard.dims(), ByteWidth(shape.dtype()), call.operands[0][d].array().data(),
                  {0, Strides(shard.dims())}, whole.data(),
                  {Offset(OffsetsOf(mesh, there, splits, shard), strides), strides});
    }
    // Outside, what is equal on all devices is computed once.
    bool same = !results.empty() && results.front().array() == whole;
    results.push_back(same ? results.front() : Value(std::move(whole)));
  }
  return results;
}

}  // namespace gangway::eval

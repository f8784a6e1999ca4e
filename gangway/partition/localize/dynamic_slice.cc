// dynamic-slice and dynamic-update-slice along split dimensions. Starts are clamped in the whole array first; what lies
// on other devices is then out of the shard, which a border of the slice's size around the shard absorbs.
#include <algorithm>
#include <vector>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

// min(max(start, 0), limit) in s32, the way both operations read their starts.
Instruction* ClampedStart(Instruction* start, int64_t limit, Builder& builder) {
  const DType dtype = start->shape().dtype();
  const int bits = BitWidth(dtype);
  // The limit may not fit a narrow index type; then nothing has to be cut.
  const bool fits = bits >= 64 || limit < (int64_t{1} << (bits - (IsSigned(dtype) ? 1 : 0)));
  if (fits) {
    Literal bound(Shape::Scalar(dtype));
    StoreInt64(dtype, limit, bound.data());
    start = builder.Binary(Opcode::kMinimum, start, builder.Constant(std::move(bound)));
  }
  if (IsSigned(dtype)) {
    start = builder.Binary(Opcode::kMaximum, start, builder.Constant(Literal(Shape::Scalar(dtype))));
  }
  return dtype == DType::kS32 ? start : builder.Convert(start, DType::kS32);
}

// Where the slice begins in the shard with a border of `size` on both sides: anything from wholly before to wholly
// behind it.
Instruction* BorderedStart(Instruction* start, const Sharding& sharding, const Shape& global, int64_t dim, int64_t size,
                           Context& context) {
  Builder& builder = context.builder();
  const int64_t extent = ShardExtent(global.dim(dim), sharding.ShardCount(dim));
  start = ClampedStart(start, global.dim(dim) - size, builder);
  start = builder.Binary(Opcode::kSubtract, start, context.ShardOffset(sharding, global, dim));
  start = builder.Binary(Opcode::kAdd, start, builder.Index(size));
  start = builder.Binary(Opcode::kMaximum, start, builder.Index(0));
  return builder.Binary(Opcode::kMinimum, start, builder.Index(extent + size));
}

std::vector<Instruction*> ReplicatedStarts(const Instruction& instruction, int64_t first, Context& context,
                                           absl::Status* status) {
  std::vector<Instruction*> starts;
  for (int64_t i = first; i < instruction.operand_count(); ++i) {
    auto start = context.Replicate(context.Value(*instruction.operand(i)));
    if (!start.ok()) {
      *status = start.status();
      return {};
    }
    starts.push_back(*start);
  }
  return starts;
}

Instruction* WithBorder(Instruction* x, const std::vector<int64_t>& sizes, Builder& builder) {
  std::vector<hlo::PadDim> pad(sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) pad[d].low = pad[d].high = sizes[d];
  return builder.Pad(x, builder.Constant(Literal(Shape::Scalar(x->shape().dtype()))), std::move(pad));
}

Reduction CombinerOf(DType dtype) { return dtype == DType::kPred ? Reduction::kOr : Reduction::kSum; }

}  // namespace

absl::Status LocalizeDynamicSlice(const Instruction& instruction, Context& context) {
  const LocalValue& value = context.Value(*instruction.operand(0));
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  const Shape global = value.global;
  std::vector<int64_t> cut;  // split dimensions of which only a part is taken
  for (int64_t d = 0; d < global.rank(); ++d) {
    if (value.sharding.IsSplit(d) && instruction.shape().dim(d) != global.dim(d)) cut.push_back(d);
  }
  if (cut.empty() || !SameMesh(value.sharding.mesh, context.mesh())) return LocalizeByRule(instruction, context);

  // Everyone contributes what it has of the slice; the parts add up. Worth it when less moves than by gathering.
  Sharding kept = value.sharding;
  kept.unreduced.clear();
  Sharding result = kept, gathered = kept;
  for (int64_t d : cut) {
    for (const AxisRef& ref : kept.dims[d].axes) result.unreduced.push_back(ref);
    result.dims[d].axes.clear();
    gathered.dims[d].axes.clear();
  }
  result.reduction = CombinerOf(global.dtype());
  const Shape shape = WithoutLayout(instruction.shape());
  Sharding wanted = context.Wanted(instruction);
  wanted.manual = result.manual;
  const double by_parts = context.module().planner.Cost(result, wanted, shape);
  if (context.ReshardCost(value, gathered) <= by_parts) return LocalizeByChoice(instruction, context);

  Builder& builder = context.builder();
  absl::Status status;
  std::vector<Instruction*> starts = ReplicatedStarts(instruction, 1, context, &status);
  GW_RETURN_IF_ERROR(status);
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, kept));
  local = context.MaskPadding(local, kept, global, cut, builder.Constant(Literal(Shape::Scalar(global.dtype()))));
  DimVector border(global.rank(), 0), sizes = ShardShape(shape, result).dims();
  for (int64_t d : cut) {
    border[d] = sizes[d];
    starts[d] = BorderedStart(starts[d], kept, global, d, sizes[d], context);
  }
  DType index = DType::kS32;
  for (size_t d = 0; d < starts.size(); ++d) starts[d] = builder.Convert(starts[d], index);
  context.Set(instruction,
              builder.DynamicSlice(WithBorder(local, border, builder), std::move(starts), std::move(sizes)), result);
  return absl::OkStatus();
}

absl::Status LocalizeDynamicUpdateSlice(const Instruction& instruction, Context& context) {
  const LocalValue& value = context.Value(*instruction.operand(0));
  const LocalValue& update = context.Value(*instruction.operand(1));
  const Shape global = value.global;
  Sharding wanted = context.Wanted(instruction);
  std::vector<int64_t> cut;
  for (int64_t d = 0; d < global.rank(); ++d) {
    if (wanted.IsSplit(d) && update.global.dim(d) != global.dim(d)) cut.push_back(d);
  }
  if (cut.empty() || !SameMesh(wanted.mesh, context.mesh())) return LocalizeByRule(instruction, context);

  // No communication but for the update, which every device must see whole along the cut dimensions.
  Builder& builder = context.builder();
  wanted.unreduced.clear();
  Sharding update_sharding = wanted;
  for (int64_t d : cut) update_sharding.dims[d].axes.clear();
  absl::Status status;
  std::vector<Instruction*> starts = ReplicatedStarts(instruction, 2, context, &status);
  GW_RETURN_IF_ERROR(status);
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, wanted));
  GW_ASSIGN_OR_RETURN(Instruction * part, context.Reshard(update, update_sharding));
  const DimVector extents = local->shape().dims();
  DimVector border(global.rank(), 0), limits = extents;
  for (int64_t d : cut) {
    border[d] = part->shape().dim(d);
    limits[d] += border[d];
    starts[d] = BorderedStart(starts[d], wanted, global, d, border[d], context);
  }
  for (Instruction*& start : starts) start = builder.Convert(start, DType::kS32);
  Instruction* updated = builder.DynamicUpdateSlice(WithBorder(local, border, builder), part, std::move(starts));
  context.Set(instruction, builder.Slice(updated, border, limits), wanted);
  return absl::OkStatus();
}

}  // namespace gangway::partition

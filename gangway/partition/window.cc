#include "gangway/partition/window.h"

#include <algorithm>
#include <map>

#include "gangway/mesh/geometry.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/shard_pairs.h"

namespace gangway::partition {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

Instruction* SliceAlong(Instruction* x, int64_t dim, int64_t begin, int64_t end, Builder& builder) {
  if (begin == 0 && end == x->shape().dim(dim)) return x;
  DimVector starts(x->shape().rank(), 0), limits = x->shape().dims();
  starts[dim] = begin;
  limits[dim] = end;
  return builder.Slice(x, starts, limits);
}

Instruction* PadAlong(Instruction* x, int64_t dim, const hlo::PadDim& amount, Instruction* fill, Builder& builder) {
  if (amount == hlo::PadDim{}) return x;
  std::vector<hlo::PadDim> pad(x->shape().rank());
  pad[dim] = amount;
  if (fill == nullptr) fill = builder.Constant(Literal(Shape::Scalar(x->shape().dtype())));
  return builder.Pad(x, fill, std::move(pad));
}

int64_t FloorDiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
int64_t CeilDiv(int64_t a, int64_t b) { return -FloorDiv(-a, b); }

// What a shard gets from shard k + shift, where there is none: `fill`.
Instruction* FillMissing(Instruction* part, int64_t shift, const AxisList& axes, const MeshRef& mesh, Instruction* fill,
                         Context& context) {
  if (fill == nullptr || IsIdentity(*fill, Reduction::kSum)) return part;  // a permute without source gives zeros
  Builder& builder = context.builder();
  Instruction* place = context.coordinates().Of(mesh, axes);
  const int64_t shards = ProductOf(axes);
  Instruction* present = shift > 0
                             ? builder.Compare(hlo::ComparisonDirection::kLt, place, builder.Index(shards - shift))
                             : builder.Compare(hlo::ComparisonDirection::kGe, place, builder.Index(-shift));
  const Shape shape = WithoutLayout(part->shape());
  return builder.Select(builder.BroadcastScalar(present, WithDType(shape, DType::kPred)), part,
                        builder.BroadcastScalar(fill, shape));
}

}  // namespace

int64_t WindowRequest::Positions() const { return (ShardExtent(results, shards) - 1) * stride + reach; }
int64_t WindowRequest::Step() const { return ShardExtent(results, shards) * stride; }
int64_t WindowRequest::First(int64_t shard) const { return CeilDiv(FirstPosition(shard), dilation); }
int64_t WindowRequest::Holes(int64_t shard) const { return First(shard) * dilation - FirstPosition(shard); }

int64_t WindowRequest::Length() const {
  int64_t length = 1;
  for (int64_t shard = 0; shard < (IsAligned() ? 1 : shards); ++shard) {
    length = std::max(length, FloorDiv(FirstPosition(shard) + Positions() - 1, dilation) - First(shard) + 1);
  }
  return length;
}

WindowPlan PlanWindow(const WindowRequest& request) {
  WindowPlan plan;
  plan.request = request;
  const int64_t extent = ShardExtent(request.extent, request.shards);
  std::map<int64_t, WindowPiece> pieces;
  for (int64_t k = 0; k < request.shards; ++k) {
    // The last shards of the result may be partly or wholly padding, which needs nothing.
    const int64_t tile = ShardExtent(request.results, request.shards);
    const int64_t valid = std::min(tile, request.results - k * tile);
    if (valid <= 0) continue;
    const int64_t last_position = request.FirstPosition(k) + (valid - 1) * request.stride + request.reach - 1;
    const int64_t begin = request.First(k), end = FloorDiv(last_position, request.dilation) + 1;
    if (begin >= end) continue;  // only holes
    plan.reaches_out |= begin < 0 || end > request.extent;
    const int64_t first = std::max<int64_t>(begin, 0), last = std::min(end, request.extent) - 1;
    if (first > last) continue;
    for (int64_t shard = first / extent; shard <= last / extent; ++shard) {
      auto [it, added] = pieces.try_emplace(shard - k, WindowPiece{shard - k, extent, 0});
      it->second.begin = std::min(it->second.begin, std::max<int64_t>(first - shard * extent, 0));
      it->second.end = std::max(it->second.end, std::min(last + 1 - shard * extent, extent));
    }
  }
  if (pieces.empty()) return plan;
  const int64_t low = pieces.begin()->first, high = pieces.rbegin()->first;
  for (int64_t shift = low; shift <= high; ++shift) {
    WindowPiece piece = pieces.contains(shift) ? pieces[shift] : WindowPiece{shift, 0, extent};
    if (shift > low) piece.begin = 0;
    if (shift < high) piece.end = extent;
    if (shift != 0) plan.rows += piece.end - piece.begin;
    plan.pieces.push_back(piece);
  }
  return plan;
}

double WindowCost(const WindowPlan& plan, const Shape& global, const Sharding& sharding, int64_t dim) {
  Shape shard = ShardShape(global, sharding);
  shard.set_dim(dim, plan.rows);
  double messages = 0;
  for (const WindowPiece& piece : plan.pieces) messages += piece.shift != 0;
  return static_cast<double>(shard.ByteSize()) + messages * kBytesPerCollective;
}

Instruction* EmitWindow(const WindowPlan& plan, Instruction* local, int64_t dim, const Sharding& sharding,
                        Instruction* fill, Context& context) {
  Builder& builder = context.builder();
  const WindowRequest& request = plan.request;
  const AxisList& axes = sharding.dims[dim].axes;
  Shape shape = WithoutLayout(local->shape());
  shape.set_dim(dim, request.Length());
  if (plan.pieces.empty()) {
    return fill != nullptr ? builder.BroadcastScalar(fill, shape) : builder.Splat(shape, 0);
  }
  if (fill != nullptr) {
    Shape global = WithoutLayout(local->shape());
    global.set_dim(dim, request.extent);
    local = context.MaskPadding(local, sharding, global, {dim}, fill);
  }

  std::vector<Instruction*> parts;
  for (const WindowPiece& piece : plan.pieces) {
    Instruction* part = SliceAlong(local, dim, piece.begin, piece.end, builder);
    if (piece.shift != 0) {
      part = context.collectives().Permute(part, ShiftPairs(*sharding.mesh, axes, piece.shift));
      part = FillMissing(part, piece.shift, axes, sharding.mesh, fill, context);
    }
    parts.push_back(part);
  }
  Instruction* buffer = parts.size() == 1 ? parts[0] : builder.Concatenate(parts, dim);

  // Where each shard's window begins in its buffer.
  const int64_t extent = ShardExtent(request.extent, request.shards);
  std::vector<int64_t> starts;
  for (int64_t k = 0; k < request.shards; ++k) {
    starts.push_back(request.First(k) - (k + plan.pieces[0].shift) * extent - plan.pieces[0].begin);
  }
  const auto [least, most] = std::minmax_element(starts.begin(), starts.end());
  const int64_t low = std::max<int64_t>(0, -*least);
  const int64_t high = std::max<int64_t>(0, *most + request.Length() - buffer->shape().dim(dim));
  buffer = PadAlong(buffer, dim, {low, high, 0}, fill, builder);
  for (int64_t& start : starts) start += low;
  return SliceFrom(buffer, dim, starts, request.Length(), sharding, context);
}

Instruction* SliceFrom(Instruction* x, int64_t dim, const std::vector<int64_t>& starts, int64_t size,
                       const Sharding& sharding, Context& context) {
  Builder& builder = context.builder();
  if (std::all_of(starts.begin(), starts.end(), [&](int64_t start) { return start == starts[0]; })) {
    return SliceAlong(x, dim, starts[0], starts[0] + size, builder);
  }
  std::vector<Instruction*> indices(x->shape().rank(), builder.Index(0));
  indices[dim] = context.coordinates().PerShard(sharding.mesh, sharding.dims[dim].axes, starts);
  DimVector sizes = x->shape().dims();
  sizes[dim] = size;
  return builder.DynamicSlice(x, std::move(indices), std::move(sizes));
}

Instruction* EmitDilatedWindow(const WindowPlan& plan, Instruction* local, int64_t dim, const Sharding& sharding,
                               Instruction* fill, Context& context) {
  const WindowRequest& request = plan.request;
  Instruction* window = EmitWindow(plan, local, dim, sharding, fill, context);
  if (request.dilation == 1) return window;
  // The most holes any window begins with, then for each shard what it has too many.
  std::vector<int64_t> starts;
  int64_t low = 0;
  for (int64_t k = 0; k < request.shards; ++k) low = std::max(low, request.Holes(k));
  for (int64_t k = 0; k < request.shards; ++k) starts.push_back(low - request.Holes(k));
  const int64_t most = *std::max_element(starts.begin(), starts.end());
  const int64_t spread = (request.Length() - 1) * request.dilation + 1;
  const int64_t high = most + request.Positions() - low - spread;
  window = PadAlong(window, dim, {low, high, request.dilation - 1}, fill, context.builder());
  return SliceFrom(window, dim, starts, request.Positions(), sharding, context);
}

}  // namespace gangway::partition

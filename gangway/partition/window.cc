#include "gangway/partition/window.h"

#include <algorithm>
#include <map>

#include "gangway/mesh/geometry.h"

namespace gangway::partition {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

int64_t StrideOf(const Mesh& mesh, const AxisRef& ref) {
  int64_t stride = mesh.axis_size(ref.axis) / (ref.pre * ref.size);
  for (int a = ref.axis + 1; a < mesh.rank(); ++a) stride *= mesh.axis_size(a);
  return stride;
}

// The position whose coordinate along `axes` is `to` where this one's is `from`.
int64_t Moved(const Mesh& mesh, const AxisList& axes, int64_t position, int64_t from, int64_t to) {
  for (size_t i = axes.size(); i-- > 0;) {
    position += (to % axes[i].size - from % axes[i].size) * StrideOf(mesh, axes[i]);
    from /= axes[i].size;
    to /= axes[i].size;
  }
  return position;
}

// Shard k + shift sends to shard k.
DevicePairs ShiftPairs(const Mesh& mesh, const AxisList& axes, int64_t shift) {
  DevicePairs pairs;
  const int64_t shards = ProductOf(axes);
  for (int64_t position = 0; position < mesh.size(); ++position) {
    const int64_t target = CoordinateOf(mesh, position, axes);
    const int64_t source = target + shift;
    if (source < 0 || source >= shards) continue;
    pairs.push_back({mesh.DeviceAt(Moved(mesh, axes, position, target, source)), mesh.DeviceAt(position)});
  }
  return pairs;
}

Instruction* SliceAlong(Instruction* x, int64_t dim, int64_t begin, int64_t end, Builder& builder) {
  if (begin == 0 && end == x->shape().dim(dim)) return x;
  DimVector starts(x->shape().rank(), 0), limits = x->shape().dims();
  starts[dim] = begin;
  limits[dim] = end;
  return builder.Slice(x, starts, limits);
}

Instruction* PadAlong(Instruction* x, int64_t dim, int64_t low, int64_t high, Builder& builder) {
  if (low == 0 && high == 0) return x;
  std::vector<hlo::PadDim> pad(x->shape().rank());
  pad[dim].low = low;
  pad[dim].high = high;
  return builder.Pad(x, builder.Constant(Literal(Shape::Scalar(x->shape().dtype()))), std::move(pad));
}

}  // namespace

int64_t WindowRequest::Length() const { return (ShardExtent(results, shards) - 1) * stride + reach; }
int64_t WindowRequest::Step() const { return ShardExtent(results, shards) * stride; }

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
    const int64_t begin = request.base + k * request.Step(), end = begin + (valid - 1) * request.stride + request.reach;
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

  std::vector<Instruction*> parts;
  for (const WindowPiece& piece : plan.pieces) {
    Instruction* part = SliceAlong(local, dim, piece.begin, piece.end, builder);
    if (piece.shift != 0) part = context.collectives().Permute(part, ShiftPairs(*sharding.mesh, axes, piece.shift));
    parts.push_back(part);
  }
  Instruction* buffer = parts.size() == 1 ? parts[0] : builder.Concatenate(parts, dim);

  // Where shard k's window begins in its buffer: base + k*step - ((k + first shift)*extent + begin of the first piece).
  const int64_t extent = ShardExtent(request.extent, request.shards);
  const int64_t drift = request.Step() - extent;
  int64_t start = request.base - plan.pieces[0].shift * extent - plan.pieces[0].begin;
  const int64_t last = start + (request.shards - 1) * drift;
  const int64_t low = std::max<int64_t>(0, -std::min(start, last));
  const int64_t high = std::max<int64_t>(0, std::max(start, last) + request.Length() - buffer->shape().dim(dim));
  buffer = PadAlong(buffer, dim, low, high, builder);
  start += low;
  Instruction* window = nullptr;
  if (drift == 0) {
    window = SliceAlong(buffer, dim, start, start + request.Length(), builder);
  } else {
    std::vector<Instruction*> starts(shape.rank(), builder.Index(0));
    starts[dim] =
        builder.Binary(Opcode::kAdd, context.coordinates().Scaled(sharding.mesh, axes, drift), builder.Index(start));
    window = builder.DynamicSlice(buffer, std::move(starts), shape.dims());
  }
  if (fill == nullptr || !plan.reaches_out) return window;

  const Shape index_shape = WithDType(shape, DType::kS32);
  Instruction* first = builder.Binary(Opcode::kAdd, context.coordinates().Scaled(sharding.mesh, axes, request.Step()),
                                      builder.Index(request.base));
  Instruction* index =
      builder.Binary(Opcode::kAdd, builder.Iota(index_shape, dim), builder.BroadcastScalar(first, index_shape));
  Instruction* inside =
      builder.Binary(Opcode::kAnd, builder.Compare(hlo::ComparisonDirection::kGe, index, builder.Splat(index_shape, 0)),
                     builder.Compare(hlo::ComparisonDirection::kLt, index,
                                     builder.BroadcastScalar(builder.Index(request.extent), index_shape)));
  return builder.Select(inside, window, builder.BroadcastScalar(fill, shape));
}

}  // namespace gangway::partition

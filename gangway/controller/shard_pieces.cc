#include "gangway/controller/shard_pieces.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"

namespace gangway::controller {
namespace {

// What a shard holds of the whole array.
struct Box {
  DimVector start, extent;
  friend auto operator<=>(const Box&, const Box&) = default;
};

Box Nothing(size_t rank) { return {DimVector(rank, 0), DimVector(rank, 0)}; }

absl::StatusOr<std::vector<Box>> BoxesOf(const ArraySpec& spec) {
  if (spec.devices.size() == 1) return std::vector<Box>{{DimVector(spec.dims.size(), 0), spec.dims}};
  if (!spec.sharding.has_value()) return absl::UnimplementedError("it is not known what the shards of the array hold");
  if (!spec.sharding->unreduced.empty() || !spec.sharding->manual.empty()) {
    return absl::UnimplementedError("an array of partial sums is moved by a program");
  }
  const Shape shape(spec.dtype, spec.dims);
  std::vector<Box> boxes;
  for (size_t i = 0; i < spec.devices.size(); ++i) {
    Box& box = boxes.emplace_back();
    bool empty = false;
    for (const ShardDim& dim : ShardOfDevice(shape, *spec.sharding, static_cast<int64_t>(i))) {
      box.start.push_back(dim.offset);
      box.extent.push_back(dim.valid);
      empty |= dim.valid == 0;
    }
    if (empty) box = Nothing(spec.dims.size());
  }
  return boxes;
}

std::optional<Box> Common(const Box& a, const Box& b) {
  Box common;
  for (size_t d = 0; d < a.start.size(); ++d) {
    const int64_t start = std::max(a.start[d], b.start[d]);
    const int64_t end = std::min(a.start[d] + a.extent[d], b.start[d] + b.extent[d]);
    if (end <= start) return std::nullopt;
    common.start.push_back(start);
    common.extent.push_back(end - start);
  }
  return common;
}

DimVector Inside(const Box& box, const Box& shard) {
  DimVector place;
  for (size_t d = 0; d < box.start.size(); ++d) place.push_back(box.start[d] - shard.start[d]);
  return place;
}

}  // namespace

absl::StatusOr<std::vector<ShardPiece>> PlanPieces(const ArraySpec& from, const ArraySpec& to,
                                                   absl::FunctionRef<int(int from, int to)> distance) {
  if (from.dtype != to.dtype || from.dims != to.dims) {
    return absl::InvalidArgumentError("an array that is split in another way keeps its shape and element type");
  }
  GW_ASSIGN_OR_RETURN(const std::vector<Box> sources, BoxesOf(from));
  GW_ASSIGN_OR_RETURN(const std::vector<Box> targets, BoxesOf(to));
  std::map<Box, std::vector<int>> holders;
  for (size_t i = 0; i < sources.size(); ++i) holders[sources[i]].push_back(static_cast<int>(i));
  std::vector<ShardPiece> pieces;
  for (int position = 0; position < static_cast<int>(targets.size()); ++position) {
    for (const auto& [box, positions] : holders) {
      const std::optional<Box> common = Common(box, targets[position]);
      if (!common.has_value()) continue;
      const int nearest = *std::min_element(positions.begin(), positions.end(), [&](int a, int b) {
        return distance(a, position) < distance(b, position);
      });
      pieces.push_back({nearest, position, Inside(*common, box), Inside(*common, targets[position]), common->extent});
    }
  }
  return pieces;
}

bool HoldOtherParts(const ArraySpec& a, const ArraySpec& b) {
  if (a.devices.size() == 1 || !a.sharding.has_value() || !b.sharding.has_value()) return false;
  if (*a.sharding == *b.sharding) return false;
  const absl::StatusOr<std::vector<Box>> parts = BoxesOf(a), others = BoxesOf(b);
  return parts.ok() && others.ok() && *parts != *others;
}

}  // namespace gangway::controller

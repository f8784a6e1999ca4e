// HLO tile assignments to shardings over named axes and back.
#include <algorithm>
#include <functional>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/mesh/axis_solver.h"
#include "gangway/mesh/hlo_sharding.h"

namespace gangway {
namespace {

using Kind = TileAssignment::Kind;

absl::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kReplicated:
      return "replicated";
    case Kind::kMaximal:
      return "maximal";
    case Kind::kTiled:
      return "tiled";
    case Kind::kManual:
      return "manual";
    case Kind::kUnknown:
      return "unknown";
    case Kind::kUnreduced:
      return "unreduced";
  }
  return "unknown";
}

int64_t Product(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{1}, std::multiplies<int64_t>());
}

// iota reshaped to `reshape`, then transposed: the number at every place, row-major.
std::vector<int64_t> TransposedIota(const std::vector<int64_t>& reshape, const std::vector<int>& perm) {
  const int64_t count = Product(reshape);
  std::vector<int64_t> strides(reshape.size());
  int64_t stride = count;
  for (size_t i = 0; i < reshape.size(); ++i) strides[i] = stride /= reshape[i];
  std::vector<int64_t> list(count), index(perm.size(), 0);
  int64_t value = 0;
  for (int64_t place = 0; place < count; ++place) {
    list[place] = value;
    for (size_t i = perm.size(); i-- > 0;) {  // the next index: add one to the last digit, carry
      value += strides[perm[i]];
      if (++index[i] < reshape[perm[i]]) break;
      value -= index[i] * strides[perm[i]];
      index[i] = 0;
    }
  }
  return list;
}

// Drops parts of size 1 and joins those that stay neighbours under the transposition, so that a plain iota is [N].
void CanonicalizeIota(std::vector<int64_t>* reshape, std::vector<int>* perm) {
  std::vector<std::pair<int, int64_t>> order;  // (old dimension, size) in transposed order
  for (int old : *perm) {
    if ((*reshape)[old] != 1) order.push_back({old, (*reshape)[old]});
  }
  auto next_kept = [&](int old) {  // the dimension after `old` that is not of size 1
    do ++old;
    while (old < static_cast<int>(reshape->size()) && (*reshape)[old] == 1);
    return old;
  };
  std::vector<std::pair<int, int64_t>> joined;  // (old dimension that starts the run, size)
  int last = -1;
  for (const auto& [old, size] : order) {
    if (!joined.empty() && next_kept(last) == old) {
      joined.back().second *= size;
    } else {
      joined.push_back({old, size});
    }
    last = old;
  }
  std::vector<std::pair<int, int64_t>> by_old = joined;
  std::sort(by_old.begin(), by_old.end());
  reshape->clear();
  perm->clear();
  for (const auto& [old, size] : by_old) reshape->push_back(size);
  for (const auto& run : joined) {
    perm->push_back(static_cast<int>(std::find(by_old.begin(), by_old.end(), run) - by_old.begin()));
  }
  if (reshape->empty()) {
    *reshape = {1};
    *perm = {0};
  }
}

// The device order in which `axes` (all of the mesh's parts, transposed) are row-major.
void SetDeviceOrder(const Mesh& mesh, const AxisList& axes, TileAssignment* tiles) {
  AxisList by_mesh = axes;
  std::sort(by_mesh.begin(), by_mesh.end());
  for (const AxisRef& ref : by_mesh) tiles->iota_reshape.push_back(ref.size);
  for (const AxisRef& ref : axes) {
    tiles->iota_transpose.push_back(static_cast<int>(std::find(by_mesh.begin(), by_mesh.end(), ref) - by_mesh.begin()));
  }
  if (!mesh.IsIota()) {
    tiles->devices = TransposedIota(tiles->iota_reshape, tiles->iota_transpose);
    for (int64_t& position : tiles->devices) position = mesh.DeviceAt(position);
    tiles->iota_reshape.clear();
    tiles->iota_transpose.clear();
    return;
  }
  CanonicalizeIota(&tiles->iota_reshape, &tiles->iota_transpose);
}

void AppendParts(const AxisList& axes, AxisList* all) {
  for (const AxisRef& ref : axes) {
    if (ref.size > 1) all->push_back(ref);
  }
}

// What each device holds, tile dimension by tile dimension.
struct Placement {
  struct Axis {
    int64_t size = 1;
    std::vector<int64_t> coordinate;  // by device; of trailing dimensions: the group of devices that differ only in it
  };
  std::vector<Axis> dims;
  std::vector<std::pair<Kind, Axis>> last;
};

Placement PlacementOf(const TileAssignment& tiles, int64_t rank) {
  const std::vector<int64_t> devices = tiles.DeviceList();
  Placement placement;
  int64_t stride = devices.size();
  for (size_t i = 0; i < tiles.dims.size(); ++i) {
    stride /= tiles.dims[i];
    const bool is_data = static_cast<int64_t>(i) < rank;
    Placement::Axis axis{tiles.dims[i], std::vector<int64_t>(devices.size())};
    for (size_t place = 0; place < devices.size(); ++place) {
      const int64_t coordinate = static_cast<int64_t>(place) / stride % tiles.dims[i];
      axis.coordinate[devices[place]] = is_data ? coordinate : static_cast<int64_t>(place) - coordinate * stride;
    }
    if (is_data) {
      placement.dims.push_back(std::move(axis));
    } else if (axis.size > 1) {
      placement.last.push_back({tiles.last[i - rank], std::move(axis)});
    }
  }
  return placement;
}

std::vector<int64_t> ByPosition(const Mesh& mesh, const std::vector<int64_t>& by_device) {
  std::vector<int64_t> by_position(by_device.size());
  for (int64_t p = 0; p < mesh.size(); ++p) by_position[p] = by_device[mesh.DeviceAt(p)];
  return by_position;
}

// Solves for the axes of `mesh` with one choice of parts.
std::optional<Sharding> Solve(const Placement& placement, const MeshRef& mesh, const AxisList& parts) {
  Sharding sharding = Sharding::Replicated(mesh, placement.dims.size());
  for (size_t i = 0; i < placement.dims.size(); ++i) {
    const Placement::Axis& axis = placement.dims[i];
    if (axis.size == 1) continue;
    auto axes = AxesForCoordinates(*mesh, parts, ByPosition(*mesh, axis.coordinate), axis.size);
    if (!axes) return std::nullopt;
    sharding.dims[i].axes = std::move(*axes);
  }
  for (const auto& [kind, axis] : placement.last) {
    if (kind != Kind::kManual && kind != Kind::kUnreduced) continue;
    auto axes = AxesForGroups(*mesh, parts, ByPosition(*mesh, axis.coordinate), axis.size);
    if (!axes) return std::nullopt;
    AxisList& list = kind == Kind::kManual ? sharding.manual : sharding.unreduced;
    list.insert(list.end(), axes->begin(), axes->end());
  }
  return sharding;
}

std::optional<Sharding> Solve(const Placement& placement, const MeshRef& mesh) {
  for (const AxisList& parts : PrimeParts(*mesh)) {
    if (auto sharding = Solve(placement, mesh, parts)) return sharding;
  }
  return std::nullopt;
}

MeshRef AnonymousMesh(const std::vector<int64_t>& sizes, std::vector<int64_t> device_ids = {}) {
  std::vector<MeshAxis> axes;
  for (int64_t size : sizes) {
    if (size > 1) axes.push_back({absl::StrCat("_", axes.size()), size});
  }
  if (axes.empty()) axes.push_back({"_0", 1});
  auto mesh = Mesh::Make(std::move(axes), std::move(device_ids));
  return mesh.ok() ? std::make_shared<const Mesh>(*std::move(mesh)) : nullptr;
}

// Cuts the one axis of a sharding's mesh at the borders of the parts it uses: those become the axes of a new mesh.
Sharding SplitIntoAxes(const Sharding& over_one_axis) {
  const int64_t size = over_one_axis.mesh->size();
  std::vector<int64_t> borders = {1, size};
  for (const AxisRef& ref : over_one_axis.UsedAxes()) {
    borders.push_back(ref.pre);
    borders.push_back(ref.pre * ref.size);
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  std::vector<int64_t> sizes;
  for (size_t i = 0; i + 1 < borders.size(); ++i) sizes.push_back(borders[i + 1] / borders[i]);
  const MeshRef mesh = AnonymousMesh(sizes);
  auto split = [&](const AxisList& axes) {
    AxisList out;
    for (const AxisRef& ref : axes) {
      for (int axis = 0; axis < mesh->rank(); ++axis) {
        if (borders[axis] >= ref.pre && borders[axis] < ref.pre * ref.size) out.push_back(FullAxis(*mesh, axis));
      }
    }
    return out;
  };
  Sharding sharding = over_one_axis;
  sharding.mesh = mesh;
  for (DimSharding& dim : sharding.dims) dim.axes = split(dim.axes);
  sharding.manual = split(over_one_axis.manual);
  sharding.unreduced = split(over_one_axis.unreduced);
  return sharding;
}

// Over a mesh whose axes are the tile dimensions themselves; always possible.
absl::StatusOr<Sharding> OverOwnTiles(const TileAssignment& tiles, int64_t rank) {
  const MeshRef mesh = AnonymousMesh(tiles.dims, tiles.DeviceList());
  if (mesh == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("devices of a tile assignment: ", tiles.ToString()));
  Sharding sharding = Sharding::Replicated(mesh, rank);
  int axis = 0;
  for (size_t i = 0; i < tiles.dims.size(); ++i) {
    if (tiles.dims[i] == 1) continue;
    const AxisRef ref = FullAxis(*mesh, axis++);
    if (static_cast<int64_t>(i) < rank) {
      sharding.dims[i].axes = {ref};
    } else if (tiles.last[i - rank] == Kind::kManual) {
      sharding.manual.push_back(ref);
    } else if (tiles.last[i - rank] == Kind::kUnreduced) {
      sharding.unreduced.push_back(ref);
    }
  }
  return sharding;
}

absl::Status CheckTiles(const TileAssignment& tiles, int64_t rank, int64_t num_devices) {
  auto fail = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("sharding ", tiles.ToString(), ": ", what));
  };
  if (static_cast<int64_t>(tiles.dims.size()) != rank + static_cast<int64_t>(tiles.last.size())) {
    return fail(absl::StrCat("has ", tiles.dims.size(), " tile dimensions, ", tiles.last.size(),
                             " of them trailing, on an array of rank ", rank));
  }
  int64_t count = 1;
  for (int64_t dim : tiles.dims) {
    if (dim < 1 || dim > num_devices) return fail("tile counts do not fit the devices");
    count *= dim;
    if (count > num_devices) return fail("tile counts do not fit the devices");
  }
  if (count != num_devices) return fail(absl::StrCat("covers ", count, " of ", num_devices, " devices"));
  std::vector<bool> seen(num_devices, false);
  const std::vector<int64_t> devices = tiles.DeviceList();
  if (static_cast<int64_t>(devices.size()) != num_devices) return fail("device list and tile counts do not fit");
  for (int64_t device : devices) {
    if (device < 0 || device >= num_devices || seen[device]) return fail("devices are no permutation");
    seen[device] = true;
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<int64_t> TileAssignment::DeviceList() const {
  if (kind == Kind::kMaximal) return {maximal_device};
  if (kind != Kind::kTiled) return {};
  if (!devices.empty()) return devices;
  // Text and protos come from outside: a malformed transposition gives an empty list, which CheckTiles refuses.
  if (iota_reshape.size() != iota_transpose.size()) return {};
  std::vector<bool> seen(iota_transpose.size(), false);
  for (int dim : iota_transpose) {
    if (dim < 0 || dim >= static_cast<int>(seen.size()) || seen[dim]) return {};
    seen[dim] = true;
  }
  int64_t count = 1;
  for (int64_t size : iota_reshape) {
    if (size < 1 || size > (int64_t{1} << 24) || (count *= size) > (int64_t{1} << 24)) return {};
  }
  return TransposedIota(iota_reshape, iota_transpose);
}

std::string TileAssignment::ToString() const {
  if (kind == Kind::kMaximal) return absl::StrCat("{maximal device=", maximal_device, "}");
  if (kind != Kind::kTiled) return absl::StrCat("{", KindName(kind), "}");
  std::string text = absl::StrCat("{devices=[", absl::StrJoin(dims, ","), "]");
  if (!devices.empty()) {
    absl::StrAppend(&text, absl::StrJoin(devices, ","));
  } else {
    absl::StrAppend(&text, "<=[", absl::StrJoin(iota_reshape, ","), "]");
    if (iota_reshape.size() > 1) absl::StrAppend(&text, "T(", absl::StrJoin(iota_transpose, ","), ")");
  }
  if (last == std::vector<Kind>{Kind::kReplicated}) {
    absl::StrAppend(&text, " last_tile_dim_replicate");
  } else if (!last.empty()) {
    absl::StrAppend(
        &text, " last_tile_dims={",
        absl::StrJoin(last, ", ", [](std::string* out, Kind kind) { absl::StrAppend(out, KindName(kind)); }), "}");
  }
  return text + "}";
}

TileAssignment ToTileAssignment(const Sharding& sharding) {
  TileAssignment tiles;
  if (sharding.IsMaximal()) {
    tiles.kind = Kind::kMaximal;
    tiles.maximal_device = sharding.mesh->DeviceAt(0);
    return tiles;
  }
  const Mesh& mesh = *sharding.mesh;
  // Parts of manual and unreduced axes are a set: mesh order.
  AxisList manual, unreduced, used;
  AppendParts(sharding.manual, &manual);
  AppendParts(sharding.unreduced, &unreduced);
  std::sort(manual.begin(), manual.end());
  std::sort(unreduced.begin(), unreduced.end());
  const bool split = ProductOf(sharding.DimAxes()) > 1;
  if (!split) {
    if (ProductOf(manual) == mesh.size() && mesh.size() > 1) tiles.kind = Kind::kManual;
    if (ProductOf(unreduced) == mesh.size() && mesh.size() > 1) tiles.kind = Kind::kUnreduced;
    if (tiles.kind != Kind::kReplicated || (manual.empty() && unreduced.empty())) return tiles;
  }
  tiles.kind = Kind::kTiled;
  for (const DimSharding& dim : sharding.dims) {
    tiles.dims.push_back(ProductOf(dim.axes));
    AppendParts(dim.axes, &used);
  }
  AxisList taken = used;
  for (const auto& [kind, axes] : {std::pair(Kind::kManual, &manual), std::pair(Kind::kUnreduced, &unreduced)}) {
    taken.insert(taken.end(), axes->begin(), axes->end());
    if (axes->empty()) continue;
    tiles.last.push_back(kind);
    tiles.dims.push_back(ProductOf(*axes));
    used.insert(used.end(), axes->begin(), axes->end());
  }
  if (const AxisList rest = UnusedAxes(mesh, taken); !rest.empty()) {
    tiles.last.push_back(Kind::kReplicated);
    tiles.dims.push_back(ProductOf(rest));
    used.insert(used.end(), rest.begin(), rest.end());
  }
  SetDeviceOrder(mesh, used, &tiles);
  return tiles;
}

absl::StatusOr<Sharding> FromTileAssignment(const TileAssignment& tiles, int64_t rank, int64_t num_devices,
                                            MeshRef mesh) {
  if (num_devices < 1 || num_devices > (int64_t{1} << 24)) {
    return absl::InvalidArgumentError(absl::StrCat("sharding over ", num_devices, " devices"));
  }
  if (tiles.kind == Kind::kMaximal) {
    if (tiles.maximal_device < 0) return absl::InvalidArgumentError("maximal sharding on a negative device");
    return Sharding::Maximal(tiles.maximal_device, rank);
  }
  const bool usable = mesh != nullptr && !mesh->IsMaximal() && mesh->size() == num_devices;
  if (tiles.kind != Kind::kTiled) {
    if (!usable) mesh = AnonymousMesh({num_devices});
    Sharding sharding = tiles.kind == Kind::kUnknown ? Sharding::Open(mesh, rank) : Sharding::Replicated(mesh, rank);
    if (tiles.kind == Kind::kManual) sharding.manual = UnusedAxes(*mesh, {});
    if (tiles.kind == Kind::kUnreduced) sharding.unreduced = UnusedAxes(*mesh, {});
    return sharding;
  }
  absl::Status valid = CheckTiles(tiles, rank, num_devices);
  if (!valid.ok()) return valid;
  const Placement placement = PlacementOf(tiles, rank);
  if (usable) {
    if (auto sharding = Solve(placement, mesh)) return *std::move(sharding);
  }
  if (auto sharding = Solve(placement, AnonymousMesh({num_devices}))) return SplitIntoAxes(*sharding);
  return OverOwnTiles(tiles, rank);
}

std::optional<Sharding> OverMesh(const Sharding& sharding, const MeshRef& mesh) {
  if (SameMesh(sharding.mesh, mesh)) {
    Sharding same = sharding;
    same.mesh = mesh;
    return same;
  }
  const Mesh& from = *sharding.mesh;
  if (from.size() != mesh->size() || from.IsMaximal() || mesh->IsMaximal()) return std::nullopt;
  auto coordinates = [&](const AxisList& axes) {
    std::vector<int64_t> by_device(from.size());
    for (int64_t p = 0; p < from.size(); ++p) by_device[from.DeviceAt(p)] = CoordinateOf(from, p, axes);
    return ByPosition(*mesh, by_device);
  };
  for (const AxisList& parts : PrimeParts(*mesh)) {
    Sharding out = sharding;
    out.mesh = mesh;
    bool solved = true;
    for (size_t i = 0; solved && i < sharding.dims.size(); ++i) {
      auto axes = AxesForCoordinates(*mesh, parts, coordinates(sharding.dims[i].axes), sharding.ShardCount(i));
      solved = axes.has_value();
      if (solved) out.dims[i].axes = *std::move(axes);
    }
    for (AxisList Sharding::*set : {&Sharding::replicated, &Sharding::unreduced, &Sharding::manual}) {
      if (!solved) break;
      auto axes = AxesForGroups(*mesh, parts, coordinates(UnusedAxes(from, sharding.*set)), ProductOf(sharding.*set));
      solved = axes.has_value();
      if (solved) out.*set = *std::move(axes);
    }
    if (solved) return out;
  }
  return std::nullopt;
}

}  // namespace gangway

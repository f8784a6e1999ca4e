#include "gangway/mesh/sharding.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/mesh/geometry.h"

namespace gangway {
namespace {

AxisList Normalized(AxisList axes) {
  axes.erase(std::remove_if(axes.begin(), axes.end(), [](const AxisRef& ref) { return ref.size == 1; }), axes.end());
  MergeSubAxes(&axes);
  return axes;
}

bool SameAxisSet(AxisList a, AxisList b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return Normalized(std::move(a)) == Normalized(std::move(b));
}

// Device numbers to mesh positions.
std::vector<int64_t> PositionsByDevice(const Mesh& mesh) {
  std::vector<int64_t> positions(mesh.size());
  for (int64_t p = 0; p < mesh.size(); ++p) positions[mesh.DeviceAt(p)] = p;
  return positions;
}

// Devices that differ only along `axes` get the same number; numbers are the first such device.
std::vector<int64_t> GroupByDevice(const Mesh& mesh, const AxisList& axes) {
  std::vector<int64_t> group(mesh.size());
  for (const std::vector<int64_t>& members : ReplicaGroups(mesh, axes)) {
    const int64_t first = *std::min_element(members.begin(), members.end());
    for (int64_t device : members) group[device] = first;
  }
  return group;
}

std::string DimToString(const Mesh& mesh, const DimSharding& dim) {
  std::vector<std::string> parts;
  for (const AxisRef& ref : dim.axes) parts.push_back(AxisToString(mesh, ref));
  if (dim.open) parts.push_back("?");
  std::string text = absl::StrCat("{", absl::StrJoin(parts, ", "), "}");
  if (dim.priority) absl::StrAppend(&text, "p", *dim.priority);
  return text;
}

absl::Status ValidateAxis(const Mesh& mesh, const AxisRef& ref) {
  if (ref.axis < 0 || ref.axis >= mesh.rank())
    return absl::InvalidArgumentError("sharding names an axis not in its mesh");
  const int64_t axis_size = mesh.axis_size(ref.axis);
  if (ref.pre < 1 || ref.size < 1 || ref.size > axis_size || ref.pre > axis_size / ref.size ||
      axis_size % (ref.pre * ref.size) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("sub-axis ", mesh.axis_name(ref.axis), ":(", ref.pre, ")", ref.size,
                                                   " is no part of an axis of size ", axis_size));
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view ReductionName(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "sum";
    case Reduction::kMax:
      return "max";
    case Reduction::kMin:
      return "min";
    case Reduction::kProduct:
      return "product";
    case Reduction::kAnd:
      return "and";
    case Reduction::kOr:
      return "or";
  }
  return "sum";
}

Sharding Sharding::Replicated(MeshRef mesh, int64_t rank) {
  Sharding sharding;
  sharding.mesh = std::move(mesh);
  sharding.dims.resize(rank);
  return sharding;
}

Sharding Sharding::Open(MeshRef mesh, int64_t rank) {
  Sharding sharding = Replicated(std::move(mesh), rank);
  for (DimSharding& dim : sharding.dims) dim.open = true;
  return sharding;
}

Sharding Sharding::Maximal(int64_t device, int64_t rank) {
  return Replicated(std::make_shared<const Mesh>(Mesh::Maximal(device)), rank);
}

bool Sharding::IsReplicated() const {
  if (ProductOf(unreduced) > 1) return false;
  return std::all_of(dims.begin(), dims.end(), [](const DimSharding& dim) { return ProductOf(dim.axes) == 1; });
}

AxisList Sharding::DimAxes() const {
  AxisList axes;
  for (const DimSharding& dim : dims) axes.insert(axes.end(), dim.axes.begin(), dim.axes.end());
  return axes;
}

AxisList Sharding::UsedAxes() const {
  AxisList axes = DimAxes();
  for (const AxisList* list : {&replicated, &unreduced, &manual}) axes.insert(axes.end(), list->begin(), list->end());
  return axes;
}

Sharding Sharding::Closed() const {
  Sharding closed = *this;
  for (DimSharding& dim : closed.dims) {
    dim.axes = Normalized(std::move(dim.axes));
    dim.open = false;
    dim.priority.reset();
  }
  closed.replicated.clear();
  if (closed.unreduced.empty()) closed.reduction = gangway::Reduction::kSum;
  return closed;
}

std::string Sharding::ToString() const {
  if (mesh == nullptr) return "{no mesh}";
  std::string text = absl::StrCat(
      "{", mesh->ToString(), ", [",
      absl::StrJoin(dims, ", ",
                    [&](std::string* out, const DimSharding& dim) { absl::StrAppend(out, DimToString(*mesh, dim)); }),
      "]");
  if (!replicated.empty()) absl::StrAppend(&text, ", replicated=", AxesToString(*mesh, replicated));
  if (!unreduced.empty()) {
    absl::StrAppend(&text, ", unreduced=", reduction == Reduction::kSum ? "" : ReductionName(reduction),
                    AxesToString(*mesh, unreduced));
  }
  if (!manual.empty()) absl::StrAppend(&text, ", manual=", AxesToString(*mesh, manual));
  return text + "}";
}

bool operator==(const Sharding& a, const Sharding& b) {
  return a.dims == b.dims && a.replicated == b.replicated && a.unreduced == b.unreduced && a.manual == b.manual &&
         (a.unreduced.empty() || a.reduction == b.reduction) && SameMesh(a.mesh, b.mesh);
}

absl::Status ValidateSharding(const Sharding& sharding, const Shape& shape) {
  if (sharding.mesh == nullptr) return absl::InvalidArgumentError("sharding without a mesh");
  if (sharding.rank() != shape.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("sharding of rank ", sharding.rank(), " on ", shape.ToString(), ": ", sharding.ToString()));
  }
  AxisList seen;
  for (const AxisRef& ref : sharding.UsedAxes()) {
    absl::Status valid = ValidateAxis(*sharding.mesh, ref);
    if (!valid.ok()) return valid;
    if (Overlaps(seen, ref)) {
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", AxisToString(*sharding.mesh, ref), " is used twice in ", sharding.ToString()));
    }
    seen.push_back(ref);
  }
  return absl::OkStatus();
}

bool SamePlacement(const Sharding& a, const Sharding& b, const Shape& shape) {
  if (a.rank() != b.rank()) return false;
  if (a.IsMaximal() || b.IsMaximal()) return SameMesh(a.mesh, b.mesh);
  if (!a.unreduced.empty() && a.reduction != b.reduction) return false;
  if (SameMesh(a.mesh, b.mesh)) {
    bool same = SameAxisSet(a.unreduced, b.unreduced) && SameAxisSet(a.manual, b.manual);
    for (int64_t i = 0; same && i < a.rank(); ++i) same = Normalized(a.dims[i].axes) == Normalized(b.dims[i].axes);
    if (same) return true;
  }
  if (a.mesh->size() != b.mesh->size()) return false;
  if (GroupByDevice(*a.mesh, a.unreduced) != GroupByDevice(*b.mesh, b.unreduced)) return false;
  if (GroupByDevice(*a.mesh, a.manual) != GroupByDevice(*b.mesh, b.manual)) return false;
  const std::vector<int64_t> in_a = PositionsByDevice(*a.mesh), in_b = PositionsByDevice(*b.mesh);
  for (size_t device = 0; device < in_a.size(); ++device) {
    if (ShardOf(shape, a, in_a[device]) != ShardOf(shape, b, in_b[device])) return false;
  }
  return true;
}

}  // namespace gangway

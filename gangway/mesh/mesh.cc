#include "gangway/mesh/mesh.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gangway {
namespace {

constexpr int64_t kMaxPositions = int64_t{1} << 24;
constexpr size_t kMaxAxes = 1024;  // those of size 1 included

bool IsPermutation(const std::vector<int64_t>& ids) {
  std::vector<bool> seen(ids.size(), false);
  for (int64_t id : ids) {
    if (id < 0 || id >= static_cast<int64_t>(ids.size()) || seen[id]) return false;
    seen[id] = true;
  }
  return true;
}

}  // namespace

absl::StatusOr<Mesh> Mesh::Make(std::vector<MeshAxis> axes, std::vector<int64_t> device_ids) {
  if (axes.size() > kMaxAxes) return absl::InvalidArgumentError(absl::StrCat("mesh of ", axes.size(), " axes"));
  int64_t size = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].name.empty()) return absl::InvalidArgumentError("mesh has an axis without a name");
    if (axes[i].size < 1 || axes[i].size > kMaxPositions) {
      return absl::InvalidArgumentError(absl::StrCat("mesh axis '", axes[i].name, "' has size ", axes[i].size));
    }
    for (size_t j = 0; j < i; ++j) {
      if (axes[j].name == axes[i].name) {
        return absl::InvalidArgumentError(absl::StrCat("mesh has two axes named '", axes[i].name, "'"));
      }
    }
    size *= axes[i].size;
    if (size > kMaxPositions) return absl::InvalidArgumentError("mesh has more than 2^24 positions");
  }
  if (axes.empty() && device_ids.size() == 1) {
    if (device_ids[0] < 0) return absl::InvalidArgumentError(absl::StrCat("mesh on device ", device_ids[0]));
    return Maximal(device_ids[0]);
  }
  if (!device_ids.empty()) {
    if (static_cast<int64_t>(device_ids.size()) != size || !IsPermutation(device_ids)) {
      return absl::InvalidArgumentError(absl::StrCat("device ids of a mesh of ", size,
                                                     " positions are no permutation of 0..", size - 1, ": [",
                                                     absl::StrJoin(device_ids, ","), "]"));
    }
    if (std::is_sorted(device_ids.begin(), device_ids.end())) device_ids.clear();
  }
  Mesh mesh;
  mesh.axes_ = std::move(axes);
  mesh.device_ids_ = std::move(device_ids);
  return mesh;
}

Mesh Mesh::Maximal(int64_t device) {
  Mesh mesh;
  mesh.device_ids_ = {device};
  return mesh;
}

int Mesh::FindAxis(absl::string_view name) const {
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int64_t Mesh::size() const {
  int64_t size = 1;
  for (const MeshAxis& axis : axes_) size *= axis.size;
  return size;
}

int64_t Mesh::PositionOf(int64_t device) const {
  if (device_ids_.empty()) return device >= 0 && device < size() ? device : -1;
  auto it = std::find(device_ids_.begin(), device_ids_.end(), device);
  return it == device_ids_.end() ? -1 : it - device_ids_.begin();
}

std::string Mesh::ToString() const {
  std::string text = absl::StrCat("mesh[",
                                  absl::StrJoin(axes_, ",",
                                                [](std::string* out, const MeshAxis& axis) {
                                                  absl::StrAppend(out, "'", axis.name, "'=", axis.size);
                                                }),
                                  "]");
  if (!device_ids_.empty()) absl::StrAppend(&text, ", device_ids=(", absl::StrJoin(device_ids_, ","), ")");
  return text;
}

bool SameMesh(const MeshRef& a, const MeshRef& b) { return a == b || (a && b && *a == *b); }

}  // namespace gangway

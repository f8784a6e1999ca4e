// The forms of replica groups, made explicit.
#include "gangway/hlo/replica_groups.h"

#include <algorithm>
#include <numeric>

namespace gangway::hlo {
namespace {

using Groups = std::vector<std::vector<int64_t>>;

// iota(n) shaped `reshape`, transposed by `transpose`, read row by row.
std::vector<int64_t> TransposedIota(const std::vector<int64_t>& reshape, const std::vector<int>& transpose) {
  const size_t rank = reshape.size();
  std::vector<int64_t> strides(rank, 1);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * reshape[i];
  std::vector<int64_t> values{0};
  for (size_t i = 0; i < rank; ++i) {
    const size_t dim = transpose.empty() ? i : transpose[i];
    std::vector<int64_t> next;
    next.reserve(values.size() * reshape[dim]);
    for (int64_t value : values) {
      for (int64_t k = 0; k < reshape[dim]; ++k) next.push_back(value + k * strides[dim]);
    }
    values = std::move(next);
  }
  return values;
}

}  // namespace

Groups ReplicaGroupList::Expand(int64_t num_devices) const {
  if (form == Form::kMeshAxes) return ReplicaGroups(*mesh, axes);
  if (form == Form::kIota) {
    const std::vector<int64_t> devices = TransposedIota(iota_reshape, iota_transpose);
    Groups expanded;
    for (int64_t g = 0; g < num_groups; ++g) {
      auto first = devices.begin() + g * group_size;
      expanded.emplace_back(first, first + group_size);
    }
    return expanded;
  }
  if (!groups.empty()) return groups;
  Groups everyone(1, std::vector<int64_t>(num_devices));
  std::iota(everyone[0].begin(), everyone[0].end(), 0);
  return everyone;
}

int64_t LargestGroup(const ReplicaGroupList& list, int64_t num_devices) {
  switch (list.form) {
    case ReplicaGroupList::Form::kIota:
      return list.group_size;
    case ReplicaGroupList::Form::kMeshAxes:
      return ProductOf(list.axes);
    case ReplicaGroupList::Form::kExplicit:
      break;
  }
  if (list.groups.empty()) return num_devices;
  size_t largest = 0;
  for (const std::vector<int64_t>& group : list.groups) largest = std::max(largest, group.size());
  return static_cast<int64_t>(largest);
}

bool operator==(const ReplicaGroupList& a, const ReplicaGroupList& b) {
  return a.form == b.form && a.groups == b.groups && a.num_groups == b.num_groups && a.group_size == b.group_size &&
         a.iota_reshape == b.iota_reshape && a.iota_transpose == b.iota_transpose && SameMesh(a.mesh, b.mesh) &&
         a.axes == b.axes;
}

}  // namespace gangway::hlo

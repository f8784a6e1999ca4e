// The algebra of axes and sub-axes.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/mesh/mesh.h"

namespace gangway {
namespace {

int64_t End(const AxisRef& ref) { return ref.pre * ref.size; }

// Both are parts of one factorization of the axis: the boundaries, sorted, divide one another.
bool Coexist(const AxisRef& a, const AxisRef& b) {
  int64_t bounds[] = {a.pre, End(a), b.pre, End(b)};
  std::sort(std::begin(bounds), std::end(bounds));
  for (int i = 0; i < 3; ++i) {
    if (bounds[i + 1] % bounds[i] != 0) return false;
  }
  return true;
}

}  // namespace

AxisRef FullAxis(const Mesh& mesh, int axis) { return {axis, 1, mesh.axis_size(axis)}; }

bool IsFullAxis(const Mesh& mesh, const AxisRef& ref) { return ref.size == mesh.axis_size(ref.axis); }

// Parts that belong to different factorizations (halves and thirds of an axis of 6) count as overlapping: no array can
// use both.
bool Overlaps(const AxisRef& a, const AxisRef& b) {
  if (a.axis != b.axis || a.size == 1 || b.size == 1) return false;
  return std::max(a.pre, b.pre) < std::min(End(a), End(b)) || !Coexist(a, b);
}

bool Overlaps(const AxisList& list, const AxisRef& ref) {
  return std::any_of(list.begin(), list.end(), [&](const AxisRef& entry) { return Overlaps(entry, ref); });
}

bool Contains(const AxisList& list, const AxisRef& ref) {
  return std::any_of(list.begin(), list.end(), [&](const AxisRef& entry) {
    return entry.axis == ref.axis && entry.pre <= ref.pre && End(ref) <= End(entry) && Coexist(entry, ref);
  });
}

int64_t ProductOf(const AxisList& axes) {
  int64_t product = 1;
  for (const AxisRef& ref : axes) product *= ref.size;
  return product;
}

void RemoveOverlapping(AxisList* list, const AxisList& axes) {
  list->erase(std::remove_if(list->begin(), list->end(), [&](const AxisRef& ref) { return Overlaps(axes, ref); }),
              list->end());
}

void MergeSubAxes(AxisList* axes) {
  size_t kept = 0;
  for (size_t i = 0; i < axes->size(); ++i) {
    const AxisRef ref = (*axes)[i];
    if (kept > 0 && (*axes)[kept - 1].axis == ref.axis && End((*axes)[kept - 1]) == ref.pre) {
      (*axes)[kept - 1].size *= ref.size;
    } else {
      (*axes)[kept++] = ref;
    }
  }
  axes->resize(kept);
}

AxisList CommonPrefix(const AxisList& a, const AxisList& b) {
  AxisList left = a, right = b, prefix;
  MergeSubAxes(&left);
  MergeSubAxes(&right);
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (left[i] == right[i]) {
      prefix.push_back(left[i]);
      continue;
    }
    if (left[i].axis == right[i].axis && left[i].pre == right[i].pre) {
      const int64_t shared = std::gcd(left[i].size, right[i].size);
      if (shared > 1) prefix.push_back({left[i].axis, left[i].pre, shared});
    }
    break;
  }
  return prefix;
}

AxisList RemovePrefix(const AxisList& axes, const AxisList& prefix) {
  AxisList left = axes, taken = prefix;
  MergeSubAxes(&left);
  MergeSubAxes(&taken);
  AxisList rest;
  size_t i = 0;
  for (; i < taken.size() && i < left.size(); ++i) {
    if (left[i] == taken[i]) continue;
    rest.push_back({left[i].axis, End(taken[i]), left[i].size / taken[i].size});
    ++i;
    break;
  }
  rest.insert(rest.end(), left.begin() + i, left.end());
  return rest;
}

AxisList UnusedAxes(const Mesh& mesh, const AxisList& used) {
  AxisList unused;
  for (int axis = 0; axis < mesh.rank(); ++axis) {
    AxisList parts;
    for (const AxisRef& ref : used) {
      if (ref.axis == axis && ref.size > 1) parts.push_back(ref);
    }
    std::sort(parts.begin(), parts.end());
    int64_t next = 1;
    for (const AxisRef& ref : parts) {
      if (ref.pre > next) unused.push_back({axis, next, ref.pre / next});
      next = End(ref);
    }
    if (next < mesh.axis_size(axis)) unused.push_back({axis, next, mesh.axis_size(axis) / next});
  }
  return unused;
}

int64_t CoordinateOf(const Mesh& mesh, int64_t position, const AxisList& axes) {
  int64_t coordinate = 0;
  for (const AxisRef& ref : axes) {
    int64_t minor = mesh.axis_size(ref.axis) / End(ref);  // positions along the axis below this part
    for (int64_t axis = ref.axis + 1; axis < mesh.rank(); ++axis) minor *= mesh.axis_size(static_cast<int>(axis));
    coordinate = coordinate * ref.size + position / minor % ref.size;
  }
  return coordinate;
}

std::vector<std::vector<int64_t>> ReplicaGroups(const Mesh& mesh, const AxisList& axes) {
  const AxisList others = UnusedAxes(mesh, axes);
  std::vector<std::vector<int64_t>> groups(ProductOf(others), std::vector<int64_t>(ProductOf(axes)));
  for (int64_t position = 0; position < mesh.size(); ++position) {
    groups[CoordinateOf(mesh, position, others)][CoordinateOf(mesh, position, axes)] = mesh.DeviceAt(position);
  }
  return groups;
}

std::string AxisToString(const Mesh& mesh, const AxisRef& ref) {
  std::string text = absl::StrCat("'", mesh.axis_name(ref.axis), "'");
  if (!IsFullAxis(mesh, ref)) absl::StrAppend(&text, ":(", ref.pre, ")", ref.size);
  return text;
}

std::string AxesToString(const Mesh& mesh, const AxisList& axes) {
  return absl::StrCat(
      "{",
      absl::StrJoin(axes, ",",
                    [&](std::string* out, const AxisRef& ref) { absl::StrAppend(out, AxisToString(mesh, ref)); }),
      "}");
}

}  // namespace gangway

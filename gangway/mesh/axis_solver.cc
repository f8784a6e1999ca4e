#include "gangway/mesh/axis_solver.h"

#include <algorithm>
#include <numeric>

namespace gangway {
namespace {

constexpr size_t kMaxChoices = 64;

std::vector<int64_t> PrimeFactors(int64_t n) {
  std::vector<int64_t> factors;
  for (int64_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  if (n > 1) factors.push_back(n);
  return factors;
}

// The mesh position whose coordinate along `ref` is 1 and along everything else 0.
int64_t UnitPosition(const Mesh& mesh, const AxisRef& ref) {
  int64_t stride = mesh.axis_size(ref.axis) / (ref.pre * ref.size);
  for (int64_t axis = ref.axis + 1; axis < mesh.rank(); ++axis) stride *= mesh.axis_size(static_cast<int>(axis));
  return stride;
}

}  // namespace

std::vector<AxisList> PrimeParts(const Mesh& mesh) {
  std::vector<AxisList> choices(1);
  for (int axis = 0; axis < mesh.rank(); ++axis) {
    std::vector<int64_t> factors = PrimeFactors(mesh.axis_size(axis));  // sorted: the first permutation
    std::vector<AxisList> extended;
    do {
      AxisList parts;
      int64_t pre = 1;
      for (int64_t factor : factors) {
        parts.push_back({axis, pre, factor});
        pre *= factor;
      }
      for (AxisList choice : choices) {
        choice.insert(choice.end(), parts.begin(), parts.end());
        extended.push_back(std::move(choice));
      }
    } while (extended.size() < kMaxChoices && std::next_permutation(factors.begin(), factors.end()));
    choices = std::move(extended);
  }
  return choices;
}

std::optional<AxisList> AxesForCoordinates(const Mesh& mesh, const AxisList& parts,
                                           const std::vector<int64_t>& coordinates, int64_t size) {
  if (coordinates[0] != 0) return std::nullopt;
  std::vector<std::pair<int64_t, AxisRef>> by_stride;
  for (const AxisRef& part : parts) {
    const int64_t stride = coordinates[UnitPosition(mesh, part)];
    if (stride != 0) by_stride.push_back({stride, part});
  }
  std::sort(by_stride.begin(), by_stride.end(), std::greater<>());
  AxisList axes;
  int64_t left = size;
  for (const auto& [stride, part] : by_stride) {
    if (left != stride * part.size) return std::nullopt;
    left = stride;
    axes.push_back(part);
  }
  if (left != 1) return std::nullopt;
  for (int64_t position = 0; position < mesh.size(); ++position) {
    if (CoordinateOf(mesh, position, axes) != coordinates[position]) return std::nullopt;
  }
  MergeSubAxes(&axes);
  return axes;
}

std::optional<AxisList> AxesForGroups(const Mesh& mesh, const AxisList& parts, const std::vector<int64_t>& groups,
                                      int64_t size) {
  AxisList axes;
  for (const AxisRef& part : parts) {
    if (groups[UnitPosition(mesh, part)] == groups[0]) axes.push_back(part);
  }
  if (ProductOf(axes) != size) return std::nullopt;
  const AxisList others = UnusedAxes(mesh, axes);
  std::vector<int64_t> names(ProductOf(others), -1);
  for (int64_t position = 0; position < mesh.size(); ++position) {
    int64_t& name = names[CoordinateOf(mesh, position, others)];
    if (name == -1) name = groups[position];
    if (name != groups[position]) return std::nullopt;
  }
  MergeSubAxes(&axes);
  return axes;
}

}  // namespace gangway

#include "gangway/propagate/main_mesh.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gangway/mesh/hlo_sharding.h"

namespace gangway::propagate {
namespace {

MeshRef MeshOfSizes(const std::vector<int64_t>& sizes) {
  std::vector<MeshAxis> axes;
  for (int64_t size : sizes) axes.push_back({absl::StrCat("_", axes.size()), size});
  auto mesh = Mesh::Make(std::move(axes));
  return mesh.ok() ? std::make_shared<const Mesh>(*std::move(mesh)) : std::make_shared<const Mesh>();
}

bool IsUsable(const MeshRef& mesh) { return mesh != nullptr && mesh->rank() > 0; }

bool HasUserNames(const Mesh& mesh) { return !absl::StartsWith(mesh.axis_name(0), "_"); }

// Cuts one axis over all devices wherever an annotation does; null when one of them cannot be expressed that way.
MeshRef CommonRefinement(const std::vector<const Sharding*>& annotations, int64_t size) {
  const MeshRef whole = MeshOfSizes({size});
  std::vector<int64_t> borders = {1, size};
  for (const Sharding* annotation : annotations) {
    auto over = OverMesh(*annotation, whole);
    if (!over) return nullptr;
    for (const AxisRef& ref : over->UsedAxes()) {
      borders.push_back(ref.pre);
      borders.push_back(ref.pre * ref.size);
    }
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  std::vector<int64_t> sizes;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    if (borders[i + 1] % borders[i] != 0) return nullptr;  // halves and thirds
    sizes.push_back(borders[i + 1] / borders[i]);
  }
  if (sizes.empty()) sizes.push_back(1);
  return MeshOfSizes(sizes);
}

MeshRef MeshOfAnnotations(const std::vector<const Sharding*>& annotations) {
  const MeshRef& first = annotations.front()->mesh;
  bool same = true;
  for (const Sharding* annotation : annotations) {
    if (HasUserNames(*annotation->mesh)) return annotation->mesh;
    same = same && SameMesh(annotation->mesh, first);
  }
  if (same) return first;
  const MeshRef refined = CommonRefinement(annotations, first->size());
  return refined ? refined : first;
}

}  // namespace

MeshRef ChooseMesh(hlo::Module& module, absl::Span<const hlo::Computation* const> computations) {
  for (const auto& [name, mesh] : module.meshes()) {
    if (IsUsable(mesh) && mesh->size() == module.config().num_partitions) return mesh;
  }
  std::vector<const Sharding*> annotations;
  for (const hlo::Computation* computation : computations) {
    for (const auto& instruction : computation->instructions()) {
      if (!instruction->has_sharding()) continue;
      for (const Sharding& sharding : *instruction->shardings()) {
        if (!IsUsable(sharding.mesh)) continue;
        if (!annotations.empty() && annotations.front()->mesh->size() > sharding.mesh->size()) continue;
        if (!annotations.empty() && annotations.front()->mesh->size() < sharding.mesh->size()) annotations.clear();
        annotations.push_back(&sharding);
      }
    }
  }
  MeshRef mesh = annotations.empty() ? MeshOfSizes({std::max<int64_t>(1, module.config().num_partitions)})
                                     : MeshOfAnnotations(annotations);
  if (module.meshes().empty()) module.meshes().emplace_back("mesh", mesh);
  return mesh;
}

}  // namespace gangway::propagate

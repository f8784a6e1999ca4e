#include "gangway/cli/device_count.h"

#include <memory>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gangway/base/status.h"
#include "gangway/mesh/mesh.h"

namespace gangway::cli {
namespace {

// "data=4,model=2"
absl::StatusOr<Mesh> ParseMesh(const std::string& text) {
  std::vector<MeshAxis> axes;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    std::pair<absl::string_view, absl::string_view> axis = absl::StrSplit(part, absl::MaxSplits('=', 1));
    int64_t size;
    if (!absl::SimpleAtoi(axis.second, &size)) {
      return absl::InvalidArgumentError(absl::StrCat("--mesh: expected NAME=SIZE, got '", part, "'"));
    }
    axes.push_back({std::string(axis.first), size});
  }
  absl::StatusOr<Mesh> mesh = Mesh::Make(std::move(axes));
  if (!mesh.ok()) return Annotate(mesh.status(), "--mesh");
  return mesh;
}

}  // namespace

void AddDeviceOptions(CLI::App& command, DeviceOptions* options) {
  command.add_option("--devices", options->devices, "Number of devices, where the program does not say")
      ->check(CLI::Range(1, 1 << 24));
  command.add_option("--mesh", options->mesh, "Mesh where the program has none, for example data=4,model=2");
  command
      .add_option(
          "--device-memory", options->memory_bytes,
          "Memory of each device, e.g. 4GiB: where a program would take more it gathers arrays again instead of "
          "keeping them; default: not limited")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
}

absl::StatusOr<int64_t> DeviceCount(const DeviceOptions& options, hlo::Module* module) {
  const int64_t devices = options.devices;
  int64_t of_mesh = 0;
  if (!options.mesh.empty()) {
    GW_ASSIGN_OR_RETURN(Mesh mesh, ParseMesh(options.mesh));
    of_mesh = mesh.size();
    if (module->meshes().empty()) module->meshes().emplace_back("mesh", std::make_shared<const Mesh>(std::move(mesh)));
  }
  if (devices > 0 && of_mesh > 0 && devices != of_mesh) {
    return absl::InvalidArgumentError(absl::StrCat("--devices ", devices, " but the mesh has ", of_mesh, " positions"));
  }
  if (devices > 0) return devices;
  if (of_mesh > 0) return of_mesh;
  if (module->config().num_partitions > 1) return module->config().num_partitions;
  for (const auto& [name, mesh] : module->meshes()) {
    if (!mesh->IsMaximal() && mesh->size() > 1) return mesh->size();
  }
  return 1;
}

}  // namespace gangway::cli

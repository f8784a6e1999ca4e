// The texts and forms of shardings: HLO `{devices=[2,1,2]<=[4] last_tile_dim_replicate}` (V1 and V2), named
// `{mesh['x'=2], [{'x', ?}]}` (V3), sdy `#sdy.sharding<@mesh, [{"x"}, {?}]>`. Grammar: shared reference,
// sdy-encodings.md sections 4 and 7.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/mesh/sharding.h"

namespace gangway {

// HLO's tile assignment as a plain value, the form of text and of OpSharding protos. Trailing tile dimensions hold data
// that is not split: `last` names the kind of each.
struct TileAssignment {
  enum class Kind : uint8_t { kReplicated, kMaximal, kTiled, kManual, kUnknown, kUnreduced };
  Kind kind = Kind::kReplicated;
  int64_t maximal_device = 0;
  std::vector<int64_t> dims;          // tile counts: tensor dimensions, then trailing ones
  std::vector<Kind> last;             // kinds of the trailing dimensions
  std::vector<int64_t> iota_reshape;  // V2: iota(prod) reshaped to this, transposed by iota_transpose, reshaped to dims
  std::vector<int> iota_transpose;
  std::vector<int64_t> devices;  // V1: explicit row-major list; empty for V2

  std::vector<int64_t> DeviceList() const;  // row-major over dims
  std::string ToString() const;             // the text of HLO, without tuple braces
  friend bool operator==(const TileAssignment&, const TileAssignment&) = default;
};

// Tile assignment of a sharding, in the shortest V2 form XLA would print, V1 where the mesh order is no iota.
TileAssignment ToTileAssignment(const Sharding& sharding);

// A sharding over `mesh` that places data as the assignment does; sub-axes of the mesh where needed. When `mesh` is
// null or cannot express it, over a mesh of its own (anonymous axes "_0", "_1", ...; device_ids where the order is no
// iota). `rank` is the array's.
absl::StatusOr<Sharding> FromTileAssignment(const TileAssignment& tiles, int64_t rank, int64_t num_devices,
                                            MeshRef mesh);

// The same placement expressed over another mesh of the same devices, or nullopt when that takes more than its
// (sub-)axes.
std::optional<Sharding> OverMesh(const Sharding& sharding, const MeshRef& mesh);

// HLO sharding text of one array or a tuple `{{...}, {...}}`. `rank_of_leaf` gives each leaf's rank (replicated text
// has none).
absl::StatusOr<Shardings> ParseHloShardings(absl::string_view text, absl::Span<const int64_t> rank_of_leaf,
                                            int64_t num_devices, MeshRef mesh);
absl::StatusOr<TileAssignment> ParseTileAssignment(absl::string_view text);
// V3 text when the mesh has user's names, V2/V1 otherwise; a tuple gets outer braces.
std::string PrintHloShardings(const Shardings& shardings, bool is_tuple);

// `mesh['x'=2,'y'=4] {'x'}`: some axes of a mesh, as replica groups name them.
struct MeshAndAxes {
  MeshRef mesh;
  AxisList axes;
};
absl::StatusOr<MeshAndAxes> ParseMeshAndAxes(absl::string_view text);

// sdy texts, for round-trip frontend attributes and dumps. `meshes` by symbol name.
using MeshTable = std::map<std::string, MeshRef>;
absl::StatusOr<Sharding> ParseSdySharding(absl::string_view text, const MeshTable& meshes);
absl::StatusOr<Shardings> ParseSdyShardingPerValue(absl::string_view text, const MeshTable& meshes);
absl::StatusOr<AxisList> ParseSdyManualAxes(absl::string_view text, const Mesh& mesh);
absl::StatusOr<MeshTable> ParseSdyMeshes(absl::string_view text);  // {mesh = #sdy.mesh<["x"=2]>, ...}
std::string PrintSdySharding(const Sharding& sharding, absl::string_view mesh_name);

}  // namespace gangway

// Shardy's texts, as they stand in frontend attributes.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/base/status.h"
#include "gangway/mesh/hlo_sharding.h"
#include "gangway/mesh/text_cursor.h"

namespace gangway {
namespace {

// `["x"=2, "y"=2], device_ids=[...]` up to and including `>`; the `<` was read.
absl::StatusOr<MeshRef> ConsumeMeshBody(TextCursor* cursor) {
  GW_RETURN_IF_ERROR(cursor->Expect("["));
  GW_ASSIGN_OR_RETURN(std::vector<MeshAxis> axes, ConsumeMeshAxes(cursor, '"'));
  std::vector<int64_t> device_ids;
  if (cursor->Consume(",")) {
    GW_RETURN_IF_ERROR(cursor->Expect("device_ids=["));
    GW_ASSIGN_OR_RETURN(device_ids, cursor->IntsUntil("]"));
  }
  GW_RETURN_IF_ERROR(cursor->Expect(">"));
  GW_ASSIGN_OR_RETURN(Mesh mesh, Mesh::Make(std::move(axes), std::move(device_ids)));
  return std::make_shared<const Mesh>(std::move(mesh));
}

absl::StatusOr<MeshRef> ConsumeMeshName(TextCursor* cursor, const MeshTable& meshes) {
  if (cursor->Consume("mesh<")) return ConsumeMeshBody(cursor);
  GW_RETURN_IF_ERROR(cursor->Expect("@"));
  std::string name;
  if (cursor->Peek("\"")) {
    GW_ASSIGN_OR_RETURN(name, cursor->Quoted('"'));
  } else {
    GW_ASSIGN_OR_RETURN(name, cursor->Word());
  }
  auto it = meshes.find(name);
  if (it == meshes.end()) return absl::InvalidArgumentError(absl::StrCat("sharding over unknown mesh @", name));
  return it->second;
}

// `<@mesh, [{"x"}, {?}], replicated={"y"}>`.
absl::StatusOr<Sharding> ConsumeBody(TextCursor* cursor, const MeshTable& meshes) {
  Sharding sharding;
  GW_RETURN_IF_ERROR(cursor->Expect("<"));
  GW_ASSIGN_OR_RETURN(sharding.mesh, ConsumeMeshName(cursor, meshes));
  GW_RETURN_IF_ERROR(cursor->Expect(","));
  GW_RETURN_IF_ERROR(cursor->Expect("["));
  GW_ASSIGN_OR_RETURN(sharding.dims, ConsumeDims(cursor, '"', *sharding.mesh));
  while (cursor->Consume(",")) {
    AxisList* list = &sharding.replicated;
    if (!cursor->Consume("replicated=")) {
      GW_RETURN_IF_ERROR(cursor->Expect("unreduced="));
      list = &sharding.unreduced;
      for (Reduction reduction : {Reduction::kSum, Reduction::kMax, Reduction::kMin}) {
        if (cursor->Consume(ReductionName(reduction))) sharding.reduction = reduction;
      }
    }
    GW_RETURN_IF_ERROR(cursor->Expect("{"));
    GW_ASSIGN_OR_RETURN(*list, ConsumeAxes(cursor, '"', *sharding.mesh));
  }
  GW_RETURN_IF_ERROR(cursor->Expect(">"));
  GW_RETURN_IF_ERROR(ValidateSharding(sharding, Shape(DType::kPred, DimVector(sharding.dims.size(), 1))));
  return sharding;
}

std::string SdyAxes(const Mesh& mesh, const AxisList& axes) {
  return absl::StrJoin(axes, ", ", [&](std::string* out, const AxisRef& ref) {
    absl::StrAppend(out, "\"", mesh.axis_name(ref.axis), "\"");
    if (!IsFullAxis(mesh, ref)) absl::StrAppend(out, ":(", ref.pre, ")", ref.size);
  });
}

}  // namespace

absl::StatusOr<Sharding> ParseSdySharding(absl::string_view text, const MeshTable& meshes) {
  TextCursor cursor(text);
  cursor.Consume("#sdy.sharding");
  GW_ASSIGN_OR_RETURN(Sharding sharding, ConsumeBody(&cursor, meshes));
  GW_RETURN_IF_ERROR(cursor.ExpectEnd());
  return sharding;
}

absl::StatusOr<Shardings> ParseSdyShardingPerValue(absl::string_view text, const MeshTable& meshes) {
  TextCursor cursor(text);
  Shardings shardings;
  if (!cursor.Consume("#sdy.sharding_per_value<[")) {
    GW_ASSIGN_OR_RETURN(Sharding sharding, ParseSdySharding(text, meshes));
    shardings.push_back(std::move(sharding));
    return shardings;
  }
  while (!cursor.Consume("]")) {
    if (!shardings.empty()) GW_RETURN_IF_ERROR(cursor.Expect(","));
    GW_ASSIGN_OR_RETURN(Sharding sharding, ConsumeBody(&cursor, meshes));
    shardings.push_back(std::move(sharding));
  }
  GW_RETURN_IF_ERROR(cursor.Expect(">"));
  GW_RETURN_IF_ERROR(cursor.ExpectEnd());
  return shardings;
}

absl::StatusOr<AxisList> ParseSdyManualAxes(absl::string_view text, const Mesh& mesh) {
  TextCursor cursor(text);
  cursor.Consume("#sdy<");
  GW_RETURN_IF_ERROR(cursor.Expect("manual_axes{"));
  GW_ASSIGN_OR_RETURN(AxisList axes, ConsumeAxes(&cursor, '"', mesh));
  cursor.Consume(">");
  GW_RETURN_IF_ERROR(cursor.ExpectEnd());
  return axes;
}

absl::StatusOr<MeshTable> ParseSdyMeshes(absl::string_view text) {
  TextCursor cursor(text);
  MeshTable meshes;
  GW_RETURN_IF_ERROR(cursor.Expect("{"));
  while (!cursor.Consume("}")) {
    if (!meshes.empty()) GW_RETURN_IF_ERROR(cursor.Expect(","));
    std::string name;
    if (cursor.Peek("\"")) {
      GW_ASSIGN_OR_RETURN(name, cursor.Quoted('"'));
    } else {
      GW_ASSIGN_OR_RETURN(name, cursor.Word());
    }
    GW_RETURN_IF_ERROR(cursor.Expect("="));
    GW_RETURN_IF_ERROR(cursor.Expect("#sdy.mesh<"));
    GW_ASSIGN_OR_RETURN(MeshRef mesh, ConsumeMeshBody(&cursor));
    meshes.emplace(std::move(name), std::move(mesh));
  }
  GW_RETURN_IF_ERROR(cursor.ExpectEnd());
  return meshes;
}

std::string PrintSdySharding(const Sharding& sharding, absl::string_view mesh_name) {
  const Mesh& mesh = *sharding.mesh;
  std::string text = absl::StrCat("#sdy.sharding<@", mesh_name, ", [");
  for (size_t i = 0; i < sharding.dims.size(); ++i) {
    const DimSharding& dim = sharding.dims[i];
    absl::StrAppend(&text, i == 0 ? "" : ", ", "{", SdyAxes(mesh, dim.axes));
    if (dim.open) absl::StrAppend(&text, dim.axes.empty() ? "?" : ", ?");
    absl::StrAppend(&text, "}");
    if (dim.priority) absl::StrAppend(&text, "p", *dim.priority);
  }
  absl::StrAppend(&text, "]");
  if (!sharding.replicated.empty()) absl::StrAppend(&text, ", replicated={", SdyAxes(mesh, sharding.replicated), "}");
  if (!sharding.unreduced.empty()) {
    absl::StrAppend(&text,
                    ", unreduced=", sharding.reduction == Reduction::kSum ? "" : ReductionName(sharding.reduction), "{",
                    SdyAxes(mesh, sharding.unreduced), "}");
  }
  return text + ">";
}

}  // namespace gangway

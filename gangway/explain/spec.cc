#include "gangway/explain/spec.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "gangway/base/status.h"
#include "gangway/mesh/text_cursor.h"

namespace gangway::explain {
namespace {

// None, 'x' or ('x', 'y').
absl::StatusOr<AxisList> ConsumeDimension(TextCursor* cursor, const Mesh& mesh) {
  AxisList axes;
  if (cursor->Consume("None")) return axes;
  const bool several = cursor->Consume("(");
  do {
    if (several && cursor->Peek(")")) break;  // ('x',)
    GW_ASSIGN_OR_RETURN(AxisRef axis, ConsumeAxis(cursor, '\'', mesh));
    axes.push_back(axis);
  } while (several && cursor->Consume(","));
  if (several) GW_RETURN_IF_ERROR(cursor->Expect(")"));
  return axes;
}

}  // namespace

std::string AxisNames(const Mesh& mesh, const AxisList& axes) {
  const std::string braced = AxesToString(mesh, axes);
  return std::string(absl::StripSuffix(absl::StripPrefix(braced, "{"), "}"));
}

std::string SpecOf(const Sharding& sharding) {
  if (sharding.mesh == nullptr) return "P()";
  if (sharding.IsMaximal()) return absl::StrCat("device ", sharding.mesh->DeviceAt(0));
  std::vector<std::string> dims;
  for (const DimSharding& dim : sharding.dims) {
    const std::string names = AxisNames(*sharding.mesh, dim.axes);
    dims.push_back(dim.axes.empty() ? "None" : dim.axes.size() == 1 ? names : absl::StrCat("(", names, ")"));
  }
  while (!dims.empty() && dims.back() == "None") dims.pop_back();
  std::string text = absl::StrCat("P(", absl::StrJoin(dims, ", "), ")");
  if (!sharding.unreduced.empty()) {
    absl::StrAppend(&text, " with partial results over ", AxisNames(*sharding.mesh, sharding.unreduced));
  }
  if (!sharding.manual.empty()) absl::StrAppend(&text, " inside ", AxisNames(*sharding.mesh, sharding.manual));
  return text;
}

absl::StatusOr<Sharding> ParseSpec(absl::string_view text, MeshRef mesh, int64_t rank) {
  Sharding sharding = Sharding::Replicated(std::move(mesh), rank);
  TextCursor cursor(text);
  GW_RETURN_IF_ERROR(cursor.Expect("P("));
  for (int64_t dim = 0; !cursor.Consume(")"); ++dim) {
    if (dim > 0) GW_RETURN_IF_ERROR(cursor.Expect(","));
    if (dim > 0 && cursor.Consume(")")) break;  // P('x',)
    if (dim >= rank) return absl::InvalidArgumentError(absl::StrCat(text, " for an array of rank ", rank));
    GW_ASSIGN_OR_RETURN(sharding.dims[dim].axes, ConsumeDimension(&cursor, *sharding.mesh));
  }
  GW_RETURN_IF_ERROR(cursor.ExpectEnd());
  GW_RETURN_IF_ERROR(ValidateSharding(sharding, Shape(DType::kPred, DimVector(rank, 1))));
  return sharding;
}

}  // namespace gangway::explain

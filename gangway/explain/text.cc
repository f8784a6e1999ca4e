// An explanation for a terminal.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gangway/base/amounts.h"
#include "gangway/explain/explain.h"

namespace gangway::explain {
namespace {

std::string PathText(const Path& path) {
  const std::string places = absl::StrJoin(
      path.places, " -> ", [](std::string* out, const Place& place) { absl::StrAppend(out, place.ToString()); });
  return absl::StrCat("dim ", path.dim, " on ", path.axes, ": ", places);
}

void AppendPaths(const char* title, const std::vector<Path>& paths, std::string* out) {
  for (const Path& path : paths) absl::StrAppend(out, "       ", title, " ", PathText(path), "\n");
}

void AppendCause(const Cause& cause, std::string* out) {
  absl::StrAppend(out, "     wanted by ", cause.wanted_by.ToString(), "\n");
  if (!cause.is_reshard) return;
  absl::StrAppend(out, "     moves ", cause.shape, cause.value.instruction.empty() ? "" : " ", cause.value.ToString(),
                  "\n       from ", cause.from, "\n       to   ", cause.to, "\n");
  AppendPaths("from", cause.from_paths, out);
  AppendPaths("to  ", cause.to_paths, out);
  absl::StrAppend(out, "     plan: ", cause.plan, "\n");
  for (const auto& [from, cost] : cause.others) {
    absl::StrAppend(out, "     instead of from ", from, ", at ", BytesText(cost), "\n");
  }
}

void AppendRemedy(const Collective& collective, std::string* out) {
  if (collective.remedy.has_value()) {
    const Remedy& remedy = *collective.remedy;
    absl::StrAppend(out, "     removed by ", remedy.spec, " on ", remedy.where,
                    remedy.pays() ? ": " : ", at a price: ", remedy.PriceText(), "\n");
  } else if (collective.remedies_tried) {
    absl::StrAppend(out, "     no annotation of its ends removes it\n");
  }
}

}  // namespace

std::string ToText(const Explanation& explanation) {
  std::string out =
      absl::StrFormat("%s on %d devices, %s\n%s received per device and run; %s modelled on %s\n\n",
                      explanation.program, explanation.devices, explanation.mesh.empty() ? "no mesh" : explanation.mesh,
                      BytesText(explanation.bytes), SecondsText(explanation.seconds), explanation.machine);
  int number = 0;
  for (const Collective& collective : explanation.collectives) {
    absl::StrAppendFormat(&out, "%3d. %s along %s: %s, %.0f time%s, %s, %.1f %% of the run\n", ++number,
                          collective.kind, collective.axes, BytesText(collective.bytes), collective.executions,
                          collective.executions == 1 ? "" : "s", SecondsText(collective.seconds),
                          100 * collective.share);
    for (const Cause& cause : collective.causes) AppendCause(cause, &out);
    AppendRemedy(collective, &out);
  }
  if (explanation.collectives.empty()) absl::StrAppend(&out, "no collectives\n");
  const auto untried = std::count_if(explanation.collectives.begin(), explanation.collectives.end(),
                                     [](const Collective& collective) { return !collective.remedies_tried; });
  if (untried > 0) {
    absl::StrAppend(&out, "no annotations were tried for ", untried,
                    " collectives, or not all (--remedy-seconds, --remedies-for)\n");
  }
  if (!explanation.tensors.empty()) absl::StrAppend(&out, "\nlargest tensors\n");
  for (const Tensor& tensor : explanation.tensors) {
    absl::StrAppend(&out, "  ", tensor.place.ToString(), " ", tensor.shape, " ", tensor.sharding, ": ",
                    BytesText(tensor.bytes_per_device), " of ", BytesText(tensor.bytes), " on each device\n");
    AppendPaths("", tensor.paths, &out);
  }
  for (const compile::ReplicatedFallback& fallback : explanation.fallbacks) {
    absl::StrAppend(&out, "replicated: ", fallback.instruction, ", ", BytesText(fallback.bytes), ": ", fallback.reason,
                    "\n");
  }
  for (const std::string& conflict : explanation.conflicts) absl::StrAppend(&out, "conflict: ", conflict, "\n");
  return out;
}

}  // namespace gangway::explain

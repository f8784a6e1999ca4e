// An explanation as one page: the mesh and the largest tensors drawn, then every collective. No script, no style and no
// picture from outside.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "gangway/base/amounts.h"
#include "gangway/explain/explain.h"

namespace gangway::explain {
namespace {

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>gangway explain: %s</title>
<style>
:root { color-scheme: light dark; --line: #8886; --accent: #2a6fdb; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%%; } th, td { text-align: left; padding: .3rem .6rem; vertical-align: top; }
tr { border-bottom: 1px solid var(--line); } td.n { text-align: right; white-space: nowrap; }
code { font: 13px/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
details { border-bottom: 1px solid var(--line); padding: .4rem 0; } summary { cursor: pointer; }
.bar { display: inline-block; height: .7em; background: var(--accent); vertical-align: baseline; }
.remedy { border-left: 3px solid var(--accent); padding-left: .6rem; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
</style></head><body>
)";

std::string Escape(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string Code(absl::string_view text) { return absl::StrCat("<code>", Escape(text), "</code>"); }

// Devices as a grid of numbered squares, at most so many.
std::string MeshPicture(int64_t devices) {
  constexpr int64_t kColumns = 16, kMaxDrawn = 256, kSide = 34;
  const int64_t drawn = std::min(devices, kMaxDrawn);
  const int64_t rows = (drawn + kColumns - 1) / kColumns;
  std::string svg = absl::StrFormat(R"(<svg role="img" aria-label="%d devices" width="%d" height="%d">)", devices,
                                    kColumns * kSide, rows * kSide);
  for (int64_t i = 0; i < drawn; ++i) {
    const int64_t x = i % kColumns * kSide + 2, y = i / kColumns * kSide + 2;
    absl::StrAppendFormat(&svg,
                          R"~(<rect x="%d" y="%d" width="30" height="30" rx="4" fill="hsl(%d 60%% 60%% / .4)"/>)~"
                          R"(<text x="%d" y="%d" text-anchor="middle">%d</text>)",
                          x, y, i * 360 / devices, x + 15, y + 20, i);
  }
  return absl::StrCat(svg, "</svg>", drawn < devices ? absl::StrCat("<p>the first ", drawn, "</p>") : "");
}

// The part of a tensor that one device holds.
std::string TensorPicture(const Tensor& tensor) {
  const double part = tensor.bytes > 0 ? static_cast<double>(tensor.bytes_per_device) / tensor.bytes : 1;
  return absl::StrFormat(R"(<svg role="img" aria-label="%.3g of it on each device" width="122" height="14">)"
                         R"(<rect x="1" y="1" width="120" height="12" fill="none" stroke="currentColor"/>)"
                         R"(<rect x="1" y="1" width="%.1f" height="12" fill="#2a6fdb"/></svg>)",
                         part, std::max(1.0, 120 * std::min(part, 1.0)));
}

std::string PathList(const char* title, const std::vector<Path>& paths) {
  std::string out;
  for (const Path& path : paths) {
    absl::StrAppend(&out, "<li>", title, " dimension ", path.dim, " on ", Code(path.axes), ": ");
    for (size_t i = 0; i < path.places.size(); ++i) {
      absl::StrAppend(&out, i > 0 ? " → " : "", Code(path.places[i].ToString()));
    }
    absl::StrAppend(&out, "</li>");
  }
  return out;
}

std::string CauseItem(const Cause& cause) {
  std::string out =
      absl::StrCat("<p>wanted by ", Code(cause.wanted_by.ToString()), " ", Escape(cause.wanted_by.op_name), "</p>");
  if (!cause.is_reshard) return out;
  absl::StrAppend(&out, "<p>moves ", Code(absl::StrCat(cause.shape, " ", cause.value.ToString())), " from ",
                  Code(cause.from), " to ", Code(cause.to), "</p><ul>", PathList("from", cause.from_paths),
                  PathList("to", cause.to_paths), "<li>plan: ", Code(cause.plan), "</li>");
  for (const auto& [from, cost] : cause.others) {
    absl::StrAppend(&out, "<li>instead of from ", Code(from), ", at ", BytesText(cost), "</li>");
  }
  return absl::StrCat(out, "</ul>");
}

std::string RemedyItem(const Collective& collective) {
  if (collective.remedy.has_value()) {
    const Remedy& remedy = *collective.remedy;
    return absl::StrCat("<p class=\"remedy\">removed by ", Code(remedy.spec), " on ", Code(remedy.where),
                        remedy.pays() ? ": " : ", at a price: ", remedy.PriceText(), "</p>");
  }
  return collective.remedies_tried ? "<p>no annotation of its ends removes it</p>" : "";
}

std::string CollectiveItem(const Collective& collective, int number) {
  std::string out = absl::StrFormat(R"(<details id="c%d"%s><summary>%s along %s: <b>%s</b>, %.0f&times;, %s )"
                                    R"(<span class="bar" style="width:%.1frem"></span> %.1f %%</summary>)",
                                    number, number <= 3 ? " open" : "", Code(collective.kind), Code(collective.axes),
                                    BytesText(collective.bytes), collective.executions, SecondsText(collective.seconds),
                                    10 * std::min(collective.share, 1.0), 100 * collective.share);
  for (const Cause& cause : collective.causes) absl::StrAppend(&out, CauseItem(cause));
  return absl::StrCat(out, RemedyItem(collective), "</details>\n");
}

}  // namespace

std::string ToHtml(const Explanation& explanation) {
  std::string out = absl::StrFormat(kHead, Escape(explanation.program));
  absl::StrAppend(&out, "<h1>", Escape(explanation.program), "</h1><p>", explanation.devices, " devices, ",
                  Code(explanation.mesh), ". ", BytesText(explanation.bytes), " received per device and run; ",
                  SecondsText(explanation.seconds), " modelled on ", Code(explanation.machine), ".</p>",
                  "<nav><a href=\"#collectives\">collectives</a> · <a href=\"#tensors\">tensors</a> · "
                  "<a href=\"#replicated\">replicated</a></nav>\n<h2>Mesh</h2>",
                  MeshPicture(explanation.devices), "\n<h2 id=\"collectives\">Collectives</h2>\n");
  int number = 0;
  for (const Collective& collective : explanation.collectives) {
    absl::StrAppend(&out, CollectiveItem(collective, ++number));
  }
  if (number == 0) absl::StrAppend(&out, "<p>none</p>");
  absl::StrAppend(&out,
                  "<h2 id=\"tensors\">Largest tensors</h2><table><tr><th>tensor</th><th>shape</th><th>sharding</th>",
                  "<th>on each device</th><th>decided by</th></tr>\n");
  for (const Tensor& tensor : explanation.tensors) {
    absl::StrAppend(&out, "<tr><td>", Code(tensor.place.ToString()), "</td><td>", Code(tensor.shape), "</td><td>",
                    Code(tensor.sharding), "</td><td>", TensorPicture(tensor), "<br>",
                    BytesText(tensor.bytes_per_device), "</td><td><ul>", PathList("", tensor.paths),
                    "</ul></td></tr>\n");
  }
  absl::StrAppend(&out, "</table>\n<h2 id=\"replicated\">Replicated for want of a plan</h2><ul>");
  for (const compile::ReplicatedFallback& fallback : explanation.fallbacks) {
    absl::StrAppend(&out, "<li>", Code(fallback.instruction), " ", BytesText(fallback.bytes), ": ",
                    Escape(fallback.reason), "</li>");
  }
  absl::StrAppend(&out, explanation.fallbacks.empty() ? "<li>nothing</li>" : "", "</ul>\n");
  if (!explanation.conflicts.empty()) {
    absl::StrAppend(&out, "<h2>Conflicts</h2><ul>");
    for (const std::string& conflict : explanation.conflicts) absl::StrAppend(&out, "<li>", Code(conflict), "</li>");
    absl::StrAppend(&out, "</ul>\n");
  }
  return absl::StrCat(out, "</body></html>\n");
}

}  // namespace gangway::explain

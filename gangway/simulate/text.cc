// A forecast for a terminal.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gangway/base/amounts.h"
#include "gangway/simulate/forecast.h"
#include "gangway/simulate/waits.h"

namespace gangway::simulate {
namespace {

std::string MachineText(const Forecast& forecast) {
  const int64_t island = forecast.machine.island_devices;
  if (island == 0 || island >= forecast.devices) return absl::StrCat(forecast.machine.name, ", one island");
  return absl::StrCat(forecast.machine.name, ", islands of ", island);
}

double Percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

std::string ToText(const Forecast& forecast, size_t most_waits) {
  const cost::Timeline& timeline = forecast.timeline;
  std::string out = absl::StrCat(forecast.name, " on ", forecast.devices, " devices (", MachineText(forecast), ")\n");
  const auto row = [&](absl::string_view what, const std::string& amount, const std::string& note) {
    absl::StrAppendFormat(&out, "%-12s %12s  %s\n", what, amount, note);
  };
  row("one run", SecondsText(timeline.seconds),
      absl::StrFormat("%.1f %% of it matrix products at full rate", 100 * forecast.arithmetic_share));
  row("computing", SecondsText(timeline.compute_seconds),
      absl::StrFormat("%.1f %%", Percent(timeline.compute_seconds, timeline.seconds)));
  row("waiting", SecondsText(timeline.waited_seconds),
      absl::StrFormat("for collectives, which take %s: the rest is hidden", SecondsText(timeline.collective_seconds)));
  row("receiving", BytesText(forecast.bytes_received), "each device");
  row("memory", BytesText(static_cast<double>(forecast.memory.total())),
      absl::StrCat("of ", BytesText(forecast.machine.device.memory_bytes), " each device",
                   static_cast<double>(forecast.memory.total()) > forecast.machine.device.memory_bytes
                       ? ": it does not fit"
                       : ""));
  for (const cost::Wait& wait : LongestWaits(timeline, most_waits)) {
    row("wait", SecondsText(wait.seconds),
        absl::StrCat(KindOf(wait), wait.runs == 1 ? "" : absl::StrFormat(", %.0f times", wait.runs), ", for ",
                     PlaceOf(wait).ToString()));
  }
  if (!forecast.unknown_loops.empty()) {
    absl::StrAppend(&out, "counted as one turn: ", absl::StrJoin(forecast.unknown_loops, ", "), "\n");
  }
  return out;
}

}  // namespace gangway::simulate

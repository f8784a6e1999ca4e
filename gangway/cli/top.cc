// gangway top: what runs on a cluster, live.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "gangway/base/amounts.h"
#include "gangway/cli/command.h"
#include "gangway/cli/signals.h"
#include "gangway/status/client.h"
#include "nlohmann/json.hpp"

namespace gangway::cli {
namespace {

using nlohmann::json;

struct TopOptions {
  std::string address;
  bool once = false;
  double seconds = 1;
};

constexpr size_t kMostRows = 12;
constexpr char kNoLaunches[] = "/status.json?after=1e15";  // counts are enough here

int Devices(const json& status) {
  int devices = 0;
  for (const json& worker : status["workers"]) devices += worker["alive"] ? worker["devices"].get<int>() : 0;
  return devices;
}

// Bytes a second since the look before; "-" where there was none.
std::string RateOf(const json& worker, const char* count, const json& status, const json* before) {
  if (before == nullptr) return "-";
  const double elapsed = status["when"].get<double>() - (*before)["when"].get<double>();
  for (const json& then : (*before)["workers"]) {
    if (then["name"] != worker["name"] || elapsed <= 0) continue;
    return BytesText(std::max(0.0, (worker[count].get<double>() - then[count].get<double>()) / elapsed));
  }
  return "-";
}

std::string Describe(const json& status, const json* before) {
  const json& totals = status["totals"];
  const int devices = Devices(status);
  std::string text = absl::StrFormat(
      "%d devices, %d sessions, %d programs, %d arrays (%s); %d launches pending, %d over, %d failed\n", devices,
      totals["sessions"].get<int>(), totals["programs"].get<int>(), totals["arrays"].get<int>(),
      BytesText(totals["store_bytes"].get<int64_t>()), totals["pending_launches"].get<int64_t>(),
      totals["launches"].get<int64_t>(), totals["failed_launches"].get<int64_t>());
  if (before != nullptr) {
    const double elapsed = status["when"].get<double>() - (*before)["when"].get<double>();
    const auto since = [&](const char* total) {
      return totals[total].get<double>() - (*before)["totals"][total].get<double>();
    };
    if (elapsed > 0 && devices > 0) {
      absl::StrAppendFormat(&text, "%.0f launches/s, devices busy %.0f %%\n", since("launches") / elapsed,
                            std::min(100.0, 100 * since("device_seconds") / (elapsed * devices)));
    }
  }
  absl::StrAppendFormat(&text, "\n%-24s %6s %7s %-6s %12s %8s %12s %12s\n", "WORKER", "ISLAND", "DEVICES", "STATE",
                        "STORED", "TASKS", "SENT/S", "RECEIVED/S");
  for (const json& worker : status["workers"]) {
    absl::StrAppendFormat(&text, "%-24s %6d %7d %-6s %12s %8d %12s %12s\n", worker["name"].get<std::string>(),
                          worker["island"].get<int>(), worker["devices"].get<int>(), worker["alive"] ? "alive" : "lost",
                          BytesText(worker["store_bytes"].get<int64_t>()), worker["pending_tasks"].get<int64_t>(),
                          RateOf(worker, "sent_bytes", status, before),
                          RateOf(worker, "received_bytes", status, before));
  }
  absl::StrAppendFormat(&text, "\n%-24s %-12s %6s %8s %8s %10s %12s\n", "SESSION", "TENANT", "WEIGHT", "PRIORITY",
                        "WAITING", "LAUNCHES", "DEVICE TIME");
  for (const json& session : status["sessions"]) {
    const std::string tenant = session["tenant"];
    absl::StrAppendFormat(&text, "%-24s %-12s %6g %8d %8d %10d %10.2f s\n", session["name"].get<std::string>(),
                          tenant.empty() ? "default" : tenant, session["weight"].get<double>(),
                          session["priority"].get<int>(), session["waiting"].get<int64_t>(),
                          session["launches"].get<int64_t>(), session["device_seconds"].get<double>());
  }
  std::vector<json> programs(status["programs"].begin(), status["programs"].end());
  auto total = [](const json& program) { return program["launches"].get<double>() * program["seconds"].get<double>(); };
  std::stable_sort(programs.begin(), programs.end(), [&](const json& a, const json& b) { return total(a) > total(b); });
  absl::StrAppendFormat(&text, "\n%-40s %7s %10s %12s\n", "PROGRAM", "DEVICES", "LAUNCHES", "A LAUNCH");
  for (size_t i = 0; i < std::min(programs.size(), kMostRows); ++i) {
    absl::StrAppendFormat(&text, "%-40s %7d %10d %9.3f ms\n", programs[i]["name"].get<std::string>(),
                          programs[i]["devices"].get<int>(), programs[i]["launches"].get<int64_t>(),
                          1e3 * programs[i]["seconds"].get<double>());
  }
  return text;
}

int Top(const TopOptions& options) {
  CatchSignals();
  const bool redraw = !options.once && isatty(STDOUT_FILENO) != 0;
  json before;
  while (CaughtSignal() == 0) {
    absl::StatusOr<std::string> text = status::Get(options.address, kNoLaunches);
    json seen = text.ok() ? json::parse(*text, nullptr, /*allow_exceptions=*/false) : json();
    if (!seen.is_object()) {
      std::fprintf(stderr, "gangway top: %s\n",
                   text.ok() ? "not a status page" : std::string(text.status().message()).c_str());
      return kExitFailure;
    }
    const bool prints = !options.once || !before.is_null();  // rates take two looks
    if (prints)
      std::printf("%s%s", redraw ? "\x1b[H\x1b[2J" : "", Describe(seen, before.is_null() ? nullptr : &before).c_str());
    std::fflush(stdout);
    if (options.once && prints) return 0;
    before = std::move(seen);
    absl::SleepFor(absl::Seconds(options.seconds));
  }
  return 0;
}

}  // namespace

void AddTopCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* command = app.add_subcommand("top", "Show what runs on a cluster, live: tenants, programs, memory, queues");
  command->add_option("ADDRESS", options->address, "Of the status page, host:port, as 'gangway serve' prints it")
      ->required();
  command->add_flag("--once", options->once, "Print once, after the second look, and end");
  command->add_option("--seconds", options->seconds, "Between two looks")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command->callback([options, action] { *action = [options] { return Top(*options); }; });
}

}  // namespace gangway::cli

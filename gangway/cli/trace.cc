// gangway trace: what ran during some seconds, for Perfetto.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gangway/base/status.h"
#include "gangway/cli/command.h"
#include "gangway/cli/program_file.h"
#include "gangway/cli/signals.h"
#include "gangway/status/client.h"

namespace gangway::cli {
namespace {

struct TraceOptions {
  std::string address;
  std::string output = "gangway-trace.json";
  double seconds = 5;
};

absl::Status Record(const TraceOptions& options) {
  GW_RETURN_IF_ERROR(status::Get(options.address, "/metrics").status());  // says so at once when nobody is there
  const absl::Time end = absl::Now() + absl::Seconds(options.seconds);
  while (absl::Now() < end && CaughtSignal() == 0) absl::SleepFor(absl::Milliseconds(50));
  GW_ASSIGN_OR_RETURN(std::string trace,
                      status::Get(options.address, absl::StrCat("/trace.json?seconds=", options.seconds)));
  return WriteFile(options.output, trace);
}

int Trace(const TraceOptions& options) {
  CatchSignals();
  return ExitCodeOf(Record(options), "gangway trace");
}

}  // namespace

void AddTraceCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* command = app.add_subcommand(
      "trace", "Record what runs on a cluster for some seconds, as a trace for ui.perfetto.dev or chrome://tracing");
  command->add_option("ADDRESS", options->address, "Of the status page, host:port, as 'gangway serve' prints it")
      ->required();
  command->add_option("--seconds", options->seconds, "How long")->check(CLI::Range(0.0, 3600.0))->capture_default_str();
  command->add_option("-o,--output", options->output, "Where to write it; - is standard output")->capture_default_str();
  command->callback([options, action] { *action = [options] { return Trace(*options); }; });
}

}  // namespace gangway::cli

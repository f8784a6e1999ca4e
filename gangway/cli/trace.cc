// gangway trace: what runs during some seconds, for Perfetto.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/amounts.h"
#include "gangway/base/status.h"
#include "gangway/cli/command.h"
#include "gangway/cli/signals.h"
#include "gangway/status/client.h"

namespace gangway::cli {
namespace {

struct TraceOptions {
  std::string address;
  std::string output = "gangway-trace.json";
  double seconds = 5;
  double past = -1;  // negative: none
};

// A trace as it comes in; wherever it is broken off, what was written can be ended as a whole one.
class TraceFile {
 public:
  explicit TraceFile(std::string path) : path_(std::move(path)) {}

  // An event that may not be whole yet waits for the rest.
  void Add(absl::string_view part) {
    absl::StrAppend(&waiting_, part);
    const size_t whole = waiting_.rfind(",\n");
    if (whole == std::string::npos) return;
    Write(absl::string_view(waiting_).substr(0, whole));
    waiting_.erase(0, whole);
  }
  // `whole`: the document came to its end.
  absl::Status Finish(bool whole) {
    Write(whole ? waiting_ : "\n]}\n");
    out().flush();
    if (!out().good()) return absl::UnavailableError(absl::StrCat(path_, ": cannot be written"));
    return absl::OkStatus();
  }
  bool good() { return out().good(); }
  int64_t bytes() const { return bytes_; }

 private:
  std::ostream& out() { return path_ == "-" ? std::cout : file_; }
  void Write(absl::string_view text) {
    // Not before: an older trace stays where there is no new one.
    if (bytes_ == 0 && path_ != "-") file_.open(path_, std::ios::binary);
    out().write(text.data(), static_cast<std::streamsize>(text.size()));
    bytes_ += static_cast<int64_t>(text.size());
  }

  const std::string path_;
  std::ofstream file_;
  std::string waiting_;
  int64_t bytes_ = 0;
};

// What happens from now on, until it is long enough or somebody interrupts.
absl::Status Record(const TraceOptions& options, TraceFile& file) {
  bool interrupted = false;
  absl::Status recorded =
      status::RecordTrace(options.address, absl::Seconds(options.seconds), [&](absl::string_view part) {
        file.Add(part);
        interrupted = CaughtSignal() != 0;
        return !interrupted && file.good();
      });
  // A controller that went away leaves a trace all the same.
  if (file.bytes() > 0) recorded.Update(file.Finish(recorded.ok() && !interrupted));
  return recorded;
}

// What is remembered.
absl::Status Fetch(const TraceOptions& options, TraceFile& file) {
  GW_ASSIGN_OR_RETURN(std::string trace,
                      status::Get(options.address, absl::StrCat("/trace.json?seconds=", options.past)));
  file.Add(trace);
  return file.Finish(/*whole=*/true);
}

absl::Status Write(const TraceOptions& options) {
  TraceFile file(options.output);
  GW_RETURN_IF_ERROR(options.past < 0 ? Record(options, file) : Fetch(options, file));
  if (options.output != "-") {
    std::fprintf(stderr, "%s: %s, for ui.perfetto.dev\n", options.output.c_str(), BytesText(file.bytes()).c_str());
  }
  return absl::OkStatus();
}

int Trace(const TraceOptions& options) {
  CatchSignals();
  return ExitCodeOf(Write(options), "gangway trace");
}

}  // namespace

void AddTraceCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* command = app.add_subcommand(
      "trace", "Record what runs on a cluster for some seconds, as a trace for ui.perfetto.dev or chrome://tracing");
  command->add_option("ADDRESS", options->address, "Of the status page, host:port, as 'gangway serve' prints it")
      ->required();
  command->add_option("--seconds", options->seconds, "How long; interrupted, it ends with what it has by then")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  command
      ->add_option("--past", options->past,
                   "Instead of recording: what ran in the last so many seconds, as far as it is remembered; 0: all")
      ->check(CLI::Range(0.0, 1e9));
  command->add_option("-o,--output", options->output, "Where to write it; - is standard output")->capture_default_str();
  command->callback([options, action] { *action = [options] { return Trace(*options); }; });
}

}  // namespace gangway::cli

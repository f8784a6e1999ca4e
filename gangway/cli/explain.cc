// gangway explain: why a program communicates, and what would make it stop.
#include "gangway/explain/explain.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gangway/base/status.h"
#include "gangway/cli/compiler_commands.h"
#include "gangway/cli/device_count.h"
#include "gangway/cli/program_file.h"

namespace gangway::cli {
namespace {

struct ExplainCommand {
  std::string input;
  std::string format = "text";
  std::string output = "-";
  std::string machine = "cpu";
  DeviceOptions devices;
  int64_t max_replicated_bytes = -1;
  int64_t min_tensor_bytes = 1 << 20;
  int64_t max_tensors = 50;
  double remedy_seconds = 1.5;
  std::vector<std::string> remedies_for;
  std::vector<std::string> annotations;
};

// "dot.3=P('data', None)"
absl::StatusOr<std::vector<explain::Annotation>> Annotations(const std::vector<std::string>& texts) {
  std::vector<explain::Annotation> annotations;
  for (const std::string& text : texts) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (parts.second.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--annotate: expected INSTRUCTION=P(...), got '", text, "'"));
    }
    annotations.push_back({parts.first, parts.second});
  }
  return annotations;
}

absl::Status CheckReplicated(const explain::Explanation& explanation, int64_t limit) {
  const explain::Tensor* largest = explain::LargestReplicated(explanation);
  if (limit < 0 || largest == nullptr || largest->bytes <= limit) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(largest->place.ToString(), " ", largest->shape, " stands on all ",
                                                    explanation.devices, " devices in full: ", largest->bytes,
                                                    " bytes, allowed ", limit));
}

absl::Status RunExplain(const ExplainCommand& command) {
  GW_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, ReadProgram(command.input));
  explain::ExplainOptions options;
  GW_ASSIGN_OR_RETURN(options.compile.num_partitions, DeviceCount(command.devices, module.get()));
  std::optional<cost::Machine> machine = cost::MachineByName(command.machine);
  if (!machine.has_value()) return absl::InvalidArgumentError(absl::StrCat("--machine: no model of ", command.machine));
  options.machine = *std::move(machine);
  options.remedy_seconds = command.remedy_seconds;
  options.remedies_for = command.remedies_for;
  GW_ASSIGN_OR_RETURN(options.annotations, Annotations(command.annotations));
  options.min_tensor_bytes = command.min_tensor_bytes;
  options.max_tensors = command.max_tensors;
  if (command.max_replicated_bytes >= 0) {
    options.min_tensor_bytes = std::min(options.min_tensor_bytes, command.max_replicated_bytes);
    options.max_tensors = INT64_MAX;
  }
  GW_ASSIGN_OR_RETURN_WITH(const explain::Explanation explanation, explain::Explain(std::move(module), options),
                           command.input);
  const std::string text = command.format == "json"   ? explain::ToJson(explanation)
                           : command.format == "html" ? explain::ToHtml(explanation)
                                                      : explain::ToText(explanation);
  GW_RETURN_IF_ERROR(WriteFile(command.output, text));
  return CheckReplicated(explanation, command.max_replicated_bytes);
}

}  // namespace

void AddExplainCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<ExplainCommand>();
  CLI::App* command = app.add_subcommand(
      "explain",
      "Say for every collective of a partitioned program who wanted it, what it costs, where the shardings come from "
      "and which annotation would remove it");
  command
      ->add_option("FILE", options->input,
                   "Program: StableHLO artifact (jax.export), HLO text or HloModuleProto; - is standard input")
      ->required();
  command->add_option("--format", options->format, "text, json, or html: one page that needs nothing else")
      ->check(CLI::IsMember({"text", "json", "html"}))
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "Where to write it; - is standard output")->capture_default_str();
  command->add_option("--machine", options->machine, "Whose speed the modelled times are: cpu, h100 or tpu-v5p")
      ->capture_default_str();
  AddDeviceOptions(*command, &options->devices);
  command->add_option("--max-replicated-bytes", options->max_replicated_bytes,
                      "Fail when a larger array stands on every device in full");
  command->add_option("--min-tensor-bytes", options->min_tensor_bytes, "Show the shardings of arrays at least so large")
      ->capture_default_str();
  command->add_option("--max-tensors", options->max_tensors, "Show so many arrays at most, the largest")
      ->capture_default_str();
  command
      ->add_option("--remedy-seconds", options->remedy_seconds,
                   "How long to try annotations that remove collectives, the dearest first; 0 tries none")
      ->capture_default_str();
  command
      ->add_option("--remedies-for", options->remedies_for,
                   "Try annotations for these collectives only, named as in the JSON")
      ->allow_extra_args(false);
  command
      ->add_option("--annotate", options->annotations,
                   "Explain the program with an annotation more, INSTRUCTION=P('data', None); may be repeated")
      ->allow_extra_args(false);
  command->callback(
      [options, action] { *action = [options] { return ExitCodeOf(RunExplain(*options), "gangway explain"); }; });
}

}  // namespace gangway::cli

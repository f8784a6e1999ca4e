// gangway explain: why a program communicates, and what would make it stop.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gangway/base/status.h"
#include "gangway/cli/compiler_commands.h"
#include "gangway/cli/device_count.h"
#include "gangway/cli/explanation.h"
#include "gangway/cli/program_file.h"
#include "gangway/status/client.h"

namespace gangway::cli {
namespace {

constexpr absl::Duration kToCompile = absl::Seconds(60);

struct ExplainCommand {
  std::string input;
  std::string server;  // "": `input` is a file
  std::string output = "-";
  DeviceOptions devices;
  ExplanationOptions explanation;
  std::vector<CLI::Option*> asked;  // of `explanation`
};

absl::StatusOr<status::Explained> ExplainFile(const ExplainCommand& command) {
  GW_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, ReadProgram(command.input));
  compile::CompileOptions compile;
  GW_ASSIGN_OR_RETURN(compile.num_partitions, DeviceCount(command.devices, module.get()));
  compile.memory_bytes = command.devices.memory_bytes;
  GW_ASSIGN_OR_RETURN_WITH(status::Explained explained,
                           ExplainModule(std::move(module), std::move(compile), command.explanation), command.input);
  return explained;
}

absl::StatusOr<status::Explained> ExplainThere(const ExplainCommand& command) {
  status::Parameters query;
  for (const CLI::Option* option : command.asked) {
    for (const std::string& value : option->results()) query.emplace_back(option->get_single_name(), value);
  }
  const absl::Duration patience = kToCompile + absl::Seconds(command.explanation.remedy_seconds);
  GW_ASSIGN_OR_RETURN(status::Answer answer, status::GetExplanation(command.server, command.input, query, patience));
  return status::Explained{std::move(answer.text), "", std::move(answer.complaint)};
}

absl::Status RunExplain(const ExplainCommand& command) {
  absl::StatusOr<status::Explained> explained = command.server.empty() ? ExplainFile(command) : ExplainThere(command);
  GW_RETURN_IF_ERROR(explained.status());
  GW_RETURN_IF_ERROR(WriteFile(command.output, explained->text));
  return explained->complaint.empty() ? absl::OkStatus() : absl::FailedPreconditionError(explained->complaint);
}

}  // namespace

void AddExplainCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<ExplainCommand>();
  CLI::App* command = app.add_subcommand(
      "explain",
      "Say for every collective of a partitioned program who wanted it, what it costs, where the shardings come from "
      "and which annotation would remove it");
  command
      ->add_option("PROGRAM", options->input,
                   "File: StableHLO artifact (jax.export), HLO text or HloModuleProto; - is standard input. With "
                   "--server a program that is there, by its name or number")
      ->required();
  command->add_option("--server", options->server,
                      "Status page of a running cluster, HOST:PORT, whose program is explained as it was compiled");
  command->add_option("-o,--output", options->output, "Where to write it; - is standard output")->capture_default_str();
  options->asked = AddExplanationOptions(*command, &options->explanation);
  AddDeviceOptions(*command, &options->devices);
  command->callback(
      [options, action] { *action = [options] { return ExitCodeOf(RunExplain(*options), "gangway explain"); }; });
}

}  // namespace gangway::cli

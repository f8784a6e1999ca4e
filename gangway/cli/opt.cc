// gangway opt: runs passes over a program and prints it.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gangway/base/status.h"
#include "gangway/cli/compiler_commands.h"
#include "gangway/cli/program_file.h"
#include "gangway/hlo/text.h"
#include "gangway/passes/pipeline.h"
#include "gangway/propagate/propagate.h"

namespace gangway::cli {
namespace {

struct OptOptions {
  std::string input;
  std::string output = "-";
  std::vector<std::string> passes;
  std::vector<std::string> skip;
  int64_t bisect_limit = std::numeric_limits<int64_t>::max();
  std::string dump_folder;
  bool list = false;
};

absl::StatusOr<bool> RunPropagate(hlo::Module& module) {
  GW_RETURN_IF_ERROR(propagate::Propagate(module, {}, nullptr));
  return true;
}

// Completion of shardings stands beside the clean-up passes: it needs the rules, they do not.
constexpr char kPropagate[] = "propagate";

absl::Status AddPass(const std::string& name, passes::Pipeline* pipeline) {
  if (name != kPropagate) return pipeline->AddByName(name);
  pipeline->Add(kPropagate, RunPropagate);
  return absl::OkStatus();
}

void PrintPasses() {
  std::printf("%-20s %s\n", kPropagate, "gives every value a sharding, from the annotated ones");
  for (const passes::Pass& pass : passes::AllPasses()) {
    std::printf("%-20s %s\n", std::string(pass.name).c_str(), std::string(pass.summary).c_str());
  }
}

passes::PipelineOptions PipelineOptionsOf(const OptOptions& options) {
  passes::PipelineOptions pipeline;
  pipeline.skip.insert(options.skip.begin(), options.skip.end());
  pipeline.bisect_limit = options.bisect_limit;
  pipeline.verify = true;
  if (!options.dump_folder.empty()) {
    pipeline.dump = [folder = options.dump_folder](int64_t step, absl::string_view name, const hlo::Module& module) {
      std::string path = absl::StrFormat("%s/%02d.%s.hlo", folder, step, name);
      ExitCodeOf(WriteFile(path, hlo::PrintModule(module)), "gangway opt");  // said, and gone on
    };
  }
  return pipeline;
}

absl::Status Opt(const OptOptions& options) {
  GW_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, ReadProgram(options.input));
  passes::Pipeline pipeline;
  for (const std::string& pass : options.passes) GW_RETURN_IF_ERROR(AddPass(pass, &pipeline));
  GW_RETURN_IF_ERROR_WITH(pipeline.Run(*module, PipelineOptionsOf(options)).status(), options.input);
  module->SortComputations();
  return WriteFile(options.output, hlo::PrintModule(*module));
}

}  // namespace

void AddOptCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<OptOptions>();
  CLI::App* command = app.add_subcommand("opt", "Run compiler passes over a program and print the result as HLO text");
  AddProgramFile(*command, &options->input);
  command->add_option("--pass", options->passes, "Passes in order, comma separated; none only reads and prints")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("-o,--output", options->output, "Where to write the result; - is standard output")
      ->capture_default_str();
  command->add_option("--skip", options->skip, "Passes to leave out, comma separated")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--bisect-limit", options->bisect_limit, "Run only the first N passes: to find the one at fault");
  command->add_option("--dump", options->dump_folder, "Folder for the module before the first and after every pass")
      ->check(CLI::ExistingDirectory);
  command->add_flag("--list", options->list, "List the passes and stop");
  command->callback([options, command, action] {
    if (!options->list && options->input.empty()) throw CLI::RequiredError(command->get_name() + " FILE");
    *action = [options] {
      if (options->list) {
        PrintPasses();
        return 0;
      }
      return ExitCodeOf(Opt(*options), "gangway opt");
    };
  });
}

}  // namespace gangway::cli

// gangway simulate: how long a program would take on a machine that need not be there.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/cli/compiler_commands.h"
#include "gangway/cli/device_count.h"
#include "gangway/cli/program_file.h"
#include "gangway/hlo/text.h"
#include "gangway/simulate/forecast.h"

namespace gangway::cli {
namespace {

struct SimulateOptions {
  std::string input;
  std::string format = "text";
  std::string output = "-";
  std::string trace, program;  // files; "" for none
  std::string machine = "cpu";
  std::optional<int64_t> island_devices;
  DeviceOptions devices;
  bool in_order = false;
  size_t waits = 10;
};

absl::Status RunSimulate(const SimulateOptions& options) {
  GW_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, ReadProgram(options.input));
  simulate::ForecastOptions forecast_options;
  GW_ASSIGN_OR_RETURN(forecast_options.compile.num_partitions, DeviceCount(options.devices, module.get()));
  GW_ASSIGN_OR_RETURN_WITH(forecast_options.machine, cost::MachineByName(options.machine), "--machine");
  if (options.devices.memory_bytes > 0) {
    forecast_options.machine.device.memory_bytes = static_cast<double>(options.devices.memory_bytes);
  }
  if (options.island_devices.has_value()) forecast_options.machine.island_devices = *options.island_devices;
  forecast_options.overlap = !options.in_order;
  GW_ASSIGN_OR_RETURN_WITH(const simulate::Forecast forecast, simulate::Simulate(std::move(module), forecast_options),
                           options.input);
  if (!options.trace.empty()) GW_RETURN_IF_ERROR(WriteFile(options.trace, simulate::ToTrace(forecast)));
  if (!options.program.empty()) GW_RETURN_IF_ERROR(WriteFile(options.program, hlo::PrintModule(*forecast.program)));
  return WriteFile(options.output, options.format == "json" ? simulate::ToJson(forecast, options.waits)
                                                            : simulate::ToText(forecast, options.waits));
}

}  // namespace

void AddSimulateCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand(
      "simulate",
      "Say how long a program would take on many devices of a machine, what it would wait for, and whether it fits "
      "their memory: it is partitioned and played on a model, nothing is run");
  AddProgramFile(*command, &options->input)->required();
  AddDeviceOptions(*command, &options->devices);
  command->add_option("--machine", options->machine, "The devices: cpu, h100 or tpu-v5p")->capture_default_str();
  command
      ->add_option("--island-devices", options->island_devices,
                   "So many consecutive devices share an island's links, a network joins the islands; 0: one island. "
                   "Else as the machine has it")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--in-order", options->in_order, "Let every collective hold its device up");
  command->add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "Where to write it; - is standard output")->capture_default_str();
  command->add_option("--trace", options->trace, "File for a Chrome trace of one device, which Perfetto opens");
  command->add_option("--program", options->program,
                      "File for the HLO text of one device, in the order that was played");
  command->add_option("--waits", options->waits, "Tell so many waits, the longest")->capture_default_str();
  command->callback(
      [options, action] { *action = [options] { return ExitCodeOf(RunSimulate(*options), "gangway simulate"); }; });
}

}  // namespace gangway::cli

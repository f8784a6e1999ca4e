// gangway partition: a program for one big device in, the program of each device out.
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/cli/compiler_commands.h"
#include "gangway/cli/device_count.h"
#include "gangway/cli/program_file.h"
#include "gangway/compile/compile.h"
#include "gangway/hlo/proto.h"
#include "gangway/hlo/text.h"

namespace gangway::cli {
namespace {

struct PartitionOptions {
  std::string input;
  std::string output = "-";
  bool stats = false;
  DeviceOptions devices;
  bool proto = false;
};

// Seconds from one stage of compilation to the next, by the name of the stage that ended.
class StageTimes {
 public:
  void operator()(absl::string_view stage) {
    const Clock::time_point now = Clock::now();
    stages_.emplace_back(stage, std::chrono::duration<double>(now - std::exchange(last_, now)).count());
  }
  const std::vector<std::pair<std::string, double>>& stages() const { return stages_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
  std::vector<std::pair<std::string, double>> stages_;
};

nlohmann::ordered_json StatsJson(const compile::CompiledProgram& program, const StageTimes& times) {
  const compile::ProgramStats& stats = program.stats;
  nlohmann::ordered_json json;
  json["name"] = program.name;
  json["num_partitions"] = stats.num_partitions;
  json["collectives"] = nlohmann::ordered_json::object();
  double total = 0;
  for (const auto& [kind, of_kind] : stats.collectives) {
    json["collectives"][kind] = {{"count", of_kind.count},
                                 {"executed", of_kind.executed},
                                 {"bytes_received_per_device", of_kind.bytes_received}};
    total += of_kind.bytes_received;
  }
  json["bytes_received_per_device"] = total;
  json["flops_per_device"] = stats.flops_per_device;
  json["flops_total"] = stats.flops_total;
  json["bytes_accessed_per_device"] = stats.bytes_accessed_per_device;
  json["peak_bytes_per_device"] = stats.peak_bytes_per_device;
  json["seconds"] = stats.seconds;
  for (const auto& [stage, seconds] : times.stages()) json[absl::StrCat("seconds_", stage)] = seconds;
  json["replicated_fallbacks"] = nlohmann::ordered_json::array();
  for (const compile::ReplicatedFallback& fallback : program.fallbacks) {
    json["replicated_fallbacks"].push_back(
        {{"instruction", fallback.instruction}, {"reason", fallback.reason}, {"bytes", fallback.bytes}});
  }
  return json;
}

absl::Status Partition(const PartitionOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  StageTimes times;
  GW_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, ReadProgram(options.input));
  compile::CompileOptions compile_options;
  GW_ASSIGN_OR_RETURN(compile_options.num_partitions, DeviceCount(options.devices, module.get()));
  compile_options.memory_bytes = options.devices.memory_bytes;
  compile_options.host_collectives = false;
  compile_options.dump = [&times](absl::string_view stage, const hlo::Module&) { times(stage); };
  GW_ASSIGN_OR_RETURN_WITH(compile::CompiledProgram program, compile::CompileModule(std::move(module), compile_options),
                           options.input);
  // Reading included: what a user waits for.
  program.stats.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::string text;
  if (options.proto) {
    GW_ASSIGN_OR_RETURN(text, hlo::SerializeModule(*program.per_device));
  } else {
    text = hlo::PrintModule(*program.per_device);
  }
  // Statistics take the program's place on standard output.
  bool write_program = !options.stats || options.output != "-";
  if (write_program) GW_RETURN_IF_ERROR(WriteFile(options.output, text));
  if (!options.stats) return absl::OkStatus();
  return WriteFile("-", absl::StrCat(StatsJson(program, times).dump(2), "\n"));
}

}  // namespace

void AddPartitionCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<PartitionOptions>();
  CLI::App* command = app.add_subcommand(
      "partition",
      "Partition a program for a mesh of devices: writes the one program that every device runs, or its statistics");
  AddProgramFile(*command, &options->input)->required();
  command->add_option("-o,--output", options->output, "Where to write the per-device program; - is standard output")
      ->capture_default_str();
  command->add_flag(
      "--stats", options->stats,
      "Print statistics as JSON instead of the program (which -o still writes): collectives with counts and "
      "bytes received per device, loop bodies times their trip count; flops; memory; replicated fallbacks");
  AddDeviceOptions(*command, &options->devices);
  command->add_flag("--proto", options->proto, "Write an HloModuleProto instead of text");
  command->callback(
      [options, action] { *action = [options] { return ExitCodeOf(Partition(*options), "gangway partition"); }; });
}

}  // namespace gangway::cli

#include "gangway/simulate/forecast.h"

#include <utility>

#include "gangway/base/status.h"
#include "gangway/compile/overlap.h"
#include "gangway/cost/module_cost.h"

namespace gangway::simulate {

absl::StatusOr<Forecast> Simulate(std::unique_ptr<hlo::Module> module, const ForecastOptions& options) {
  compile::CompileOptions compile_options = options.compile;
  compile_options.host_collectives = false;
  if (compile_options.memory_bytes == 0) {
    compile_options.memory_bytes = static_cast<int64_t>(options.machine.device.memory_bytes);
  }
  GW_ASSIGN_OR_RETURN(compile::CompiledProgram compiled, compile::CompileModule(std::move(module), compile_options));
  Forecast forecast;
  forecast.name = compiled.name;
  forecast.devices = compiled.num_partitions;
  forecast.machine = options.machine;
  forecast.program = std::move(compiled.per_device);
  forecast.seconds_in_order = cost::TimelineOf(*forecast.program, options.machine).seconds;
  const cost::ModuleCost cost = cost::CostOf(*forecast.program);
  forecast.bytes_received = cost.CollectiveBytes();
  forecast.unknown_loops = cost.unknown_loops;
  if (options.overlap) {
    if (auto overlapped = compile::OverlapCollectives(*forecast.program, options.machine)) {
      forecast.program = std::move(overlapped);
    }
  }
  forecast.timeline = cost::TimelineOf(*forecast.program, options.machine);
  forecast.memory = cost::PeakMemoryOf(*forecast.program);
  if (forecast.timeline.seconds > 0) {
    forecast.arithmetic_share =
        cost.matmul_flops / options.machine.device.matmul_flops_per_second / forecast.timeline.seconds;
  }
  return forecast;
}

}  // namespace gangway::simulate

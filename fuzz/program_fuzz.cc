// libFuzzer target of everything between a verified module and its result: any program is evaluated or refused, passes
// leave a module that verifies, and its cost is computed.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "gangway/cost/module_cost.h"
#include "gangway/cost/peak_memory.h"
#include "gangway/eval/evaluate.h"
#include "gangway/hlo/text.h"
#include "gangway/hlo/verifier.h"
#include "gangway/passes/passes.h"

namespace gangway {
namespace {

constexpr int64_t kMaxBytes = 1 << 14;  // of one value: larger ones only take longer

bool IsSmall(const hlo::Module& module) {
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      if (instruction->shape().ByteSize() > kMaxBytes) return false;
    }
  }
  return module.InstructionCount() < 400 && module.config().num_partitions <= 16 && module.config().num_replicas <= 4;
}

void EvaluateOnZeros(const hlo::Module& module) {
  std::vector<Literal> arguments;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    arguments.push_back(SplatLiteral(WithoutLayout(parameter->shape()), 0));
  }
  int64_t devices = module.config().num_partitions * module.config().num_replicas;
  eval::EvaluateOptions options;
  options.max_while_steps = 8;
  options.max_value_bytes = kMaxBytes;
  (void)eval::EvaluateSpmd(module, std::vector<std::vector<Literal>>(devices, arguments), devices, options);
}

void Run(absl::string_view text) {
  auto module = hlo::ParseModule(text);
  if (!module.ok() || !hlo::Verify(**module).ok() || !IsSmall(**module)) return;
  EvaluateOnZeros(**module);
  for (const passes::Pass& pass : passes::AllPasses()) {
    if (!pass.run(**module).ok()) continue;
    if (!hlo::Verify(**module).ok()) __builtin_trap();
  }
  EvaluateOnZeros(**module);
  (void)cost::CostOf(**module);
  (void)cost::PeakMemoryOf(**module);
}

}  // namespace
}  // namespace gangway

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  gangway::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}

#include "gangway/passes/pipeline.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/base/status.h"
#include "gangway/hlo/verifier.h"

namespace gangway::passes {

absl::Status Pipeline::AddByName(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const Pass& pass : AllPasses()) {
    if (pass.name == name) {
      Add(pass);
      return absl::OkStatus();
    }
    names.push_back(pass.name);
  }
  return absl::NotFoundError(absl::StrCat("no pass '", name, "'; there are ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<std::vector<StepRecord>> Pipeline::Run(hlo::Module& module, const PipelineOptions& options) const {
  std::vector<StepRecord> records;
  int64_t ran = 0;
  if (options.dump) options.dump(0, "input", module);
  for (const auto& [name, step] : steps_) {
    StepRecord& record = records.emplace_back();
    record.name = name;
    if (options.skip.contains(name) || ran >= options.bisect_limit) {
      record.skipped = true;
      continue;
    }
    ++ran;
    GW_ASSIGN_OR_RETURN_WITH(record.changed, step(module), absl::StrCat("pass ", name));
    if (!record.changed) continue;
    if (options.dump) options.dump(ran, name, module);
    if (options.verify) GW_RETURN_IF_ERROR_WITH(hlo::Verify(module), absl::StrCat("after pass ", name));
  }
  return records;
}

Pipeline PerDevicePipeline(bool partitioned) {
  constexpr int kRounds = 4;
  std::vector<PassFunction> cleanup = {RunSimplify, RunConstantFold, RunCse, RunSimplifyWhile, RunDce};
  if (partitioned) cleanup.push_back(RunReduceAfterLoop);
  Pipeline pipeline;
  pipeline.Add("cleanup", UntilStable(cleanup, kRounds));
  if (!partitioned) return pipeline;
  pipeline.Add("independent-loops", RunIndependentLoops);
  pipeline.Add("hoist-collectives", RunHoistCollectives);
  pipeline.Add("cleanup-after-hoist", UntilStable(cleanup, kRounds));
  pipeline.Add("combine-collectives", RunCombineCollectives);
  pipeline.Add("dce", RunDce);
  return pipeline;
}

Pipeline::Step UntilStable(std::vector<PassFunction> passes, int rounds) {
  return [passes = std::move(passes), rounds](hlo::Module& module) -> absl::StatusOr<bool> {
    bool changed = false;
    for (int round = 0; round < rounds; ++round) {
      bool changed_now = false;
      for (PassFunction pass : passes) {
        GW_ASSIGN_OR_RETURN(bool changed_by_pass, pass(module));
        changed_now |= changed_by_pass;
      }
      if (!changed_now) break;
      changed = true;
    }
    return changed;
  };
}

}  // namespace gangway::passes

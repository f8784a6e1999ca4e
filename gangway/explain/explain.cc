#include "gangway/explain/explain.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/compile/records.h"
#include "gangway/cost/module_cost.h"
#include "gangway/explain/collect.h"
#include "gangway/explain/program.h"
#include "gangway/explain/remedy.h"
#include "gangway/explain/spec.h"
#include "gangway/mesh/geometry.h"
#include "gangway/propagate/main_mesh.h"

namespace gangway::explain {

namespace {

std::vector<Tensor> Interface(const std::vector<compile::ValueInfo>& values) {
  std::vector<Tensor> tensors;
  for (const compile::ValueInfo& value : values) {
    Tensor& tensor = tensors.emplace_back();
    tensor.shape = value.shape.ToString(/*with_layout=*/false);
    tensor.sharding = SpecOf(value.sharding);
    tensor.bytes = value.shape.ByteSize();
    tensor.bytes_per_device = value.shape.IsArray() ? ShardShape(value.shape, value.sharding).ByteSize() : 0;
  }
  return tensors;
}

// The program as it is when its shardings are completed: explanations name its instructions.
absl::StatusOr<std::unique_ptr<hlo::Module>> Cleaned(std::unique_ptr<hlo::Module> module,
                                                     compile::CompileOptions options) {
  std::unique_ptr<hlo::Module> cleaned;
  options.host_collectives = false;
  options.dump = [&](absl::string_view stage, const hlo::Module& now) {
    if (stage == "cleaned") cleaned = now.Clone();
  };
  GW_RETURN_IF_ERROR(compile::CompileModule(std::move(module), options).status());
  if (cleaned == nullptr) return absl::InvalidArgumentError("annotations for a program of one device");
  return cleaned;
}

absl::Status AddAnnotation(const Annotation& annotation, hlo::Module* module) {
  std::vector<const hlo::Computation*> computations;
  for (const auto& computation : module->computations()) computations.push_back(computation.get());
  const MeshRef mesh = propagate::ChooseMesh(*module, computations);
  bool found = false;
  for (const auto& computation : module->computations()) {
    for (const auto& instruction : computation->instructions()) {
      if (instruction->name() != annotation.instruction) continue;
      if (!instruction->shape().IsArray()) return absl::InvalidArgumentError("only an array can be annotated");
      GW_ASSIGN_OR_RETURN(Sharding sharding, ParseSpec(annotation.spec, mesh, instruction->shape().rank()));
      instruction->set_shardings(Shardings{std::move(sharding)});
      found = true;
    }
  }
  return found ? absl::OkStatus() : absl::NotFoundError("the program has no such instruction");
}

}  // namespace

absl::StatusOr<Explanation> Explain(std::unique_ptr<hlo::Module> module, const ExplainOptions& options) {
  if (!options.annotations.empty()) {
    GW_ASSIGN_OR_RETURN(module, Cleaned(std::move(module), options.compile));
  }
  for (const Annotation& annotation : options.annotations) {
    GW_RETURN_IF_ERROR_WITH(AddAnnotation(annotation, module.get()), annotation.instruction);
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  std::unique_ptr<hlo::Module> cleaned, completed;
  compile::Records records;
  compile::CompileOptions compile = options.compile;
  compile.host_collectives = false;
  compile.records = &records;
  compile.dump = [&](absl::string_view stage, const hlo::Module& now) {
    if (stage == "cleaned") cleaned = now.Clone();
    if (stage == "propagated") completed = now.Clone();
  };
  GW_ASSIGN_OR_RETURN(compile::CompiledProgram compiled, compile::CompileModule(std::move(module), compile));

  Budget budget;
  budget.trial = Clock::now() - begin;
  budget.end =
      begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.remedy_seconds));

  Explanation explanation;
  explanation.program = compiled.name;
  explanation.devices = compiled.num_partitions;
  explanation.machine = options.machine.name;
  explanation.fallbacks = compiled.fallbacks;
  explanation.seconds = cost::EstimateTime(cost::CostOf(*compiled.per_device), options.machine).total();
  explanation.inputs = Interface(compiled.parameters);
  explanation.outputs = Interface(compiled.outputs);
  if (completed == nullptr) return explanation;  // one device: nothing was completed or partitioned

  if (records.propagation.mesh != nullptr) explanation.mesh = records.propagation.mesh->ToString();
  for (const propagate::Conflict& conflict : records.propagation.conflicts) {
    explanation.conflicts.push_back(absl::StrCat(conflict.instruction, ": ", conflict.kept, " stayed, ",
                                                 conflict.refused, " gave way ", conflict.reason));
  }
  const Program program(*completed, records.propagation);
  explanation.collectives =
      Collectives(*compiled.per_device, program, records.reasons, options.machine, explanation.seconds);
  for (const Collective& collective : explanation.collectives) explanation.bytes += collective.bytes;
  explanation.tensors = Tensors(program, options.min_tensor_bytes, options.max_tensors);
  FindRemedies(*cleaned, program, records.reasons, options, budget, explanation, &explanation.collectives);
  return explanation;
}

const Tensor* LargestReplicated(const Explanation& explanation) {
  const Tensor* largest = nullptr;
  for (const Tensor& tensor : explanation.tensors) {
    if (tensor.bytes_per_device == tensor.bytes && (largest == nullptr || tensor.bytes > largest->bytes)) {
      largest = &tensor;
    }
  }
  return largest;
}

}  // namespace gangway::explain

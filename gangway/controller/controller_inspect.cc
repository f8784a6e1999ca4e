// Looking at what programs give (inspection.h): the workers are asked for digests right behind the launch.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/controller/runtime_controller.h"
#include "gangway/hlo/module.h"

namespace gangway::controller {
namespace {

// "jit(step)/add (model.py:12)", by output; as many as are known.
std::vector<std::string> OutputNames(const compile::CompiledProgram& compiled) {
  std::vector<std::string> names;
  const hlo::Instruction* root = compiled.per_device == nullptr ? nullptr : compiled.per_device->entry()->root();
  if (root == nullptr) return names;
  const bool is_tuple = root->opcode() == hlo::Opcode::kTuple;
  const std::vector<const hlo::Instruction*> values =
      is_tuple ? std::vector<const hlo::Instruction*>(root->operands().begin(), root->operands().end())
               : std::vector<const hlo::Instruction*>{root};
  for (const hlo::Instruction* value : values) {
    const hlo::OpMetadata& metadata = value->metadata();
    std::string name = metadata.op_name;
    if (!metadata.source_file.empty()) {
      absl::StrAppend(&name, name.empty() ? "" : " ", metadata.source_file, ":", metadata.source_line);
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

void RuntimeController::Inspect(SessionId session, ProgramRecord& program, const std::vector<ArrayId>& outputs) {
  const InspectOptions& options = options_.inspect;
  const int64_t run = ++program.runs;
  const bool replicas = options.replicas_every > 0 && !divergence_reported_ && (run - 1) % options.replicas_every == 0;
  const bool everything = options.record != nullptr || (options.nans && !nan_reported_);
  if (!replicas && !everything) return;

  auto inspection = std::make_shared<Inspection>();
  inspection->program = program.program->compiled.name;
  inspection->run = run;
  for (DeviceId id : program.devices) {
    const resource::Device& device = cluster_.device(id);
    inspection->devices.push_back(absl::StrCat(WorkerName(device.worker), " ", device.kind, ":", device.local));
  }
  const std::vector<std::string> names = OutputNames(program.program->compiled);
  std::vector<ArrayId> looked_at;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ArraySpec& spec = program.outputs[i]->spec;
    InspectedOutput output;
    output.index = static_cast<int>(i);
    output.part_of = PartsOf(spec);
    if (!everything && !HasReplicas(output.part_of)) continue;
    if (i < names.size()) output.name = names[i];
    output.shape = Shape(spec.dtype, spec.dims).ToString(/*with_layout=*/false);
    output.digests.resize(spec.devices.size());
    inspection->missing += spec.devices.size();
    inspection->outputs.push_back(std::move(output));
    looked_at.push_back(outputs[i]);
  }
  Command command;
  for (size_t i = 0; i < looked_at.size(); ++i) {
    const ArrayRecord& array = *arrays_.at(looked_at[i]);
    for (size_t position = 0; position < array.layout->spec.devices.size(); ++position) {
      const resource::Device& device = cluster_.device(array.layout->spec.devices[position]);
      const net::RequestId request(next_request_++);
      requests_[request] = {device.worker, [this, inspection, i, position](const net::Fetched& fetched) {
                              inspection->outputs[i].digests[position] = fetched.digest;
                              inspection->error.Update(fetched.status);
                              if (--inspection->missing == 0) Judge(*inspection);
                            }};
      command.messages.push_back(
          {device.worker, net::FetchShard{request, array.buffer, device.local, /*digest=*/true}});
    }
  }
  if (!command.messages.empty()) Run(session, std::move(command));
}

void RuntimeController::Judge(const Inspection& inspection) {
  if (!inspection.error.ok()) return;  // a run that failed says so itself
  const InspectOptions& options = options_.inspect;
  const auto report = [&](const std::optional<std::string>& fault, bool* reported) {
    if (!fault.has_value() || std::exchange(*reported, true)) return;
    if (options.report) options.report(*fault);
  };
  if (options.replicas_every > 0) report(FindDivergence(inspection), &divergence_reported_);
  if (options.nans) report(FindNan(inspection), &nan_reported_);
  if (options.record) options.record(RecordOf(inspection));
}

}  // namespace gangway::controller

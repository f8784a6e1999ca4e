#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/hlo/proto.h"
#include "gangway/hlo/proto_attributes.h"
#include "gangway/hlo/proto_values.h"
#include "gangway/hlo/text_module.h"

namespace gangway::hlo {
namespace {

using InstructionIds = absl::flat_hash_map<const Instruction*, int64_t>;

void WriteFrontendAttributes(const FrontendAttributes& attributes, xla::FrontendAttributes* proto) {
  for (const auto& [key, value] : attributes) (*proto->mutable_map())[key] = value;
}

// In protos the body of a loop comes before its condition.
void WriteCalled(const Instruction& instruction, xla::HloInstructionProto* proto) {
  const std::vector<Computation*>& called = instruction.called();
  if (instruction.opcode() == Opcode::kWhile && called.size() == 2) {
    proto->add_called_computation_ids(called[1]->id());
    proto->add_called_computation_ids(called[0]->id());
    return;
  }
  for (const Computation* computation : called) proto->add_called_computation_ids(computation->id());
}

absl::Status WriteInstruction(const Instruction& instruction, const InstructionIds& ids,
                              xla::HloInstructionProto* proto) {
  proto->set_name(instruction.name());
  proto->set_opcode(std::string(OpcodeName(instruction.opcode())));
  proto->set_id(ids.at(&instruction));
  WriteShape(instruction.shape(), proto->mutable_shape());
  for (const Instruction* operand : instruction.operands()) {
    auto it = ids.find(operand);
    if (it == ids.end()) return absl::InternalError(absl::StrCat("uses %", operand->name(), " before its definition"));
    proto->add_operand_ids(it->second);
  }
  for (const Instruction* before : instruction.control_predecessors()) {
    auto it = ids.find(before);
    if (it == ids.end()) return absl::InternalError(absl::StrCat("waits for %", before->name(), ", which is later"));
    proto->add_control_predecessor_ids(it->second);
  }
  WriteCalled(instruction, proto);
  if (!instruction.backend_config().empty()) proto->set_backend_config(instruction.backend_config());
  GW_RETURN_IF_ERROR(WriteAttributes(instruction, proto));
  if (instruction.has_sharding()) {
    WriteShardings(*instruction.shardings(), instruction.shape().IsTuple(), proto->mutable_sharding());
  }
  if (!instruction.metadata().empty()) WriteMetadata(instruction.metadata(), proto->mutable_metadata());
  if (!instruction.frontend_attributes().empty()) {
    WriteFrontendAttributes(instruction.frontend_attributes(), proto->mutable_frontend_attributes());
  }
  return absl::OkStatus();
}

absl::Status WriteComputation(const Computation& computation, xla::HloComputationProto* proto) {
  proto->set_name(computation.name());
  proto->set_id(computation.id());
  if (computation.root() == nullptr) return absl::InternalError("has no root");
  InstructionIds ids;
  for (const auto& instruction : computation.instructions()) {
    // XLA keeps an instruction's computation in the upper half of its id.
    ids.emplace(instruction.get(), computation.id() << 32 | static_cast<int64_t>(ids.size()));
    GW_RETURN_IF_ERROR_WITH(WriteInstruction(*instruction, ids, proto->add_instructions()),
                            absl::StrCat("instruction %", instruction->name()));
  }
  proto->set_root_id(ids.at(computation.root()));
  xla::ProgramShapeProto* program = proto->mutable_program_shape();
  for (const Instruction* parameter : computation.parameters()) {
    if (parameter == nullptr) return absl::InternalError("lacks a parameter");
    WriteShape(parameter->shape(), program->add_parameters());
    program->add_parameter_names(parameter->name());
  }
  WriteShape(computation.root()->shape(), program->mutable_result());
  return absl::OkStatus();
}

// Layouts of the program's interface: the agreed ones, else those of the instructions.
absl::Status WriteProgramShape(const Module& module, xla::HloModuleProto* proto) {
  const ModuleConfig& config = module.config();
  xla::ProgramShapeProto* program = proto->mutable_host_program_shape();
  const std::vector<Instruction*>& parameters = module.entry()->parameters();
  if (config.parameter_layouts.has_value() && config.parameter_layouts->size() != parameters.size()) {
    return absl::InternalError(
        absl::StrCat(config.parameter_layouts->size(), " parameter layouts for ", parameters.size(), " parameters"));
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    WriteShape(config.parameter_layouts.has_value() ? (*config.parameter_layouts)[i] : parameters[i]->shape(),
               program->add_parameters());
    program->add_parameter_names(parameters[i]->name());
  }
  WriteShape(config.result_layout.value_or(module.entry()->root()->shape()), program->mutable_result());
  return absl::OkStatus();
}

void WriteDonation(const ModuleConfig& config, xla::HloModuleProto* proto) {
  for (const InputOutputAlias& alias : config.aliases) {
    auto* entry = proto->mutable_input_output_alias()->add_entries();
    AddAll(alias.output_index, entry->mutable_output_shape_index());
    entry->set_parameter_number(alias.parameter);
    AddAll(alias.parameter_index, entry->mutable_parameter_shape_index());
    entry->set_kind(alias.must_alias ? xla::MUST_ALIAS : xla::MAY_ALIAS);
  }
  for (const BufferDonor& donor : config.donors) {
    auto* entry = proto->mutable_buffer_donor()->add_entries();
    entry->set_parameter_number(donor.parameter);
    AddAll(donor.parameter_index, entry->mutable_parameter_shape_index());
  }
}

void WriteStackFrames(const StackFrames& frames, xla::StackFrameIndexProto* proto) {
  for (const std::string& file : frames.files) proto->add_file_names(file);
  for (const std::string& function : frames.functions) proto->add_function_names(function);
  for (const StackFrames::Location& at : frames.locations) {
    auto* location = proto->add_file_locations();
    location->set_file_name_id(at.file);
    location->set_function_name_id(at.function);
    location->set_line(at.line);
    location->set_end_line(at.end_line);
    location->set_column(at.column);
    location->set_end_column(at.end_column);
  }
  for (const StackFrames::Frame& frame : frames.frames) {
    auto* added = proto->add_stack_frames();
    added->set_file_location_id(frame.location);
    added->set_parent_frame_id(frame.parent);
  }
}

// The order of instructions is the schedule.
void WriteSchedule(xla::HloModuleProto* proto) {
  for (const xla::HloComputationProto& computation : proto->computations()) {
    auto& sequence = (*proto->mutable_schedule()->mutable_sequences())[computation.id()];
    for (const xla::HloInstructionProto& instruction : computation.instructions()) {
      sequence.add_instruction_ids(instruction.id());
    }
  }
}

}  // namespace

absl::StatusOr<std::string> SerializeModule(const Module& module) {
  if (module.entry() == nullptr) return absl::InternalError("module without an entry");
  xla::HloModuleProto proto;
  proto.set_name(module.name());
  proto.set_id(1);
  proto.set_entry_computation_name(module.entry()->name());
  proto.set_entry_computation_id(module.entry()->id());
  for (const auto& computation : module.computations()) {
    GW_RETURN_IF_ERROR_WITH(WriteComputation(*computation, proto.add_computations()),
                            absl::StrCat("computation %", computation->name()));
  }
  GW_RETURN_IF_ERROR(WriteProgramShape(module, &proto));
  WriteDonation(module.config(), &proto);
  if (!module.stack_frames().empty()) WriteStackFrames(module.stack_frames(), proto.mutable_stack_frame_index());
  FrontendAttributes attributes = AttributesWithMeshes(module);
  if (!attributes.empty()) WriteFrontendAttributes(attributes, proto.mutable_frontend_attributes());
  if (module.config().is_scheduled) WriteSchedule(&proto);
  std::string bytes;
  if (!proto.SerializeToString(&bytes)) return absl::ResourceExhaustedError("program above 2 GiB");
  return bytes;
}

}  // namespace gangway::hlo

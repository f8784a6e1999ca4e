#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/hlo/proto.h"
#include "gangway/hlo/proto_attributes.h"
#include "gangway/hlo/proto_values.h"
#include "gangway/hlo/shard_group.h"
#include "gangway/hlo/text_module.h"
#include "gangway/mesh/proto/sharding_attribute.h"

namespace gangway::hlo {
namespace {

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

FrontendAttributes ReadFrontendAttributes(const xla::FrontendAttributes& proto) {
  return FrontendAttributes(proto.map().begin(), proto.map().end());
}

// A name the text form can hold; XLA gives such names only.
bool IsName(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](char c) { return absl::ascii_isalnum(c) || absl::StrContains("_.-$#", c); });
}

// Builds the module. Operands and called computations must come before their uses, as XLA writes them: this keeps the
// call graph free of cycles by construction.
class Reader {
 public:
  explicit Reader(const xla::HloModuleProto& proto) : proto_(proto) {}

  absl::StatusOr<std::unique_ptr<Module>> Read() {
    if (!IsName(proto_.name())) return Wrong("module without a proper name");
    module_ = std::make_unique<Module>(proto_.name());
    ReadConfig();
    GW_RETURN_IF_ERROR(ReadMeshesAttribute(module_.get()));
    if (!module_->meshes().empty()) mesh_ = module_->meshes().front().second;
    for (const xla::HloComputationProto& computation : proto_.computations()) {
      GW_RETURN_IF_ERROR_WITH(ReadComputation(computation), absl::StrCat("computation %", computation.name()));
    }
    auto entry = computations_.find(proto_.entry_computation_id());
    if (entry == computations_.end()) return Wrong("the entry computation is missing");
    module_->set_entry(entry->second);
    GW_RETURN_IF_ERROR_WITH(ReadProgramShape(), "program shape");
    return std::move(module_);
  }

 private:
  void ReadConfig() {
    ModuleConfig& config = module_->config();
    for (const auto& entry : proto_.input_output_alias().entries()) {
      config.aliases.push_back({ToDims(entry.output_shape_index()), entry.parameter_number(),
                                ToDims(entry.parameter_shape_index()), entry.kind() == xla::MUST_ALIAS});
    }
    for (const auto& entry : proto_.buffer_donor().entries()) {
      config.donors.push_back({entry.parameter_number(), ToDims(entry.parameter_shape_index())});
    }
    config.is_scheduled = proto_.schedule().sequences_size() > 0;
    config.frontend_attributes = ReadFrontendAttributes(proto_.frontend_attributes());
    ReadStackFrames();
    // The number of devices is no part of the proto; tile assignments show it.
    for (const auto& computation : proto_.computations()) {
      for (const auto& instruction : computation.instructions()) {
        config.num_partitions = std::max(config.num_partitions, DevicesOf(instruction.sharding()));
      }
    }
  }

  void ReadStackFrames() {
    StackFrames& frames = module_->stack_frames();
    const xla::StackFrameIndexProto& index = proto_.stack_frame_index();
    frames.files.assign(index.file_names().begin(), index.file_names().end());
    frames.functions.assign(index.function_names().begin(), index.function_names().end());
    for (const auto& at : index.file_locations()) {
      frames.locations.push_back({std::max(at.file_name_id(), 0), std::max(at.function_name_id(), 0),
                                  std::max(at.line(), 0), std::max(at.end_line(), 0), std::max(at.column(), 0),
                                  std::max(at.end_column(), 0)});
    }
    for (const auto& frame : index.stack_frames()) {
      frames.frames.push_back({std::max(frame.file_location_id(), 0), std::max(frame.parent_frame_id(), 0)});
    }
  }

  absl::Status ReadComputation(const xla::HloComputationProto& proto) {
    if (!IsName(proto.name())) return Wrong("without a proper name");
    if (computations_.contains(proto.id())) return Wrong(absl::StrCat("id ", proto.id(), " is taken"));
    Computation* computation = module_->AddComputation(proto.name());
    absl::flat_hash_map<int64_t, Instruction*> by_id;
    for (const xla::HloInstructionProto& instruction : proto.instructions()) {
      GW_RETURN_IF_ERROR_WITH(
          ReadInstruction(instruction, static_cast<int64_t>(proto.instructions_size()), computation, &by_id),
          absl::StrCat("instruction %", instruction.name()));
    }
    for (size_t i = 0; i < computation->parameters().size(); ++i) {
      if (computation->parameters()[i] == nullptr) return Wrong(absl::StrCat("parameter ", i, " is missing"));
    }
    auto root = by_id.find(proto.root_id());
    if (root == by_id.end()) return Wrong("the root is missing");
    computation->set_root(root->second);
    // Known to others only now: it cannot call itself.
    computations_.emplace(proto.id(), computation);
    return absl::OkStatus();
  }

  template <typename Ids>
  absl::StatusOr<std::vector<Instruction*>> Find(const absl::flat_hash_map<int64_t, Instruction*>& by_id,
                                                 const Ids& ids) {
    std::vector<Instruction*> found;
    for (int64_t id : ids) {
      auto it = by_id.find(id);
      if (it == by_id.end()) return Wrong(absl::StrCat("names instruction ", id, " which does not precede it"));
      found.push_back(it->second);
    }
    return found;
  }

  absl::StatusOr<std::vector<Computation*>> ReadCalled(const xla::HloInstructionProto& proto, Opcode opcode) {
    std::vector<Computation*> called;
    for (int64_t id : proto.called_computation_ids()) {
      auto it = computations_.find(id);
      if (it == computations_.end()) return Wrong(absl::StrCat("calls computation ", id, " which does not precede it"));
      called.push_back(it->second);
    }
    if (opcode == Opcode::kWhile && called.size() == 2) std::swap(called[0], called[1]);
    return called;
  }

  absl::Status ReadInstruction(const xla::HloInstructionProto& proto, int64_t max_parameters, Computation* computation,
                               absl::flat_hash_map<int64_t, Instruction*>* by_id) {
    if (!IsName(proto.name())) return Wrong("without a proper name");
    std::optional<Opcode> opcode = ParseOpcode(proto.opcode());
    if (!opcode.has_value()) return Wrong(absl::StrCat("unknown operation '", proto.opcode(), "'"));
    GW_ASSIGN_OR_RETURN(Shape shape, ReadShape(proto.shape()));
    GW_ASSIGN_OR_RETURN(std::vector<Instruction*> operands, Find(*by_id, proto.operand_ids()));
    GW_ASSIGN_OR_RETURN(Attributes attributes, ReadAttributes(proto, *opcode, operands));
    if (const auto* parameter = std::get_if<ParameterAttr>(&attributes)) {
      const std::vector<Instruction*>& taken = computation->parameters();
      const int64_t number = parameter->number;
      const bool is_new = number >= static_cast<int64_t>(taken.size()) || (number >= 0 && taken[number] == nullptr);
      if (number < 0 || number >= max_parameters || !is_new) return Wrong(absl::StrCat("parameter number ", number));
    }
    GW_ASSIGN_OR_RETURN(std::vector<Computation*> called, ReadCalled(proto, *opcode));
    GW_ASSIGN_OR_RETURN(std::vector<Instruction*> before, Find(*by_id, proto.control_predecessor_ids()));
    Instruction* added =
        computation->Add(*opcode, std::move(shape), std::move(operands), std::move(attributes), proto.name());
    if (!by_id->emplace(proto.id(), added).second) return Wrong(absl::StrCat("id ", proto.id(), " is taken"));
    added->set_called(std::move(called));
    for (Instruction* predecessor : before) added->AddControlPredecessor(predecessor);
    added->set_metadata(ReadMetadata(proto.metadata()));
    added->mutable_frontend_attributes() = ReadFrontendAttributes(proto.frontend_attributes());
    if (*opcode != Opcode::kCustomCall) added->set_backend_config(proto.backend_config());
    if (proto.has_sharding()) {
      GW_ASSIGN_OR_RETURN(Shardings shardings,
                          ReadShardings(proto.sharding(), added->shape(), module_->config().num_partitions, mesh_));
      if (mesh_ == nullptr && proto.sharding().has_named_sharding() && !shardings.empty())
        mesh_ = shardings.front().mesh;
      added->set_shardings(std::move(shardings));
      JoinShardGroups(added, ReadShardGroups(proto.sharding()));
    }
    return absl::OkStatus();
  }

  absl::Status ReadProgramShape() {
    if (!proto_.has_host_program_shape()) return absl::OkStatus();
    std::vector<Shape> parameters;
    for (const xla::ShapeProto& shape_proto : proto_.host_program_shape().parameters()) {
      GW_ASSIGN_OR_RETURN(Shape shape, ReadShape(shape_proto));
      parameters.push_back(std::move(shape));
    }
    GW_ASSIGN_OR_RETURN(Shape result, ReadShape(proto_.host_program_shape().result()));
    if (parameters.size() != module_->entry()->parameters().size()) return Wrong("number of parameters");
    module_->config().parameter_layouts = std::move(parameters);
    module_->config().result_layout = std::move(result);
    return absl::OkStatus();
  }

  const xla::HloModuleProto& proto_;
  std::unique_ptr<Module> module_;
  MeshRef mesh_;  // further shardings over an equal mesh share it
  absl::flat_hash_map<int64_t, Computation*> computations_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> DeserializeModule(absl::string_view bytes) {
  xla::HloModuleProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(std::min<size_t>(bytes.size(), INT32_MAX)))) {
    return Wrong("not an HloModuleProto");
  }
  return Reader(proto).Read();
}

}  // namespace gangway::hlo

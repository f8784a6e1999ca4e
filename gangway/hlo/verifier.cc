#include "gangway/hlo/verifier.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/hlo/attribute_family.h"
#include "gangway/hlo/infer.h"

namespace gangway::hlo {
namespace {

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status CheckShape(const Instruction& instruction) {
  GW_RETURN_IF_ERROR(ValidateShape(instruction.shape()));
  std::vector<const Shape*> operands;
  for (const Instruction* operand : instruction.operands()) operands.push_back(&operand->shape());
  std::vector<const Computation*> called(instruction.called().begin(), instruction.called().end());
  GW_ASSIGN_OR_RETURN(Shape inferred, InferShape(instruction.opcode(), operands, instruction.attributes(), called,
                                                 instruction.shape()));
  if (Shape::Compatible(inferred, instruction.shape())) return absl::OkStatus();
  return Wrong("has shape ", instruction.shape().ToString(), ", its operands make ", inferred.ToString());
}

absl::Status CheckShardings(const Instruction& instruction) {
  if (!instruction.has_sharding()) return absl::OkStatus();
  const std::vector<Shape> leaves = Leaves(instruction.shape());
  const Shardings& shardings = *instruction.shardings();
  if (shardings.size() != leaves.size()) return Wrong(shardings.size(), " shardings for ", leaves.size(), " leaves");
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (shardings[i].mesh == nullptr) return Wrong("sharding ", i, " has no mesh");
    GW_RETURN_IF_ERROR_WITH(ValidateSharding(shardings[i], leaves[i]), absl::StrCat("sharding ", i));
  }
  return absl::OkStatus();
}

// No device twice, in groups or as the source or the target of a transfer.
absl::Status CheckCollective(const Instruction& instruction) {
  const auto* attr = instruction.attr_if<CollectiveAttr>();
  if (attr == nullptr) return absl::OkStatus();
  GW_RETURN_IF_ERROR(ValidateReplicaGroups(attr->groups));
  absl::flat_hash_set<int64_t> members, sources, targets;
  for (const std::vector<int64_t>& group : attr->groups.groups) {
    for (int64_t device : group) {
      if (device < 0 || !members.insert(device).second) return Wrong("replica_groups: device ", device, " is wrong");
    }
  }
  for (auto [source, target] : attr->source_target_pairs) {
    if (source < 0 || target < 0 || !sources.insert(source).second || !targets.insert(target).second) {
      return Wrong("source_target_pairs: {", source, ",", target, "} is wrong or repeats a device");
    }
  }
  return absl::OkStatus();
}

class Verifier {
 public:
  explicit Verifier(const Module& module) : module_(module) {}

  absl::Status Run() {
    if (module_.entry() == nullptr) return Wrong("module ", module_.name(), " has no entry");
    for (const auto& computation : module_.computations()) {
      GW_RETURN_IF_ERROR_WITH(CheckComputation(*computation), absl::StrCat("computation %", computation->name()));
      done_.insert(computation.get());
    }
    if (!done_.contains(module_.entry())) return Wrong("the entry is of another module");
    return CheckConfig();
  }

 private:
  absl::Status CheckComputation(const Computation& computation) {
    absl::flat_hash_set<const Instruction*> defined;
    for (const auto& instruction : computation.instructions()) {
      GW_RETURN_IF_ERROR_WITH(CheckInstruction(*instruction, defined),
                              absl::StrCat("instruction %", instruction->name()));
      defined.insert(instruction.get());
    }
    if (computation.root() == nullptr || !defined.contains(computation.root())) return Wrong("has no root of its own");
    return CheckParameters(computation);
  }

  absl::Status CheckParameters(const Computation& computation) {
    const std::vector<Instruction*>& parameters = computation.parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto* attr = parameters[i] == nullptr ? nullptr : parameters[i]->attr_if<ParameterAttr>();
      if (attr == nullptr || attr->number != static_cast<int64_t>(i)) return Wrong("parameter ", i, " is missing");
    }
    size_t count = 0;
    for (const auto& instruction : computation.instructions()) count += instruction->opcode() == Opcode::kParameter;
    if (count != parameters.size()) return Wrong(count, " parameter instructions for ", parameters.size());
    return absl::OkStatus();
  }

  absl::Status CheckInstruction(const Instruction& instruction,
                                const absl::flat_hash_set<const Instruction*>& defined) {
    for (const Instruction* operand : instruction.operands()) {
      if (!defined.contains(operand)) return Wrong("uses %", operand->name(), ", which is not defined before it");
    }
    for (const Instruction* before : instruction.control_predecessors()) {
      if (!defined.contains(before)) return Wrong("waits for %", before->name(), ", which is not defined before it");
    }
    for (const Computation* called : instruction.called()) {
      // Callees come first, so that nothing calls itself.
      if (called == nullptr || !done_.contains(called)) {
        return Wrong("calls ", called == nullptr ? "nothing" : called->name(), ", which is not defined before it");
      }
    }
    if (instruction.attributes().index() != AttributeIndexOf(instruction.opcode())) {
      return Wrong(OpcodeName(instruction.opcode()), " carries attributes of another family");
    }
    GW_RETURN_IF_ERROR(CheckShape(instruction));
    GW_RETURN_IF_ERROR(CheckShardings(instruction));
    return CheckCollective(instruction);
  }

  absl::Status CheckConfig() {
    const ModuleConfig& config = module_.config();
    const std::vector<Instruction*>& parameters = module_.entry()->parameters();
    const Shape& result = module_.entry()->root()->shape();
    if (config.parameter_layouts.has_value()) {
      if (config.parameter_layouts->size() != parameters.size()) return Wrong("parameter layouts do not fit the entry");
      for (size_t i = 0; i < parameters.size(); ++i) {
        if (!Shape::Compatible((*config.parameter_layouts)[i], parameters[i]->shape())) {
          return Wrong("layout of parameter ", i, " is of another type: ", (*config.parameter_layouts)[i].ToString());
        }
      }
    }
    if (config.result_layout.has_value() && !Shape::Compatible(*config.result_layout, result)) {
      return Wrong("layout of the result is of another type: ", config.result_layout->ToString());
    }
    for (const InputOutputAlias& alias : config.aliases) {
      GW_RETURN_IF_ERROR_WITH(CheckPath(result, alias.output_index), "input_output_alias: result");
      GW_RETURN_IF_ERROR_WITH(CheckParameterPath(alias.parameter, alias.parameter_index), "input_output_alias");
    }
    for (const BufferDonor& donor : config.donors) {
      GW_RETURN_IF_ERROR_WITH(CheckParameterPath(donor.parameter, donor.parameter_index), "buffer_donor");
    }
    return absl::OkStatus();
  }

  absl::Status CheckPath(const Shape& shape, const DimVector& path) {
    const Shape* at = &shape;
    for (int64_t index : path) {
      if (index < 0 || index >= static_cast<int64_t>(at->tuple().size())) {
        return Wrong("index ", index, " is not in ", at->ToString());
      }
      at = &at->tuple()[index];
    }
    return absl::OkStatus();
  }

  absl::Status CheckParameterPath(int64_t number, const DimVector& path) {
    const std::vector<Instruction*>& parameters = module_.entry()->parameters();
    if (number < 0 || number >= static_cast<int64_t>(parameters.size())) return Wrong("no parameter ", number);
    return CheckPath(parameters[number]->shape(), path);
  }

  const Module& module_;
  absl::flat_hash_set<const Computation*> done_;
};

}  // namespace

absl::Status Verify(const Module& module) { return Verifier(module).Run(); }

}  // namespace gangway::hlo

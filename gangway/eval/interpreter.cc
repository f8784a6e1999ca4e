#include "gangway/eval/interpreter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/eval/op_table.h"

namespace gangway::eval {
namespace {

constexpr int kMaxDepth = 200;  // of calls; a module that recurses is malformed

using Environment = absl::flat_hash_map<const hlo::Instruction*, PerDevice>;

bool SameOnAll(const std::vector<PerDevice>& operands) {
  for (const PerDevice& operand : operands) {
    for (const Value& value : operand) {
      if (!value.SameObject(operand.front())) return false;
    }
  }
  return true;
}

// Drops operands nobody reads any more.
void Release(const hlo::Instruction& instruction, absl::flat_hash_map<const hlo::Instruction*, int64_t>* uses,
             Environment* environment) {
  for (const hlo::Instruction* operand : instruction.operands()) {
    if (--(*uses)[operand] == 0 && !operand->IsRoot()) environment->erase(operand);
  }
}

std::vector<Value> OnDevice(const std::vector<PerDevice>& operands, size_t device) {
  std::vector<Value> values;
  values.reserve(operands.size());
  for (const PerDevice& operand : operands) values.push_back(operand[device]);
  return values;
}

}  // namespace

absl::StatusOr<PerDevice> Interpreter::Apply(const hlo::Instruction& instruction, absl::Span<const int64_t> devices,
                                             const std::vector<PerDevice>& operands) {
  const OpTable::Entry& entry = OpTable::Get()[instruction.opcode()];
  if (const auto* lockstep = std::get_if<LockstepFunction>(&entry)) {
    return (*lockstep)(LockstepCall{instruction, operands, devices, *this});
  }
  const auto* one = std::get_if<OpFunction>(&entry);
  if (one == nullptr) {
    return absl::UnimplementedError(absl::StrCat("cannot be evaluated: ", UnsupportedReason(instruction.opcode())));
  }
  // Values that are one object on all devices give one result.
  size_t distinct = SameOnAll(operands) ? 1 : devices.size();
  PerDevice results;
  results.reserve(devices.size());
  for (size_t d = 0; d < distinct; ++d) {
    std::vector<Value> on_device = OnDevice(operands, d);
    GW_ASSIGN_OR_RETURN(Value result, (*one)(Call{instruction, on_device, *this}));
    results.push_back(std::move(result));
  }
  results.resize(devices.size(), results.front());
  return results;
}

absl::StatusOr<PerDevice> Interpreter::Run(const hlo::Computation& computation, absl::Span<const int64_t> devices,
                                           std::vector<PerDevice> arguments) {
  if (devices.empty()) return PerDevice{};
  if (++depth_ > kMaxDepth)
    return absl::ResourceExhaustedError(absl::StrCat("calls nest too deeply at ", computation.name()));
  Environment environment;
  absl::flat_hash_map<const hlo::Instruction*, int64_t> uses;
  for (const auto& instruction : computation.instructions()) {
    PerDevice result;
    if (instruction->opcode() == hlo::Opcode::kParameter) {
      result = std::move(arguments[instruction->attr<hlo::ParameterAttr>().number]);
    } else {
      if (instruction->shape().ByteSize() > options_.max_value_bytes) {
        return absl::ResourceExhaustedError(absl::StrCat("instruction ", instruction->name(), ": result ",
                                                         instruction->shape().ToString(), " exceeds the limit of ",
                                                         options_.max_value_bytes, " bytes"));
      }
      std::vector<PerDevice> operands;
      operands.reserve(instruction->operand_count());
      for (const hlo::Instruction* operand : instruction->operands()) operands.push_back(environment.at(operand));
      absl::StatusOr<PerDevice> applied = Apply(*instruction, devices, operands);
      if (!applied.ok()) {
        return Annotate(applied.status(), absl::StrCat("instruction ", instruction->name(), " (",
                                                       hlo::OpcodeName(instruction->opcode()), ")"));
      }
      result = *std::move(applied);
      if (!result.front().HasShape(instruction->shape())) {
        return absl::InternalError(absl::StrCat("instruction ", instruction->name(), ": evaluated to ",
                                                result.front().shape().ToString(), ", expected ",
                                                instruction->shape().ToString()));
      }
    }
    uses[instruction.get()] = static_cast<int64_t>(instruction->users().size());
    environment[instruction.get()] = std::move(result);
    Release(*instruction, &uses, &environment);
  }
  --depth_;
  return std::move(environment.at(computation.root()));
}

absl::StatusOr<Value> Interpreter::RunOnOne(const hlo::Computation& computation, std::vector<Value> arguments) {
  std::vector<PerDevice> wrapped;
  for (Value& argument : arguments) wrapped.push_back({std::move(argument)});
  GW_ASSIGN_OR_RETURN(PerDevice result, Run(computation, {0}, std::move(wrapped)));
  return std::move(result.front());
}

absl::StatusOr<std::vector<Value>> EvaluateValues(const hlo::Module& module,
                                                  const std::vector<std::vector<Value>>& arguments, int64_t num_devices,
                                                  const EvaluateOptions& options) {
  const hlo::Computation* entry = module.entry();
  if (entry == nullptr) return absl::InvalidArgumentError(absl::StrCat("module ", module.name(), " has no entry"));
  if (num_devices < 1 || static_cast<int64_t>(arguments.size()) != num_devices) {
    return absl::InvalidArgumentError(
        absl::StrCat("arguments for ", arguments.size(), " devices given, ", num_devices, " wanted"));
  }
  // A module without its own idea of partitions runs as one replica.
  int64_t partitions = num_devices;
  if (module.config().num_replicas > 1) partitions = std::max<int64_t>(1, module.config().num_partitions);
  if (num_devices % partitions != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(num_devices, " devices do not divide into ", partitions, " partitions"));
  }
  std::vector<int64_t> devices(num_devices);
  std::vector<PerDevice> by_parameter(entry->parameters().size());
  for (int64_t d = 0; d < num_devices; ++d) {
    devices[d] = d;
    if (arguments[d].size() != by_parameter.size()) {
      return absl::InvalidArgumentError(absl::StrCat("module ", module.name(), " takes ", by_parameter.size(),
                                                     " arguments, device ", d, " got ", arguments[d].size()));
    }
    for (size_t p = 0; p < by_parameter.size(); ++p) {
      if (!arguments[d][p].HasShape(entry->parameter(p)->shape())) {
        return absl::InvalidArgumentError(absl::StrCat("argument ", p, " of device ", d, " is ",
                                                       arguments[d][p].shape().ToString(), ", module ", module.name(),
                                                       " takes ", entry->parameter(p)->shape().ToString()));
      }
      by_parameter[p].push_back(arguments[d][p]);
    }
  }
  Interpreter interpreter(partitions, num_devices, options);
  absl::StatusOr<PerDevice> results = interpreter.Run(*entry, devices, std::move(by_parameter));
  if (!results.ok()) return Annotate(results.status(), absl::StrCat("module ", module.name()));
  return results;
}

absl::StatusOr<std::vector<Literal>> EvaluateSpmd(const hlo::Module& module,
                                                  const std::vector<std::vector<Literal>>& arguments,
                                                  int64_t num_devices, const EvaluateOptions& options) {
  std::vector<std::vector<Value>> values;
  for (const std::vector<Literal>& device : arguments) {
    std::vector<Value>& of_device = values.emplace_back();
    for (size_t p = 0; p < device.size(); ++p) {
      // What equals the first device's is shared, so that operations on it run once.
      bool same = &of_device != &values.front() && p < arguments.front().size() && device[p] == arguments.front()[p];
      of_device.push_back(same ? values.front()[p] : Value::FromLiteral(device[p]));
    }
  }
  GW_ASSIGN_OR_RETURN(std::vector<Value> results, EvaluateValues(module, values, num_devices, options));
  std::vector<Literal> literals;
  for (const Value& result : results) literals.push_back(result.ToLiteral());
  return literals;
}

absl::StatusOr<Value> EvaluateInstruction(const hlo::Instruction& instruction, absl::Span<const Value> operands) {
  const auto* function = std::get_if<OpFunction>(&OpTable::Get()[instruction.opcode()]);
  if (function == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat(hlo::OpcodeName(instruction.opcode()), " is no function of its operands"));
  }
  EvaluateOptions options;
  Interpreter interpreter(1, 1, options);
  return (*function)(Call{instruction, operands, interpreter});
}

absl::StatusOr<Literal> Evaluate(const hlo::Module& module, absl::Span<const Literal> arguments,
                                 const EvaluateOptions& options) {
  GW_ASSIGN_OR_RETURN(std::vector<Literal> results,
                      EvaluateSpmd(module, {std::vector<Literal>(arguments.begin(), arguments.end())}, 1, options));
  return std::move(results.front());
}

}  // namespace gangway::eval

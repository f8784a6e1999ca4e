// parameter, constant, tuples, call, while, conditional, asynchronous pairs, and what only orders.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/eval/op_table.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;

absl::StatusOr<Value> Constant(const Call& call) {
  const auto& literal = call.attr<hlo::ConstantAttr>().literal;
  return call.shape().IsTuple() ? Value::FromLiteral(*literal) : Value(literal);
}

absl::StatusOr<Value> Tuple(const Call& call) { return Value::Tuple({call.operands.begin(), call.operands.end()}); }

absl::StatusOr<Value> GetTupleElement(const Call& call) {
  return call.operands[0].elements()[call.attr<hlo::TupleIndexAttr>().index];
}

absl::StatusOr<Value> Identity(const Call& call) { return call.operands[0]; }
absl::StatusOr<Value> Token(const Call& call) { return Value::Token(); }

absl::StatusOr<PerDevice> CallComputation(const LockstepCall& call) {
  return call.interpreter.Run(*call.instruction.called().front(), call.devices,
                              {call.operands.begin(), call.operands.end()});
}

// Values and device ids of some places of a frame.
PerDevice At(const PerDevice& values, const std::vector<size_t>& places) {
  PerDevice picked;
  for (size_t place : places) picked.push_back(values[place]);
  return picked;
}
std::vector<int64_t> DevicesAt(const LockstepCall& call, const std::vector<size_t>& places) {
  std::vector<int64_t> devices;
  for (size_t place : places) devices.push_back(call.devices[place]);
  return devices;
}

int64_t ScalarOf(const Value& value) { return ElementAsInt64(value.array().shape().dtype(), value.array().data()); }

// Devices leave the loop one by one; those that stay go on in lockstep.
absl::StatusOr<PerDevice> While(const LockstepCall& call) {
  const hlo::Computation &condition = *call.instruction.called()[0], &body = *call.instruction.called()[1];
  PerDevice state = call.operands[0];
  std::vector<size_t> active(call.devices.size());
  std::iota(active.begin(), active.end(), 0);
  for (int64_t step = 0;; ++step) {
    GW_ASSIGN_OR_RETURN(PerDevice more, call.interpreter.Run(condition, DevicesAt(call, active), {At(state, active)}));
    std::vector<size_t> next;
    for (size_t i = 0; i < active.size(); ++i) {
      if (ScalarOf(more[i]) != 0) next.push_back(active[i]);
    }
    active = std::move(next);
    if (active.empty()) return state;
    if (step == call.interpreter.options().max_while_steps) {
      return absl::ResourceExhaustedError(absl::StrCat("the loop ran more than ", step, " steps"));
    }
    GW_ASSIGN_OR_RETURN(PerDevice after, call.interpreter.Run(body, DevicesAt(call, active), {At(state, active)}));
    for (size_t i = 0; i < active.size(); ++i) state[active[i]] = std::move(after[i]);
  }
}

// Branch of a predicate (true first) or an index (outside: the last).
size_t BranchOf(const Value& selector, size_t branches) {
  int64_t value = ScalarOf(selector);
  if (selector.array().shape().dtype() == DType::kPred) return value != 0 ? 0 : 1;
  return value < 0 || value >= static_cast<int64_t>(branches) ? branches - 1 : static_cast<size_t>(value);
}

absl::StatusOr<PerDevice> Conditional(const LockstepCall& call) {
  const std::vector<hlo::Computation*>& branches = call.instruction.called();
  std::vector<std::vector<size_t>> takers(branches.size());
  for (size_t place = 0; place < call.devices.size(); ++place) {
    takers[BranchOf(call.operands[0][place], branches.size())].push_back(place);
  }
  PerDevice results(call.devices.size());
  for (size_t b = 0; b < branches.size(); ++b) {
    if (takers[b].empty()) continue;
    GW_ASSIGN_OR_RETURN(PerDevice values, call.interpreter.Run(*branches[b], DevicesAt(call, takers[b]),
                                                               {At(call.operands[b + 1], takers[b])}));
    for (size_t i = 0; i < takers[b].size(); ++i) results[takers[b][i]] = std::move(values[i]);
  }
  return results;
}

// ((operands), result, context...): what async-start, copy-start and the like return.
Value WithContext(const Shape& shape, std::vector<Value> head) {
  for (size_t i = head.size(); i < shape.tuple().size(); ++i) {
    head.push_back(Value::FromLiteral(Literal(WithoutLayout(shape.tuple()[i]))));
  }
  return Value::Tuple(std::move(head));
}

absl::StatusOr<PerDevice> AsyncStart(const LockstepCall& call) {
  GW_ASSIGN_OR_RETURN(PerDevice results, CallComputation(call));
  for (size_t d = 0; d < results.size(); ++d) {
    std::vector<Value> operands;
    for (const PerDevice& operand : call.operands) operands.push_back(operand[d]);
    results[d] = WithContext(call.instruction.shape(), {Value::Tuple(std::move(operands)), results[d]});
  }
  return results;
}

absl::StatusOr<Value> SecondElement(const Call& call) { return call.operands[0].elements()[1]; }
absl::StatusOr<Value> FirstElement(const Call& call) { return call.operands[0].elements()[0]; }
absl::StatusOr<Value> CopyStart(const Call& call) {
  return WithContext(call.shape(), {call.operands[0], call.operands[0]});
}

absl::StatusOr<PerDevice> PartitionId(const LockstepCall& call) {
  PerDevice ids;
  for (int64_t device : call.devices) {
    ids.emplace_back(Literal::Scalar<uint32_t>(DType::kU32, call.interpreter.PartitionOf(device)));
  }
  return ids;
}

absl::StatusOr<PerDevice> ReplicaId(const LockstepCall& call) {
  PerDevice ids;
  for (int64_t device : call.devices) {
    ids.emplace_back(Literal::Scalar<uint32_t>(DType::kU32, call.interpreter.ReplicaOf(device)));
  }
  return ids;
}

absl::StatusOr<Value> GetDimensionSize(const Call& call) {
  int32_t size = static_cast<int32_t>(call.array(0).shape().dim(call.attr<hlo::DimensionAttr>().dimension));
  return Value(Literal::Scalar<int32_t>(DType::kS32, size));
}

// Arrays here have static sizes: only the full one can be set.
absl::StatusOr<Value> SetDimensionSize(const Call& call) {
  int64_t size = call.array(0).shape().dim(call.attr<hlo::DimensionAttr>().dimension);
  if (ScalarOf(call.operands[1]) != size) return absl::UnimplementedError("dynamic dimension sizes");
  return call.operands[0];
}

void AddUnsupported(OpTable* table) {
  table->SetUnsupported(Opcode::kInfeed, "no host feeds the evaluator");
  table->SetUnsupported(Opcode::kOutfeed, "no host listens to the evaluator");
  table->SetUnsupported(Opcode::kSend, "no peer of the program");
  table->SetUnsupported(Opcode::kSendDone, "no peer of the program");
  table->SetUnsupported(Opcode::kRecv, "no peer of the program");
  table->SetUnsupported(Opcode::kRecvDone, "no peer of the program");
}

}  // namespace

void AddControl(OpTable* table) {
  table->SetUnsupported(Opcode::kParameter, "parameters are bound, not computed");
  table->Set(Opcode::kConstant, Constant);
  table->Set(Opcode::kTuple, Tuple);
  table->Set(Opcode::kGetTupleElement, GetTupleElement);
  table->Set(Opcode::kOptBarrier, Identity);
  table->Set(Opcode::kAddDependency, Identity);
  table->Set(Opcode::kDomain, Identity);
  table->Set(Opcode::kAfterAll, Token);
  table->SetLockstep(Opcode::kCall, CallComputation);
  table->SetLockstep(Opcode::kFusion, CallComputation);
  table->SetLockstep(Opcode::kWhile, While);
  table->SetLockstep(Opcode::kConditional, Conditional);
  table->SetLockstep(Opcode::kAsyncStart, AsyncStart);
  table->Set(Opcode::kAsyncUpdate, Identity);
  table->Set(Opcode::kAsyncDone, SecondElement);
  table->Set(Opcode::kCopyStart, CopyStart);
  table->Set(Opcode::kCopyDone, FirstElement);
  table->SetLockstep(Opcode::kPartitionId, PartitionId);
  table->SetLockstep(Opcode::kReplicaId, ReplicaId);
  table->Set(Opcode::kGetDimensionSize, GetDimensionSize);
  table->Set(Opcode::kSetDimensionSize, SetDimensionSize);
  AddUnsupported(table);
}

}  // namespace gangway::eval

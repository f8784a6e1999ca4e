// Collectives: pure functions of what every member holds.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/base/status.h"
#include "gangway/eval/elementwise_functions.h"
#include "gangway/eval/op_table.h"
#include "gangway/eval/scalar_function.h"
#include "gangway/eval/strided.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;
using Group = std::vector<size_t>;  // places in the frame, in group order

// What the ids of groups and pairs stand for.
enum class IdKind { kReplica, kPartition, kFlat };

// all-to-all and collective-permute with a channel run between partitions; the others' groups are flattened ids then.
IdKind IdKindOf(const hlo::Instruction& instruction) {
  const auto& attr = instruction.attr<hlo::CollectiveAttr>();
  if (attr.use_global_device_ids) return IdKind::kFlat;
  return attr.channel_id.has_value() ? IdKind::kPartition : IdKind::kReplica;
}

// The device that `id` names, seen from `device`.
int64_t DeviceOf(const Interpreter& interpreter, IdKind kind, int64_t id, int64_t device) {
  switch (kind) {
    case IdKind::kFlat:
      return id;
    case IdKind::kPartition:
      return interpreter.ReplicaOf(device) * interpreter.num_partitions() + id;
    case IdKind::kReplica:
      return id * interpreter.num_partitions() + interpreter.PartitionOf(device);
  }
  return id;
}

int64_t IdCount(const Interpreter& interpreter, IdKind kind) {
  switch (kind) {
    case IdKind::kFlat:
      return interpreter.num_devices();
    case IdKind::kPartition:
      return interpreter.num_partitions();
    case IdKind::kReplica:
      return interpreter.num_replicas();
  }
  return 0;
}

// Devices of every group, all of which must name existing devices once.
absl::StatusOr<std::vector<std::vector<int64_t>>> DeviceGroups(const LockstepCall& call) {
  const auto& attr = call.instruction.attr<hlo::CollectiveAttr>();
  IdKind kind = IdKindOf(call.instruction);
  int64_t ids = IdCount(call.interpreter, kind);
  std::vector<std::vector<int64_t>> by_id = attr.groups.Expand(ids);
  std::vector<int64_t> representatives = {0};  // one device of every set that runs the groups on its own
  if (kind == IdKind::kReplica) {
    representatives.clear();
    for (int64_t p = 0; p < call.interpreter.num_partitions(); ++p) representatives.push_back(p);
  } else if (kind == IdKind::kPartition) {
    representatives.clear();
    for (int64_t r = 0; r < call.interpreter.num_replicas(); ++r) {
      representatives.push_back(r * call.interpreter.num_partitions());
    }
  }
  std::vector<std::vector<int64_t>> groups;
  std::vector<bool> seen(call.interpreter.num_devices(), false);
  for (int64_t representative : representatives) {
    for (const std::vector<int64_t>& group : by_id) {
      std::vector<int64_t>& devices = groups.emplace_back();
      for (int64_t id : group) {
        if (id < 0 || id >= ids) {
          return absl::InvalidArgumentError(absl::StrCat("group {", absl::StrJoin(group, ","), "} names ", id, " of ",
                                                         ids, kind == IdKind::kReplica ? " replicas" : " devices"));
        }
        int64_t device = DeviceOf(call.interpreter, kind, id, representative);
        if (seen[device]) return absl::InvalidArgumentError(absl::StrCat("device ", device, " is in two groups"));
        seen[device] = true;
        devices.push_back(device);
      }
    }
  }
  return groups;
}

// Groups as places in the frame; those of which no member runs are left out.
absl::StatusOr<std::vector<Group>> GroupsOf(const LockstepCall& call) {
  GW_ASSIGN_OR_RETURN(std::vector<std::vector<int64_t>> by_device, DeviceGroups(call));
  std::vector<int64_t> place_of(call.interpreter.num_devices(), -1);
  for (size_t i = 0; i < call.devices.size(); ++i) place_of[call.devices[i]] = static_cast<int64_t>(i);
  std::vector<Group> groups;
  size_t members = 0;
  for (const std::vector<int64_t>& devices : by_device) {
    Group group;
    for (int64_t device : devices) {
      if (place_of[device] >= 0) group.push_back(place_of[device]);
    }
    if (group.empty()) continue;
    if (group.size() != devices.size()) {
      return absl::FailedPreconditionError(absl::StrCat("collective under divergent control flow: of group {",
                                                        absl::StrJoin(devices, ","), "} only ", group.size(),
                                                        " devices take part"));
    }
    members += group.size();
    groups.push_back(std::move(group));
  }
  if (members != call.devices.size())
    return absl::InvalidArgumentError("the groups leave out a device that takes part");
  return groups;
}

// Member by member through the reduction, in group order.
absl::StatusOr<std::vector<Literal>> ReduceMembers(const LockstepCall& call, const Group& group) {
  const hlo::Computation& reducer = *call.instruction.called().front();
  std::optional<Opcode> binary = AsBinary(reducer);
  std::vector<Literal> totals;
  for (const PerDevice& operand : call.operands) {
    Literal total = operand[group.front()].array();
    int64_t count = total.shape().ElementCount();
    bool done = binary.has_value() && WithWideType(total.shape().dtype(), [&]<typename W>() {
                  BinaryFunction<W> function = BinaryFor<W>(*binary);
                  if (function == nullptr) return false;
                  int bits = total.shape().dtype() == DType::kPred ? 1 : BitWidth(total.shape().dtype());
                  std::vector<W> sum = Widen<W>(total);
                  for (size_t m = 1; m < group.size(); ++m) {
                    std::vector<W> part = Widen<W>(operand[group[m]].array());
                    for (size_t i = 0; i < sum.size(); ++i) sum[i] = function(sum[i], part[i], bits);
                  }
                  total = NarrowTo<W>(total.shape(), sum);
                  return true;
                });
    for (size_t m = 1; m < group.size() && !done; ++m) {
      auto flat = [&](const Literal& x) {
        return Literal(Shape(x.shape().dtype(), {count}), {x.bytes().begin(), x.bytes().end()});
      };
      GW_ASSIGN_OR_RETURN(std::vector<Literal> combined, ApplyToLanes(call.interpreter, reducer, count,
                                                                      {flat(total), flat(operand[group[m]].array())}));
      total = Literal(total.shape(), {combined.front().bytes().begin(), combined.front().bytes().end()});
    }
    totals.push_back(std::move(total));
  }
  return totals;
}

Value AsResult(const Shape& shape, std::vector<Value> values) {
  return shape.IsTuple() ? Value::Tuple(std::move(values)) : std::move(values.front());
}

absl::StatusOr<PerDevice> AllReduce(const LockstepCall& call) {
  GW_ASSIGN_OR_RETURN(std::vector<Group> groups, GroupsOf(call));
  PerDevice results(call.devices.size());
  for (const Group& group : groups) {
    GW_ASSIGN_OR_RETURN(std::vector<Literal> totals, ReduceMembers(call, group));
    std::vector<Value> values;
    for (Literal& total : totals) values.emplace_back(std::move(total));
    Value result = AsResult(call.instruction.shape(), std::move(values));
    for (size_t member : group) results[member] = result;
  }
  return results;
}

// Part `index` of `count` equal ones along a dimension.
absl::StatusOr<Literal> PartOf(const Literal& x, int64_t dim, int64_t index, int64_t count) {
  DimVector dims = x.shape().dims(), strides = Strides(dims);
  if (dims[dim] % count != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("dimension ", dim, " of ", x.shape().ToString(), " does not divide into ", count, " parts"));
  }
  dims[dim] /= count;
  Literal part(Shape(x.shape().dtype(), dims));
  CopyStrided(dims, ByteWidth(x.shape().dtype()), x.data(), {index * dims[dim] * strides[dim], strides}, part.data(),
              {0, Strides(dims)});
  return part;
}

Literal Concatenated(const std::vector<const Literal*>& parts, int64_t dim) {
  DimVector dims = parts.front()->shape().dims();
  int64_t extent = dims[dim];
  dims[dim] *= static_cast<int64_t>(parts.size());
  Literal whole(Shape(parts.front()->shape().dtype(), dims));
  DimVector strides = Strides(dims);
  for (size_t i = 0; i < parts.size(); ++i) {
    const DimVector& part_dims = parts[i]->shape().dims();
    CopyStrided(part_dims, ByteWidth(whole.shape().dtype()), parts[i]->data(), {0, Strides(part_dims)}, whole.data(),
                {static_cast<int64_t>(i) * extent * strides[dim], strides});
  }
  return whole;
}

absl::StatusOr<PerDevice> ReduceScatter(const LockstepCall& call) {
  GW_ASSIGN_OR_RETURN(std::vector<Group> groups, GroupsOf(call));
  int64_t dim = call.instruction.attr<hlo::CollectiveAttr>().dimension.value_or(0);
  PerDevice results(call.devices.size());
  for (const Group& group : groups) {
    GW_ASSIGN_OR_RETURN(std::vector<Literal> totals, ReduceMembers(call, group));
    for (size_t m = 0; m < group.size(); ++m) {
      std::vector<Value> values;
      for (const Literal& total : totals) {
        GW_ASSIGN_OR_RETURN(Literal part, PartOf(total, dim, m, group.size()));
        values.emplace_back(std::move(part));
      }
      results[group[m]] = AsResult(call.instruction.shape(), std::move(values));
    }
  }
  return results;
}

absl::StatusOr<PerDevice> AllGather(const LockstepCall& call) {
  GW_ASSIGN_OR_RETURN(std::vector<Group> groups, GroupsOf(call));
  int64_t dim = call.instruction.attr<hlo::CollectiveAttr>().dimension.value_or(0);
  PerDevice results(call.devices.size());
  for (const Group& group : groups) {
    std::vector<Value> values;
    for (const PerDevice& operand : call.operands) {
      std::vector<const Literal*> parts;
      for (size_t member : group) parts.push_back(&operand[member].array());
      values.emplace_back(Concatenated(parts, dim));
    }
    Value result = AsResult(call.instruction.shape(), std::move(values));
    for (size_t member : group) results[member] = result;
  }
  return results;
}

// With a dimension every operand is cut along it and the parts received are joined along it; without one, operand i is
// what goes to member i.
absl::StatusOr<PerDevice> AllToAll(const LockstepCall& call) {
  GW_ASSIGN_OR_RETURN(std::vector<Group> groups, GroupsOf(call));
  std::optional<int64_t> dim = call.instruction.attr<hlo::CollectiveAttr>().dimension;
  PerDevice results(call.devices.size());
  for (const Group& group : groups) {
    if (!dim.has_value() && group.size() != call.operands.size()) {
      return absl::InvalidArgumentError(absl::StrCat(call.operands.size(), " operands for groups of ", group.size()));
    }
    for (size_t m = 0; m < group.size(); ++m) {
      std::vector<Value> values;
      if (!dim.has_value()) {
        for (size_t from = 0; from < group.size(); ++from) values.push_back(call.operands[m][group[from]]);
        results[group[m]] = AsResult(call.instruction.shape(), std::move(values));
        continue;
      }
      for (const PerDevice& operand : call.operands) {
        std::vector<Literal> parts;
        for (size_t member : group) {
          GW_ASSIGN_OR_RETURN(Literal part, PartOf(operand[member].array(), *dim, m, group.size()));
          parts.push_back(std::move(part));
        }
        std::vector<const Literal*> pointers;
        for (const Literal& part : parts) pointers.push_back(&part);
        values.emplace_back(Concatenated(pointers, *dim));
      }
      results[group[m]] = AsResult(call.instruction.shape(), std::move(values));
    }
  }
  return results;
}

// Devices that receive nothing hold zeros.
absl::StatusOr<PerDevice> CollectivePermute(const LockstepCall& call) {
  IdKind kind = IdKindOf(call.instruction);
  int64_t ids = IdCount(call.interpreter, kind);
  std::vector<int64_t> place_of(call.interpreter.num_devices(), -1);
  for (size_t i = 0; i < call.devices.size(); ++i) place_of[call.devices[i]] = static_cast<int64_t>(i);
  std::vector<std::pair<int64_t, int64_t>> pairs = call.instruction.attr<hlo::CollectiveAttr>().source_target_pairs;
  std::vector<std::vector<Value>> received(call.devices.size());
  for (auto [source, target] : pairs) {
    if (source < 0 || target < 0 || source >= ids || target >= ids) {
      return absl::InvalidArgumentError(absl::StrCat("pair {", source, ",", target, "} of ", ids, " devices"));
    }
  }
  for (size_t place = 0; place < call.devices.size(); ++place) {
    int64_t device = call.devices[place];
    for (auto [source, target] : pairs) {
      int64_t from = place_of[DeviceOf(call.interpreter, kind, source, device)];
      int64_t to = place_of[DeviceOf(call.interpreter, kind, target, device)];
      if ((from < 0) != (to < 0)) {
        return absl::FailedPreconditionError(absl::StrCat("collective under divergent control flow: of pair {", source,
                                                          ",", target, "} only one takes part"));
      }
      if (to != static_cast<int64_t>(place)) continue;
      if (!received[place].empty()) return absl::InvalidArgumentError(absl::StrCat(target, " receives twice"));
      for (const PerDevice& operand : call.operands) received[place].push_back(operand[from]);
    }
    if (received[place].empty()) {
      for (const PerDevice& operand : call.operands) {
        received[place].emplace_back(Literal(WithoutLayout(operand[place].array().shape())));
      }
    }
  }
  PerDevice results;
  for (std::vector<Value>& values : received) results.push_back(AsResult(call.instruction.shape(), std::move(values)));
  return results;
}

absl::StatusOr<PerDevice> CollectiveBroadcast(const LockstepCall& call) {
  GW_ASSIGN_OR_RETURN(std::vector<Group> groups, GroupsOf(call));
  PerDevice results(call.devices.size());
  for (const Group& group : groups) {
    std::vector<Value> values;
    for (const PerDevice& operand : call.operands) values.push_back(operand[group.front()]);
    Value result = AsResult(call.instruction.shape(), std::move(values));
    for (size_t member : group) results[member] = result;
  }
  return results;
}

// (operand, result, context...) of the -start forms that return a tuple.
template <LockstepFunction kFunction>
absl::StatusOr<PerDevice> StartWithOperand(const LockstepCall& call) {
  const Shape& shape = call.instruction.shape();
  if (call.operands.size() != 1) return absl::UnimplementedError("asynchronous form with several operands");
  GW_ASSIGN_OR_RETURN(PerDevice results, kFunction(call));
  for (size_t d = 0; d < results.size(); ++d) {
    // The synchronous function saw a tuple shape and wrapped its one result.
    Value result = results[d].IsTuple() ? results[d].elements().front() : results[d];
    std::vector<Value> parts = {call.operands[0][d], result};
    for (size_t i = 2; i < shape.tuple().size(); ++i) {
      parts.push_back(Value::FromLiteral(Literal(WithoutLayout(shape.tuple()[i]))));
    }
    results[d] = Value::Tuple(std::move(parts));
  }
  return results;
}

absl::StatusOr<Value> Done(const Call& call) { return call.operands[0].elements()[1]; }
absl::StatusOr<Value> Identity(const Call& call) { return call.operands[0]; }

}  // namespace

void AddCollective(OpTable* table) {
  table->SetLockstep(Opcode::kAllReduce, AllReduce);
  table->SetLockstep(Opcode::kReduceScatter, ReduceScatter);
  table->SetLockstep(Opcode::kAllGather, AllGather);
  table->SetLockstep(Opcode::kAllToAll, AllToAll);
  table->SetLockstep(Opcode::kCollectivePermute, CollectivePermute);
  table->SetLockstep(Opcode::kCollectiveBroadcast, CollectiveBroadcast);
  table->SetLockstep(Opcode::kAllReduceStart, AllReduce);
  table->Set(Opcode::kAllReduceDone, Identity);
  table->SetLockstep(Opcode::kAllGatherStart, StartWithOperand<AllGather>);
  table->Set(Opcode::kAllGatherDone, Done);
  table->SetLockstep(Opcode::kCollectivePermuteStart, StartWithOperand<CollectivePermute>);
  table->Set(Opcode::kCollectivePermuteDone, Done);
  table->SetUnsupported(Opcode::kRaggedAllToAll, "sizes that only the data knows");
}

}  // namespace gangway::eval

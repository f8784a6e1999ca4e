#include "gangway/cost/collective_bytes.h"

#include <algorithm>

#include "gangway/hlo/replica_groups.h"

namespace gangway::cost {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Bytes on the wire: sub-byte types packed.
double WireBytes(const Shape& shape) {
  double bytes = 0;
  for (const Shape& leaf : Leaves(shape))
    bytes += static_cast<double>(leaf.ElementCount()) * BitWidth(leaf.dtype()) / 8;
  return bytes;
}

double OperandBytes(const Instruction& collective) {
  double bytes = 0;
  for (const Instruction* operand : collective.operands()) bytes += WireBytes(operand->shape());
  return bytes;
}

}  // namespace

std::optional<Opcode> CollectiveKind(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAllGatherStart:
      return Opcode::kAllGather;
    case Opcode::kAllReduceStart:
      return Opcode::kAllReduce;
    case Opcode::kCollectivePermuteStart:
      return Opcode::kCollectivePermute;
    default:
      if (hlo::IsCollective(opcode)) return opcode;
      return std::nullopt;
  }
}

CollectiveTraffic TrafficOf(const Instruction& collective, int64_t num_devices) {
  std::optional<Opcode> kind = CollectiveKind(collective.opcode());
  if (!kind.has_value()) return {};
  CollectiveTraffic traffic;
  double operands = OperandBytes(collective);
  if (*kind == Opcode::kCollectivePermute) {
    traffic.group_size = num_devices;
    traffic.bytes_received = num_devices > 1 ? operands : 0;
    return traffic;
  }
  traffic.group_size =
      std::max<int64_t>(1, hlo::LargestGroup(collective.attr<hlo::CollectiveAttr>().groups, num_devices));
  double n = static_cast<double>(traffic.group_size), part = (n - 1) / n;
  if (traffic.group_size == 1) return traffic;
  switch (*kind) {
    case Opcode::kAllGather:
      traffic.bytes_received = part * operands * n;
      break;
    case Opcode::kAllReduce:
      traffic.bytes_received = 2 * part * operands;
      break;
    case Opcode::kCollectiveBroadcast:
      traffic.bytes_received = operands;
      break;
    default:
      traffic.bytes_received = part * operands;
  }
  return traffic;
}

}  // namespace gangway::cost

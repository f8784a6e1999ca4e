#include "gangway/partition/localize/table.h"

#include <array>

#include "absl/strings/str_cat.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;
using hlo::Opcode;

struct Row {
  Localizer localizer = nullptr;
  absl::string_view unsupported;  // the reason
};

absl::Status RefuseOpcode(const Instruction& instruction, Context&) {
  return absl::UnimplementedError(
      absl::StrCat(hlo::OpcodeName(instruction.opcode()), ": ", UnsupportedReason(instruction.opcode())));
}

// Operations with a localizer of their own, and those that are refused. All others go by their rule.
Row SpecialRow(Opcode opcode) {
  switch (opcode) {
    case Opcode::kParameter:
      return {LocalizeParameter, ""};
    case Opcode::kConstant:
      return {LocalizeConstant, ""};
    case Opcode::kIota:
      return {LocalizeIota, ""};
    case Opcode::kRngBitGenerator:
      return {LocalizeRngBitGenerator, ""};
    case Opcode::kTuple:
      return {LocalizeTuple, ""};
    case Opcode::kGetTupleElement:
      return {LocalizeGetTupleElement, ""};
    case Opcode::kOptBarrier:
      return {LocalizeOptBarrier, ""};
    case Opcode::kAfterAll:
    case Opcode::kAddDependency:
    case Opcode::kDomain:
      return {LocalizeTokenOp, ""};
    case Opcode::kWhile:
      return {LocalizeWhile, ""};
    case Opcode::kConditional:
      return {LocalizeConditional, ""};
    case Opcode::kCall:
      return {LocalizeCall, ""};
    case Opcode::kCustomCall:
      return {LocalizeCustomCall, ""};
    case Opcode::kAllGather:
    case Opcode::kAllReduce:
    case Opcode::kAllToAll:
    case Opcode::kReduceScatter:
    case Opcode::kCollectivePermute:
    case Opcode::kCollectiveBroadcast:
      return {LocalizeCollective, ""};
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
      return {LocalizePartitionId, ""};
    case Opcode::kBroadcast:
      return {LocalizeBroadcast, ""};
    case Opcode::kReduce:
      return {LocalizeReduce, ""};
    case Opcode::kSlice:
      return {LocalizeSlice, ""};
    case Opcode::kPad:
      return {LocalizePad, ""};
    case Opcode::kReverse:
      return {LocalizeReverse, ""};
    case Opcode::kConcatenate:
      return {LocalizeConcatenate, ""};
    case Opcode::kConvolution:
      return {LocalizeConvolution, ""};
    case Opcode::kReduceWindow:
      return {LocalizeReduceWindow, ""};
    case Opcode::kSelectAndScatter:
      return {LocalizeSelectAndScatter, ""};
    case Opcode::kSort:
      return {LocalizeSort, ""};
    case Opcode::kTopK:
      return {LocalizeTopK, ""};
    case Opcode::kFft:
      return {LocalizeFft, ""};
    case Opcode::kDynamicSlice:
      return {LocalizeDynamicSlice, ""};
    case Opcode::kDynamicUpdateSlice:
      return {LocalizeDynamicUpdateSlice, ""};
    case Opcode::kGather:
      return {LocalizeGather, ""};
    case Opcode::kScatter:
      return {LocalizeScatter, ""};
    case Opcode::kAllGatherStart:
    case Opcode::kAllGatherDone:
    case Opcode::kAllReduceStart:
    case Opcode::kAllReduceDone:
    case Opcode::kCollectivePermuteStart:
    case Opcode::kCollectivePermuteDone:
    case Opcode::kAsyncStart:
    case Opcode::kAsyncUpdate:
    case Opcode::kAsyncDone:
    case Opcode::kCopyStart:
    case Opcode::kCopyDone:
      return {RefuseOpcode, "a split-phase operation belongs to a program that is partitioned already"};
    case Opcode::kSend:
    case Opcode::kSendDone:
    case Opcode::kRecv:
    case Opcode::kRecvDone:
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
      return {RefuseOpcode, "transfers to the host inside a program are not partitioned"};
    case Opcode::kRngGetAndUpdateState:
      return {RefuseOpcode, "hidden state of a device cannot be the same as that of one device"};
    default:
      return {LocalizeByRule, ""};
  }
}

const std::array<Row, hlo::kOpcodeCount>& Table() {
  static const std::array<Row, hlo::kOpcodeCount> table = [] {
    std::array<Row, hlo::kOpcodeCount> rows;
    for (const hlo::OpcodeInfo& info : hlo::AllOpcodes())
      rows[static_cast<size_t>(info.opcode)] = SpecialRow(info.opcode);
    return rows;
  }();
  return table;
}

}  // namespace

Localizer LocalizerOf(Opcode opcode) { return Table()[static_cast<size_t>(opcode)].localizer; }

absl::string_view UnsupportedReason(Opcode opcode) { return Table()[static_cast<size_t>(opcode)].unsupported; }

}  // namespace gangway::partition

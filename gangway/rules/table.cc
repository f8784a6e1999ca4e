// The table: one rule function an opcode.
#include <array>

#include "absl/strings/str_cat.h"
#include "gangway/rules/family.h"

namespace gangway::rules {
namespace {

using hlo::Opcode;

// By kind of transfer or wrapper: these appear after partitioning or carry values we do not look into.
OpRule AsyncRule(const hlo::Instruction&) {
  return Unsupported("an asynchronous operation, of partitioned programs only");
}
OpRule FusionRule(const hlo::Instruction&) { return Unsupported("a fusion, of optimized programs only"); }
OpRule ChannelRule(const hlo::Instruction&) { return Unsupported("talks to the host or another program"); }
OpRule DynamicShapeRule(const hlo::Instruction&) { return Unsupported("the shape is known at run time only"); }
OpRule DeviceIdRule(const hlo::Instruction&) { return Unsupported("differs from device to device"); }

constexpr std::array<RuleFunction, hlo::kOpcodeCount> MakeTable() {
  std::array<RuleFunction, hlo::kOpcodeCount> table{};
  auto set = [&](RuleFunction rule, std::initializer_list<Opcode> opcodes) {
    for (Opcode opcode : opcodes) table[static_cast<int>(opcode)] = rule;
  };
#define X(name, text, arity, trait) \
  if (hlo::OpTrait::trait == hlo::OpTrait::kElementwise) set(ElementwiseRule, {Opcode::name});
  GANGWAY_HLO_OPCODES(X)
#undef X
  set(ElementwiseRule, {Opcode::kClamp, Opcode::kMap});
  set(BitcastConvertRule, {Opcode::kBitcastConvert});
  set(ConstantRule, {Opcode::kConstant});
  set(BatchNormRule, {Opcode::kBatchNormTraining, Opcode::kBatchNormInference, Opcode::kBatchNormGrad});
  set(DotRule, {Opcode::kDot});
  set(RaggedDotRule, {Opcode::kRaggedDot});
  set(ConvolutionRule, {Opcode::kConvolution});
  set(ReduceWindowRule, {Opcode::kReduceWindow});
  set(SelectAndScatterRule, {Opcode::kSelectAndScatter});
  set(ReshapeRule, {Opcode::kReshape});
  set(BitcastRule, {Opcode::kBitcast});
  set(TransposeRule, {Opcode::kTranspose});
  set(BroadcastRule, {Opcode::kBroadcast});
  set(ReduceRule, {Opcode::kReduce});
  set(SliceRule, {Opcode::kSlice});
  set(PadRule, {Opcode::kPad});
  set(ConcatenateRule, {Opcode::kConcatenate});
  set(ReverseRule, {Opcode::kReverse});
  set(DynamicSliceRule, {Opcode::kDynamicSlice});
  set(DynamicUpdateSliceRule, {Opcode::kDynamicUpdateSlice});
  set(DimensionSizeRule, {Opcode::kGetDimensionSize, Opcode::kSetDimensionSize});
  set(DynamicShapeRule, {Opcode::kDynamicReshape});
  set(GatherRule, {Opcode::kGather});
  set(ScatterRule, {Opcode::kScatter});
  set(SortRule, {Opcode::kSort});
  set(TopKRule, {Opcode::kTopK});
  set(RngRule, {Opcode::kRng, Opcode::kRngGetAndUpdateState});
  set(RngBitGeneratorRule, {Opcode::kRngBitGenerator});
  set(IotaRule, {Opcode::kIota});
  set(CholeskyRule, {Opcode::kCholesky});
  set(TriangularSolveRule, {Opcode::kTriangularSolve});
  set(FftRule, {Opcode::kFft});
  set(CollectiveRule, {Opcode::kAllGather, Opcode::kAllReduce, Opcode::kAllToAll, Opcode::kCollectiveBroadcast,
                       Opcode::kCollectivePermute, Opcode::kRaggedAllToAll, Opcode::kReduceScatter});
  set(ControlRule, {Opcode::kParameter, Opcode::kTuple, Opcode::kGetTupleElement, Opcode::kOptBarrier, Opcode::kWhile,
                    Opcode::kConditional, Opcode::kCall, Opcode::kAfterAll, Opcode::kAddDependency, Opcode::kDomain});
  set(CustomCallRule, {Opcode::kCustomCall});
  set(AsyncRule, {Opcode::kAllGatherStart, Opcode::kAllGatherDone, Opcode::kAllReduceStart, Opcode::kAllReduceDone,
                  Opcode::kAsyncStart, Opcode::kAsyncUpdate, Opcode::kAsyncDone, Opcode::kCollectivePermuteStart,
                  Opcode::kCollectivePermuteDone, Opcode::kCopyStart, Opcode::kCopyDone});
  set(FusionRule, {Opcode::kFusion});
  set(ChannelRule,
      {Opcode::kInfeed, Opcode::kOutfeed, Opcode::kSend, Opcode::kSendDone, Opcode::kRecv, Opcode::kRecvDone});
  set(DeviceIdRule, {Opcode::kPartitionId, Opcode::kReplicaId});
  return table;
}

constexpr std::array<RuleFunction, hlo::kOpcodeCount> kTable = MakeTable();

// Completeness: an opcode added without a row does not compile.
constexpr bool IsComplete() {
  for (RuleFunction rule : kTable) {
    if (rule == nullptr) return false;
  }
  return true;
}
#ifndef __SANITIZE_ADDRESS__  // under its sanitizers gcc does not compare addresses of functions at compile time
static_assert(IsComplete(), "an opcode has no sharding rule: give it a row in MakeTable, if only an unsupported one");
#endif

// The product of the factors of a dimension never exceeds its extent, and all indices are in range.
absl::Status Check(const OpRule& rule, const hlo::Instruction& instruction) {
  for (const auto* values : {&rule.operands, &rule.results}) {
    for (const ValueFactors& value : *values) {
      for (const DimFactors& dim : value) {
        for (int factor : dim) {
          if (factor < 0 || factor >= static_cast<int>(rule.factors.size())) {
            return absl::InternalError(absl::StrCat("rule of ", instruction.name(), ": factor out of range"));
          }
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OpRule> RuleFor(const hlo::Instruction& instruction) {
  for (const hlo::Instruction* operand : instruction.operands()) {
    if (operand->shape().IsTuple() && kTable[static_cast<int>(instruction.opcode())] != ControlRule &&
        instruction.opcode() != Opcode::kCustomCall) {
      return Unsupported("an operand is a tuple");
    }
  }
  OpRule rule = kTable[static_cast<int>(instruction.opcode())](instruction);
  absl::Status valid = Check(rule, instruction);
  if (!valid.ok()) return valid;
  return rule;
}

}  // namespace gangway::rules

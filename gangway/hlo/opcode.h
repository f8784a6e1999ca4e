// The operations of the IR: one table of name, operand count and traits; names and meaning are XLA HLO's.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace gangway::hlo {

// X(enumerator, text name, operand count or -1 for a varying one, trait)
// Elementwise: result element i depends on element i of each operand only (scalars of select's predicate aside).
// clang-format off
#define GANGWAY_HLO_OPCODES(X) \
  X(kAbs, "abs", 1, kElementwise) \
  X(kAdd, "add", 2, kElementwise) \
  X(kAddDependency, "add-dependency", 2, kNone) \
  X(kAfterAll, "after-all", -1, kNone) \
  X(kAllGather, "all-gather", -1, kCollective) \
  X(kAllGatherDone, "all-gather-done", 1, kNone) \
  X(kAllGatherStart, "all-gather-start", -1, kNone) \
  X(kAllReduce, "all-reduce", -1, kCollective) \
  X(kAllReduceDone, "all-reduce-done", 1, kNone) \
  X(kAllReduceStart, "all-reduce-start", -1, kNone) \
  X(kAllToAll, "all-to-all", -1, kCollective) \
  X(kAnd, "and", 2, kElementwise) \
  X(kAsyncDone, "async-done", 1, kNone) \
  X(kAsyncStart, "async-start", -1, kNone) \
  X(kAsyncUpdate, "async-update", 1, kNone) \
  X(kAtan2, "atan2", 2, kElementwise) \
  X(kBatchNormGrad, "batch-norm-grad", 5, kNone) \
  X(kBatchNormInference, "batch-norm-inference", 5, kNone) \
  X(kBatchNormTraining, "batch-norm-training", 3, kNone) \
  X(kBitcast, "bitcast", 1, kNone) \
  X(kBitcastConvert, "bitcast-convert", 1, kNone) \
  X(kBroadcast, "broadcast", 1, kNone) \
  X(kCall, "call", -1, kNone) \
  X(kCbrt, "cbrt", 1, kElementwise) \
  X(kCeil, "ceil", 1, kElementwise) \
  X(kCholesky, "cholesky", 1, kNone) \
  X(kClamp, "clamp", 3, kNone) \
  X(kCollectiveBroadcast, "collective-broadcast", -1, kCollective) \
  X(kCollectivePermute, "collective-permute", -1, kCollective) \
  X(kCollectivePermuteDone, "collective-permute-done", 1, kNone) \
  X(kCollectivePermuteStart, "collective-permute-start", -1, kNone) \
  X(kCompare, "compare", 2, kElementwise) \
  X(kComplex, "complex", 2, kElementwise) \
  X(kConcatenate, "concatenate", -1, kNone) \
  X(kConditional, "conditional", -1, kNone) \
  X(kConstant, "constant", 0, kNone) \
  X(kConvert, "convert", 1, kElementwise) \
  X(kConvolution, "convolution", 2, kNone) \
  X(kCopy, "copy", 1, kElementwise) \
  X(kCopyDone, "copy-done", 1, kNone) \
  X(kCopyStart, "copy-start", 1, kNone) \
  X(kCosine, "cosine", 1, kElementwise) \
  X(kCountLeadingZeros, "count-leading-zeros", 1, kElementwise) \
  X(kCustomCall, "custom-call", -1, kNone) \
  X(kDivide, "divide", 2, kElementwise) \
  X(kDomain, "domain", 1, kNone) \
  X(kDot, "dot", 2, kNone) \
  X(kDynamicReshape, "dynamic-reshape", -1, kNone) \
  X(kDynamicSlice, "dynamic-slice", -1, kNone) \
  X(kDynamicUpdateSlice, "dynamic-update-slice", -1, kNone) \
  X(kErf, "erf", 1, kElementwise) \
  X(kExponential, "exponential", 1, kElementwise) \
  X(kExponentialMinusOne, "exponential-minus-one", 1, kElementwise) \
  X(kFft, "fft", 1, kNone) \
  X(kFloor, "floor", 1, kElementwise) \
  X(kFusion, "fusion", -1, kNone) \
  X(kGather, "gather", 2, kNone) \
  X(kGetDimensionSize, "get-dimension-size", 1, kNone) \
  X(kGetTupleElement, "get-tuple-element", 1, kNone) \
  X(kImag, "imag", 1, kElementwise) \
  X(kInfeed, "infeed", 1, kNone) \
  X(kIota, "iota", 0, kNone) \
  X(kIsFinite, "is-finite", 1, kElementwise) \
  X(kLog, "log", 1, kElementwise) \
  X(kLogPlusOne, "log-plus-one", 1, kElementwise) \
  X(kLogistic, "logistic", 1, kElementwise) \
  X(kMap, "map", -1, kNone) \
  X(kMaximum, "maximum", 2, kElementwise) \
  X(kMinimum, "minimum", 2, kElementwise) \
  X(kMultiply, "multiply", 2, kElementwise) \
  X(kNegate, "negate", 1, kElementwise) \
  X(kNot, "not", 1, kElementwise) \
  X(kOptBarrier, "opt-barrier", 1, kNone) \
  X(kOr, "or", 2, kElementwise) \
  X(kOutfeed, "outfeed", 2, kNone) \
  X(kPad, "pad", 2, kNone) \
  X(kParameter, "parameter", 0, kNone) \
  X(kPartitionId, "partition-id", 0, kNone) \
  X(kPopulationCount, "popcnt", 1, kElementwise) \
  X(kPower, "power", 2, kElementwise) \
  X(kRaggedAllToAll, "ragged-all-to-all", -1, kCollective) \
  X(kRaggedDot, "ragged-dot", 3, kNone) \
  X(kReal, "real", 1, kElementwise) \
  X(kRecv, "recv", 1, kNone) \
  X(kRecvDone, "recv-done", 1, kNone) \
  X(kReduce, "reduce", -1, kNone) \
  X(kReducePrecision, "reduce-precision", 1, kElementwise) \
  X(kReduceScatter, "reduce-scatter", -1, kCollective) \
  X(kReduceWindow, "reduce-window", -1, kNone) \
  X(kRemainder, "remainder", 2, kElementwise) \
  X(kReplicaId, "replica-id", 0, kNone) \
  X(kReshape, "reshape", 1, kNone) \
  X(kReverse, "reverse", 1, kNone) \
  X(kRng, "rng", -1, kNone) \
  X(kRngBitGenerator, "rng-bit-generator", 1, kNone) \
  X(kRngGetAndUpdateState, "rng-get-and-update-state", 0, kNone) \
  X(kRoundNearestAfz, "round-nearest-afz", 1, kElementwise) \
  X(kRoundNearestEven, "round-nearest-even", 1, kElementwise) \
  X(kRsqrt, "rsqrt", 1, kElementwise) \
  X(kScatter, "scatter", -1, kNone) \
  X(kSelect, "select", 3, kElementwise) \
  X(kSelectAndScatter, "select-and-scatter", 3, kNone) \
  X(kSend, "send", 2, kNone) \
  X(kSendDone, "send-done", 1, kNone) \
  X(kSetDimensionSize, "set-dimension-size", 2, kNone) \
  X(kShiftLeft, "shift-left", 2, kElementwise) \
  X(kShiftRightArithmetic, "shift-right-arithmetic", 2, kElementwise) \
  X(kShiftRightLogical, "shift-right-logical", 2, kElementwise) \
  X(kSign, "sign", 1, kElementwise) \
  X(kSine, "sine", 1, kElementwise) \
  X(kSlice, "slice", 1, kNone) \
  X(kSort, "sort", -1, kNone) \
  X(kSqrt, "sqrt", 1, kElementwise) \
  X(kStochasticConvert, "stochastic-convert", 2, kElementwise) \
  X(kSubtract, "subtract", 2, kElementwise) \
  X(kTan, "tan", 1, kElementwise) \
  X(kTanh, "tanh", 1, kElementwise) \
  X(kTopK, "topk", 1, kNone) \
  X(kTranspose, "transpose", 1, kNone) \
  X(kTriangularSolve, "triangular-solve", 2, kNone) \
  X(kTuple, "tuple", -1, kNone) \
  X(kWhile, "while", 1, kNone) \
  X(kXor, "xor", 2, kElementwise)
// clang-format on

enum class Opcode : uint8_t {
#define X(name, text, arity, trait) name,
  GANGWAY_HLO_OPCODES(X)
#undef X
};

enum class OpTrait : uint8_t { kNone, kElementwise, kCollective };

struct OpcodeInfo {
  Opcode opcode;
  absl::string_view name;  // "reduce-scatter"
  int arity;               // -1: varies
  OpTrait trait;
};

absl::Span<const OpcodeInfo> AllOpcodes();
const OpcodeInfo& InfoOf(Opcode opcode);
std::optional<Opcode> ParseOpcode(absl::string_view name);

inline constexpr int kOpcodeCount = 0
#define X(name, text, arity, trait) +1
    GANGWAY_HLO_OPCODES(X)
#undef X
    ;

inline absl::string_view OpcodeName(Opcode opcode) { return InfoOf(opcode).name; }
inline bool IsElementwise(Opcode opcode) { return InfoOf(opcode).trait == OpTrait::kElementwise; }
inline bool IsCollective(Opcode opcode) { return InfoOf(opcode).trait == OpTrait::kCollective; }

}  // namespace gangway::hlo

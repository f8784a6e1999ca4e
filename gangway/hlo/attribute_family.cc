#include "gangway/hlo/attribute_family.h"

#include <type_traits>
#include <utility>

namespace gangway::hlo {
namespace {

template <typename T, size_t... I>
constexpr size_t IndexIn(std::index_sequence<I...>) {
  size_t index = 0;
  ((std::is_same_v<T, std::variant_alternative_t<I, Attributes>> ? (index = I, 0) : 0), ...);
  return index;
}

template <typename T>
constexpr size_t kIndexOf = IndexIn<T>(std::make_index_sequence<std::variant_size_v<Attributes>>());

}  // namespace

size_t AttributeIndexOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kBroadcast:
    case Opcode::kConcatenate:
    case Opcode::kIota:
    case Opcode::kMap:
    case Opcode::kReduce:
    case Opcode::kReverse:
    case Opcode::kTranspose:
      return kIndexOf<DimensionsAttr>;
    case Opcode::kGetDimensionSize:
    case Opcode::kSetDimensionSize:
      return kIndexOf<DimensionAttr>;
    case Opcode::kParameter:
      return kIndexOf<ParameterAttr>;
    case Opcode::kConstant:
      return kIndexOf<ConstantAttr>;
    case Opcode::kGetTupleElement:
      return kIndexOf<TupleIndexAttr>;
    case Opcode::kSlice:
      return kIndexOf<SliceAttr>;
    case Opcode::kDynamicSlice:
      return kIndexOf<DynamicSliceAttr>;
    case Opcode::kPad:
      return kIndexOf<PadAttr>;
    case Opcode::kDot:
      return kIndexOf<DotAttr>;
    case Opcode::kReduceWindow:
    case Opcode::kSelectAndScatter:
      return kIndexOf<WindowAttr>;
    case Opcode::kConvolution:
      return kIndexOf<ConvolutionAttr>;
    case Opcode::kGather:
      return kIndexOf<GatherAttr>;
    case Opcode::kScatter:
      return kIndexOf<ScatterAttr>;
    case Opcode::kCompare:
      return kIndexOf<CompareAttr>;
    case Opcode::kSort:
      return kIndexOf<SortAttr>;
    case Opcode::kTopK:
      return kIndexOf<TopKAttr>;
    case Opcode::kAllGather:
    case Opcode::kAllGatherStart:
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
    case Opcode::kAllToAll:
    case Opcode::kCollectiveBroadcast:
    case Opcode::kCollectivePermute:
    case Opcode::kCollectivePermuteStart:
    case Opcode::kRaggedAllToAll:
    case Opcode::kReduceScatter:
      return kIndexOf<CollectiveAttr>;
    case Opcode::kCustomCall:
      return kIndexOf<CustomCallAttr>;
    case Opcode::kRng:
      return kIndexOf<RngAttr>;
    case Opcode::kRngBitGenerator:
      return kIndexOf<RngBitGeneratorAttr>;
    case Opcode::kRngGetAndUpdateState:
      return kIndexOf<RngStateAttr>;
    case Opcode::kFft:
      return kIndexOf<FftAttr>;
    case Opcode::kTriangularSolve:
      return kIndexOf<TriangularSolveAttr>;
    case Opcode::kCholesky:
      return kIndexOf<CholeskyAttr>;
    case Opcode::kBatchNormGrad:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormTraining:
      return kIndexOf<BatchNormAttr>;
    case Opcode::kReducePrecision:
      return kIndexOf<ReducePrecisionAttr>;
    case Opcode::kFusion:
      return kIndexOf<FusionAttr>;
    case Opcode::kSend:
    case Opcode::kSendDone:
    case Opcode::kRecv:
    case Opcode::kRecvDone:
      return kIndexOf<ChannelAttr>;
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
      return kIndexOf<FeedAttr>;
    default:
      return 0;
  }
}

}  // namespace gangway::hlo

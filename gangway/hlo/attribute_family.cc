#include "gangway/hlo/attribute_family.h"

namespace gangway::hlo {

size_t AttributeIndexOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kBroadcast:
    case Opcode::kConcatenate:
    case Opcode::kIota:
    case Opcode::kMap:
    case Opcode::kReduce:
    case Opcode::kReverse:
    case Opcode::kTranspose:
      return kAttributeIndex<DimensionsAttr>;
    case Opcode::kGetDimensionSize:
    case Opcode::kSetDimensionSize:
      return kAttributeIndex<DimensionAttr>;
    case Opcode::kParameter:
      return kAttributeIndex<ParameterAttr>;
    case Opcode::kConstant:
      return kAttributeIndex<ConstantAttr>;
    case Opcode::kGetTupleElement:
      return kAttributeIndex<TupleIndexAttr>;
    case Opcode::kSlice:
      return kAttributeIndex<SliceAttr>;
    case Opcode::kDynamicSlice:
      return kAttributeIndex<DynamicSliceAttr>;
    case Opcode::kPad:
      return kAttributeIndex<PadAttr>;
    case Opcode::kDot:
      return kAttributeIndex<DotAttr>;
    case Opcode::kReduceWindow:
    case Opcode::kSelectAndScatter:
      return kAttributeIndex<WindowAttr>;
    case Opcode::kConvolution:
      return kAttributeIndex<ConvolutionAttr>;
    case Opcode::kGather:
      return kAttributeIndex<GatherAttr>;
    case Opcode::kScatter:
      return kAttributeIndex<ScatterAttr>;
    case Opcode::kCompare:
      return kAttributeIndex<CompareAttr>;
    case Opcode::kSort:
      return kAttributeIndex<SortAttr>;
    case Opcode::kTopK:
      return kAttributeIndex<TopKAttr>;
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
      return kAttributeIndex<CollectiveAttr>;
    case Opcode::kCustomCall:
      return kAttributeIndex<CustomCallAttr>;
    case Opcode::kRng:
      return kAttributeIndex<RngAttr>;
    case Opcode::kRngBitGenerator:
      return kAttributeIndex<RngBitGeneratorAttr>;
    case Opcode::kRngGetAndUpdateState:
      return kAttributeIndex<RngStateAttr>;
    case Opcode::kFft:
      return kAttributeIndex<FftAttr>;
    case Opcode::kTriangularSolve:
      return kAttributeIndex<TriangularSolveAttr>;
    case Opcode::kCholesky:
      return kAttributeIndex<CholeskyAttr>;
    case Opcode::kBatchNormGrad:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormTraining:
      return kAttributeIndex<BatchNormAttr>;
    case Opcode::kReducePrecision:
      return kAttributeIndex<ReducePrecisionAttr>;
    case Opcode::kFusion:
      return kAttributeIndex<FusionAttr>;
    case Opcode::kSend:
    case Opcode::kSendDone:
    case Opcode::kRecv:
    case Opcode::kRecvDone:
      return kAttributeIndex<ChannelAttr>;
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
      return kAttributeIndex<FeedAttr>;
    default:
      return 0;
  }
}

}  // namespace gangway::hlo

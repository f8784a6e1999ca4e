#include "gangway/cost/operation_cost.h"

#include <algorithm>

#include "gangway/hlo/computation.h"
#include "gangway/hlo/halves.h"

namespace gangway::cost {
namespace {

using hlo::Instruction;
using hlo::Opcode;

double Elements(const Shape& shape) { return static_cast<double>(shape.ElementCount()); }

double DotFlops(const Instruction& dot) {
  double contracted = 1;
  for (int64_t dim : dot.attr<hlo::DotAttr>().lhs_contracting) contracted *= dot.operand(0)->shape().dim(dim);
  return 2 * Elements(dot.shape()) * contracted;
}

double ConvolutionFlops(const Instruction& convolution) {
  const auto& attr = convolution.attr<hlo::ConvolutionAttr>();
  const Shape& kernel = convolution.operand(1)->shape();
  double taps = kernel.dim(attr.kernel_input_feature);
  for (int64_t dim : attr.kernel_spatial) taps *= kernel.dim(dim);
  double dilation = 1;  // of the taps of a dilated input only one in so many meets an element
  for (const hlo::WindowDim& dim : attr.window) dilation *= dim.base_dilation;
  return 2 * Elements(convolution.shape()) * taps / dilation;
}

double WindowSize(const hlo::Window& window) {
  double size = 1;
  for (const hlo::WindowDim& dim : window) size *= dim.size;
  return size;
}

// Arithmetic of a scalar function, once.
double ScalarFlops(const hlo::Computation& computation) {
  double flops = 0;
  for (const auto& instruction : computation.instructions()) flops += hlo::IsElementwise(instruction->opcode());
  return flops;
}

double Flops(const Instruction& i) {
  if (i.opcode() == Opcode::kCopy) return 0;
  if (hlo::IsElementwise(i.opcode()) || i.opcode() == Opcode::kClamp) return Elements(i.shape());
  switch (i.opcode()) {
    case Opcode::kReduce:
      return Elements(i.operand(0)->shape()) * ScalarFlops(*i.called()[0]);
    case Opcode::kReduceWindow: {
      const Shape& result = i.shape().IsTuple() ? i.shape().tuple()[0] : i.shape();
      return Elements(result) * WindowSize(i.attr<hlo::WindowAttr>().window) * ScalarFlops(*i.called()[0]);
    }
    case Opcode::kSelectAndScatter:
      return Elements(i.operand(1)->shape()) * (WindowSize(i.attr<hlo::WindowAttr>().window) + 1);
    case Opcode::kScatter:
      return Elements(i.operand(i.operand_count() - 1)->shape()) * ScalarFlops(*i.called()[0]);
    case Opcode::kMap:
      return Elements(i.shape()) * ScalarFlops(*i.called()[0]);
    case Opcode::kAllReduce:
    case Opcode::kReduceScatter:
      return Elements(i.operand(0)->shape());
    case Opcode::kTriangularSolve:
      return Elements(i.shape()) * i.operand(0)->shape().dims().back();
    case Opcode::kCholesky:
      return Elements(i.shape()) * i.shape().dims().back() / 3;
    default:
      return 0;
  }
}

// Slices and updates touch the block, not the array it lies in.
double Bytes(const Instruction& i) {
  double result = static_cast<double>(i.shape().ByteSize());
  switch (i.opcode()) {
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
    case Opcode::kGather:
      return 2 * result;
    case Opcode::kDynamicUpdateSlice:
      return 2 * static_cast<double>(i.operand(1)->shape().ByteSize());
    case Opcode::kScatter:
      return 3 * static_cast<double>(i.operand(i.operand_count() - 1)->shape().ByteSize());
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
    case Opcode::kFusion:
      return 0;
    default:
      break;
  }
  for (const Instruction* operand : i.operands()) result += static_cast<double>(operand->shape().ByteSize());
  return result;
}

}  // namespace

bool IsAlias(Opcode opcode) {
  if (hlo::IsDone(opcode)) return true;
  switch (opcode) {
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
    case Opcode::kBitcast:
    case Opcode::kReshape:
    case Opcode::kOptBarrier:
    case Opcode::kAddDependency:
    case Opcode::kDomain:
    case Opcode::kAfterAll:
    case Opcode::kAsyncUpdate:
    case Opcode::kCopyDone:
      return true;
    default:
      return false;
  }
}

OperationCost CostOf(const Instruction& instruction) {
  OperationCost cost;
  Opcode opcode = instruction.opcode();
  if (IsAlias(opcode) || opcode == Opcode::kParameter || opcode == Opcode::kConstant) return cost;
  if (opcode == Opcode::kDot) cost.matmul_flops = DotFlops(instruction);
  if (opcode == Opcode::kConvolution) cost.matmul_flops = ConvolutionFlops(instruction);
  cost.flops = cost.matmul_flops + Flops(instruction);
  cost.bytes = Bytes(instruction);
  return cost;
}

}  // namespace gangway::cost

// reduce-window, select-and-scatter.
#include <algorithm>

#include "gangway/base/status.h"
#include "gangway/eval/op_table.h"
#include "gangway/eval/scalar_function.h"
#include "gangway/eval/strided.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;

constexpr int64_t kPadding = -1;

DimVector SizesOf(const hlo::Window& window) {
  DimVector sizes;
  for (const hlo::WindowDim& dim : window) sizes.push_back(dim.size);
  return sizes;
}

// Where each output position of a window finds its element at `offset` inside the window: the linear index in the
// operand, or kPadding.
std::vector<int64_t> ElementsAt(const hlo::Window& window, const DimVector& offset, const DimVector& operand_dims,
                                const DimVector& output_dims) {
  DimVector strides = Strides(operand_dims), index(output_dims.size(), 0);
  std::vector<int64_t> elements;
  int64_t count = CountOf(output_dims);
  elements.reserve(count);
  for (int64_t i = 0; i < count; ++i, Next(output_dims, &index)) {
    int64_t element = 0;
    for (size_t d = 0; d < window.size() && element != kPadding; ++d) {
      const hlo::WindowDim& dim = window[d];
      int64_t at = index[d] * dim.stride + offset[d] * dim.window_dilation - dim.pad_low;
      bool inside = at >= 0 && at % dim.base_dilation == 0 && at / dim.base_dilation < operand_dims[d];
      element = inside ? element + at / dim.base_dilation * strides[d] : kPadding;
    }
    elements.push_back(element);
  }
  return elements;
}

// Lanes of `x` at `elements`, the scalar `init` where there is none.
Literal GatherOrInit(const Literal& x, const std::vector<int64_t>& elements, const Literal& init) {
  size_t width = ByteWidth(x.shape().dtype());
  Literal result(Shape(x.shape().dtype(), {static_cast<int64_t>(elements.size())}));
  for (size_t i = 0; i < elements.size(); ++i) {
    const char* from = elements[i] == kPadding ? init.data() : x.data() + elements[i] * width;
    std::memcpy(result.data() + i * width, from, width);
  }
  return result;
}

absl::StatusOr<Value> ReduceWindow(const Call& call) {
  const hlo::Window& window = call.attr<hlo::WindowAttr>().window;
  std::vector<Shape> shapes = call.shape().IsTuple() ? call.shape().tuple() : std::vector<Shape>{call.shape()};
  int64_t operands = static_cast<int64_t>(shapes.size()), lanes = shapes.front().ElementCount();
  DimVector sizes = SizesOf(window), offset(sizes.size(), 0);
  std::vector<Literal> totals;
  for (int64_t i = 0; i < operands; ++i) {
    totals.push_back(GatherLanes(call.array(operands + i), std::vector<int64_t>(lanes, 0)));
  }
  if (CountOf(sizes) > 0 && lanes > 0) {
    do {
      std::vector<int64_t> elements = ElementsAt(window, offset, call.array(0).shape().dims(), shapes.front().dims());
      std::vector<Literal> arguments = std::move(totals);
      for (int64_t i = 0; i < operands; ++i) {
        arguments.push_back(GatherOrInit(call.array(i), elements, call.array(operands + i)));
      }
      GW_ASSIGN_OR_RETURN(
          totals, ApplyToLanes(call.interpreter, *call.instruction.called().front(), lanes, std::move(arguments)));
    } while (Next(sizes, &offset));
  }
  std::vector<Value> values;
  for (int64_t i = 0; i < operands; ++i) {
    values.emplace_back(Literal(WithoutLayout(shapes[i]), {totals[i].bytes().begin(), totals[i].bytes().end()}));
  }
  return call.shape().IsTuple() ? Value::Tuple(std::move(values)) : values.front();
}

// For every window the operand element that `select` keeps: the running choice stays while select(choice, candidate).
absl::StatusOr<std::vector<int64_t>> Selected(const Call& call, const DimVector& windows) {
  const hlo::Window& window = call.attr<hlo::WindowAttr>().window;
  const Literal& x = call.array(0);
  int64_t lanes = CountOf(windows);
  DimVector sizes = SizesOf(window), offset(sizes.size(), 0);
  std::vector<int64_t> chosen(lanes, kPadding);
  if (lanes == 0 || CountOf(sizes) == 0) return chosen;
  do {
    std::vector<int64_t> candidates = ElementsAt(window, offset, x.shape().dims(), windows);
    std::vector<int64_t> left = chosen, right = candidates;
    for (int64_t i = 0; i < lanes; ++i) {  // any element will do where one side is missing
      left[i] = std::max<int64_t>(left[i], 0);
      right[i] = std::max<int64_t>(right[i], 0);
    }
    GW_ASSIGN_OR_RETURN(std::vector<Literal> keep, ApplyToLanes(call.interpreter, *call.instruction.called()[0], lanes,
                                                                {GatherLanes(x, left), GatherLanes(x, right)}));
    for (int64_t i = 0; i < lanes; ++i) {
      if (candidates[i] == kPadding) continue;
      if (chosen[i] == kPadding || keep.front().data()[i] == 0) chosen[i] = candidates[i];
    }
  } while (Next(sizes, &offset));
  return chosen;
}

absl::StatusOr<Value> SelectAndScatter(const Call& call) {
  const Literal &source = call.array(1), &init = call.array(2);
  GW_ASSIGN_OR_RETURN(std::vector<int64_t> targets, Selected(call, source.shape().dims()));
  size_t width = init.bytes().size();
  Literal result(WithoutLayout(call.shape()));
  for (size_t i = 0; i < result.bytes().size(); i += width) std::memcpy(result.data() + i, init.data(), width);
  // Windows may choose the same element: one after the other.
  for (int64_t i = 0; i < static_cast<int64_t>(targets.size()); ++i) {
    if (targets[i] == kPadding) continue;
    std::vector<int64_t> target = {targets[i]};
    GW_ASSIGN_OR_RETURN(std::vector<Literal> combined,
                        ApplyToLanes(call.interpreter, *call.instruction.called()[1], 1,
                                     {GatherLanes(result, target), GatherLanes(source, {i})}));
    std::memcpy(result.data() + targets[i] * width, combined.front().data(), width);
  }
  return Value(std::move(result));
}

}  // namespace

void AddWindow(OpTable* table) {
  table->Set(Opcode::kReduceWindow, ReduceWindow);
  table->Set(Opcode::kSelectAndScatter, SelectAndScatter);
}

}  // namespace gangway::eval

#include "gangway/eval/scan_call.h"

#include <cstring>
#include <utility>

#include "gangway/base/status.h"
#include "gangway/eval/scalar_function.h"
#include "gangway/eval/strided.h"

namespace gangway::eval {
namespace {

// Linear indices of the elements at place `at` of a dimension.
std::vector<int64_t> ElementsAt(const DimVector& dims, int64_t dim, int64_t at) {
  DimVector others = dims;
  others[dim] = 1;
  const DimVector strides = Strides(dims);
  std::vector<int64_t> elements(CountOf(others));
  ForEach(others, at * strides[dim], strides, [&](int64_t i, int64_t element) { elements[i] = element; });
  return elements;
}

void Scatter(const Literal& lanes, const std::vector<int64_t>& elements, Literal* into) {
  const size_t width = ByteWidth(into->shape().dtype());
  for (size_t i = 0; i < elements.size(); ++i) {
    std::memcpy(into->data() + elements[i] * width, lanes.data() + i * width, width);
  }
}

}  // namespace

absl::StatusOr<Value> EvaluateScan(Interpreter& interpreter, const hlo::Instruction& scan, int64_t dim,
                                   absl::Span<const Value> operands) {
  const DimVector dims = operands[0].array().shape().dims();
  std::vector<Literal> running, results;
  for (const Value& operand : operands) results.emplace_back(WithoutLayout(operand.array().shape()));
  for (int64_t at = 0; at < dims[dim]; ++at) {
    const std::vector<int64_t> elements = ElementsAt(dims, dim, at);
    const int64_t lanes = static_cast<int64_t>(elements.size());
    std::vector<Literal> arguments = std::move(running);
    for (const Value& operand : operands) arguments.push_back(GatherLanes(operand.array(), elements));
    if (at == 0) {
      running = std::move(arguments);
    } else {
      GW_ASSIGN_OR_RETURN(running, ApplyToLanes(interpreter, *scan.called()[0], lanes, std::move(arguments)));
    }
    for (size_t i = 0; i < results.size(); ++i) Scatter(running[i], elements, &results[i]);
  }
  std::vector<Value> values;
  for (Literal& result : results) values.emplace_back(std::move(result));
  return values.size() == 1 ? values.front() : Value::Tuple(std::move(values));
}

}  // namespace gangway::eval

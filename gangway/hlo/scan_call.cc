#include "gangway/hlo/scan_call.h"

#include "absl/strings/numbers.h"
#include "gangway/hlo/computation.h"

namespace gangway::hlo {
namespace {

bool IsScalar(const Shape& shape, DType dtype) {
  return shape.IsArray() && shape.rank() == 0 && shape.dtype() == dtype;
}

}  // namespace

std::optional<int64_t> ScanDimension(const Instruction& instruction) {
  const auto* call = instruction.attr_if<CustomCallAttr>();
  if (call == nullptr || call->target != kScanCall || instruction.called().size() != 1) return std::nullopt;
  const Computation& combiner = *instruction.called()[0];
  const size_t arrays = instruction.operands().size();
  int64_t dim = -1;
  if (!absl::SimpleAtoi(call->backend_config, &dim) || arrays == 0) return std::nullopt;
  const std::vector<Shape> results = Leaves(instruction.shape()), combined = Leaves(combiner.root()->shape());
  if (combiner.parameters().size() != 2 * arrays || results.size() != arrays || combined.size() != arrays) {
    return std::nullopt;
  }
  for (size_t i = 0; i < arrays; ++i) {
    const Shape& shape = instruction.operand(static_cast<int64_t>(i))->shape();
    if (!shape.IsArray() || shape.dims() != instruction.operand(0)->shape().dims()) return std::nullopt;
    if (dim < 0 || dim >= shape.rank() || !Shape::Compatible(results[i], shape)) return std::nullopt;
    const bool scalars = IsScalar(combined[i], shape.dtype()) &&
                         IsScalar(combiner.parameters()[i]->shape(), shape.dtype()) &&
                         IsScalar(combiner.parameters()[i + arrays]->shape(), shape.dtype());
    if (!scalars) return std::nullopt;
  }
  return dim;
}

}  // namespace gangway::hlo

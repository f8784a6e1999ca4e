#include "gangway/eval/lapack_call.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gangway/base/status.h"

namespace gangway::eval {
namespace {

// The last two dimensions exchanged in memory: row-major to column-major matrices, or back when `back`.
Literal Transposed(const Literal& literal, bool back) {
  const DimVector& dims = literal.shape().dims();
  const int64_t rows = dims[dims.size() - 2], columns = dims.back(), width = ByteWidth(literal.shape().dtype());
  Literal result(literal.shape());
  for (int64_t at = 0; at < static_cast<int64_t>(literal.bytes().size()); at += rows * columns * width) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t row_major = at + (i * columns + j) * width, column_major = at + (j * rows + i) * width;
        std::memcpy(result.data() + (back ? row_major : column_major),
                    literal.data() + (back ? column_major : row_major), width);
      }
    }
  }
  return result;
}

bool IsColumnMajor(const Shape& shape) {
  return shape.rank() >= 2 && shape.layout() && shape.layout()->minor_to_major.front() == shape.rank() - 2;
}

// Numbers of `{uplo = 76 : ui8, left = true}`.
lapack::Attributes NumbersOf(absl::string_view config) {
  lapack::Attributes attributes;
  for (absl::string_view entry : absl::StrSplit(config, absl::ByAnyChar("{},"), absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(entry, absl::MaxSplits(" = ", 1));
    const absl::string_view text = pair.second.substr(0, pair.second.find(' '));
    int64_t value = text == "true" ? 1 : 0;
    if (text != "true" && text != "false" && !absl::SimpleAtoi(text, &value)) continue;
    attributes.emplace_back(absl::StripAsciiWhitespace(pair.first), value);
  }
  return attributes;
}

lapack::Array ArrayOf(Literal& literal) { return {literal.shape().dtype(), literal.shape().dims(), literal.data()}; }

}  // namespace

absl::StatusOr<Value> EvaluateLapackCall(const lapack::Routine& routine, const hlo::Instruction& instruction,
                                         absl::Span<const Value> operands) {
  const auto& attr = instruction.attr<hlo::CustomCallAttr>();
  std::vector<Literal> inputs, outputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].IsTuple()) return absl::InvalidArgumentError(absl::StrCat(routine.target, " of a tuple"));
    const bool column_major = attr.operand_shapes_with_layout && IsColumnMajor((*attr.operand_shapes_with_layout)[i]);
    inputs.push_back(column_major ? Transposed(operands[i].array(), false) : operands[i].array());
  }
  const std::vector<Shape> leaves = Leaves(instruction.shape());
  for (const Shape& leaf : leaves) outputs.emplace_back(WithoutLayout(leaf));
  lapack::Call call;
  for (Literal& input : inputs) call.operands.push_back(ArrayOf(input));
  for (Literal& output : outputs) call.results.push_back(ArrayOf(output));
  call.attributes = NumbersOf(attr.backend_config);
  GW_RETURN_IF_ERROR_WITH(routine.run(call), routine.target);
  std::vector<Value> results;
  for (size_t i = 0; i < leaves.size(); ++i) {
    results.emplace_back(IsColumnMajor(leaves[i]) ? Transposed(outputs[i], true) : std::move(outputs[i]));
  }
  return instruction.shape().IsTuple() ? Value::Tuple(std::move(results)) : results.front();
}

}  // namespace gangway::eval

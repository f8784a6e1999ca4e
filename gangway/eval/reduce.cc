// reduce, map.
#include <algorithm>

#include "gangway/base/status.h"
#include "gangway/eval/elementwise_functions.h"
#include "gangway/eval/op_table.h"
#include "gangway/eval/scalar_function.h"
#include "gangway/eval/strided.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;

// The operand as [results, reduced]: for every result element the elements that are combined into it, one after the
// other.
Literal RowsToReduce(const Literal& x, const DimVector& reduced) {
  DimVector strides = Strides(x.shape().dims()), dims;
  StridedSide side;
  auto add = [&](int64_t dim) {
    dims.push_back(x.shape().dim(dim));
    side.strides.push_back(strides[dim]);
  };
  auto is_reduced = [&](int64_t dim) { return std::find(reduced.begin(), reduced.end(), dim) != reduced.end(); };
  for (int64_t i = 0; i < x.shape().rank(); ++i) {
    if (!is_reduced(i)) add(i);
  }
  for (int64_t i = 0; i < x.shape().rank(); ++i) {
    if (is_reduced(i)) add(i);
  }
  Literal rows(Shape(x.shape().dtype(), dims));
  CopyStrided(dims, ByteWidth(x.shape().dtype()), x.data(), side, rows.data(), {0, Strides(dims)});
  return rows;
}

template <typename W>
Literal FoldRows(BinaryFunction<W> function, const Literal& rows, const Literal& init, const Shape& shape) {
  std::vector<W> values = Widen<W>(rows);
  W start = Widen<W>(init).front();
  std::vector<W> results(shape.ElementCount(), start);
  size_t length = results.empty() ? 0 : values.size() / results.size();
  int bits = shape.dtype() == DType::kPred ? 1 : BitWidth(shape.dtype());
  for (size_t r = 0; r < results.size(); ++r) {
    W total = start;
    for (size_t k = 0; k < length; ++k) total = function(total, values[r * length + k], bits);
    results[r] = total;
  }
  return NarrowTo<W>(shape, results);
}

std::vector<int64_t> Every(int64_t rows, int64_t length, int64_t first, int64_t step, int64_t count) {
  std::vector<int64_t> indices;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < count; ++k) indices.push_back(r * length + first + k * step);
  }
  return indices;
}

// Rows of `a` and, where it has one, of `b` behind each other.
Literal JoinRows(const Literal& a, const Literal& b, int64_t rows) {
  int64_t a_bytes = a.bytes().size() / rows, b_bytes = b.bytes().size() / rows;
  Literal result(Shape(a.shape().dtype(), {a.shape().ElementCount() + b.shape().ElementCount()}));
  for (int64_t r = 0; r < rows; ++r) {
    char* to = result.data() + r * (a_bytes + b_bytes);
    std::memcpy(to, a.data() + r * a_bytes, a_bytes);
    if (b_bytes > 0) std::memcpy(to + a_bytes, b.data() + r * b_bytes, b_bytes);
  }
  return result;
}

// Combines neighbours until one element a row is left: a tree that keeps the order of the elements.
absl::StatusOr<std::vector<Literal>> TreeReduce(const Call& call, std::vector<Literal> rows, int64_t count,
                                                int64_t length) {
  const hlo::Computation& reducer = *call.instruction.called().front();
  while (length > 1) {
    int64_t pairs = length / 2;
    std::vector<Literal> arguments;
    for (const Literal& x : rows) arguments.push_back(GatherLanes(x, Every(count, length, 0, 2, pairs)));
    for (const Literal& x : rows) arguments.push_back(GatherLanes(x, Every(count, length, 1, 2, pairs)));
    GW_ASSIGN_OR_RETURN(std::vector<Literal> combined,
                        ApplyToLanes(call.interpreter, reducer, count * pairs, std::move(arguments)));
    for (size_t i = 0; i < rows.size(); ++i) {
      Literal left_over = GatherLanes(rows[i], Every(count, length, length - 1, 1, length % 2));
      rows[i] = JoinRows(combined[i], left_over, count);
    }
    length = pairs + length % 2;
  }
  return rows;
}

absl::StatusOr<Value> ReduceGeneral(const Call& call, const std::vector<Shape>& shapes) {
  int64_t operands = static_cast<int64_t>(shapes.size()), count = shapes.front().ElementCount();
  std::vector<Literal> arguments;
  for (int64_t i = 0; i < operands; ++i) arguments.push_back(call.array(operands + i));  // initial values
  std::vector<Literal> results;
  if (count == 0 || call.array(0).shape().ElementCount() == 0) {
    for (int64_t i = 0; i < operands; ++i) {
      results.push_back(GatherLanes(arguments[i], std::vector<int64_t>(count, 0)));
    }
  } else {
    std::vector<Literal> rows;
    for (int64_t i = 0; i < operands; ++i) {
      rows.push_back(RowsToReduce(call.array(i), call.attr<hlo::DimensionsAttr>().dims));
    }
    int64_t length = call.array(0).shape().ElementCount() / count;
    GW_ASSIGN_OR_RETURN(rows, TreeReduce(call, std::move(rows), count, length));
    for (Literal& row : rows) {
      arguments.push_back(Literal(Shape(row.shape().dtype(), {count}), {row.bytes().begin(), row.bytes().end()}));
    }
    GW_ASSIGN_OR_RETURN(
        results, ApplyToLanes(call.interpreter, *call.instruction.called().front(), count, std::move(arguments)));
  }
  std::vector<Value> values;
  for (int64_t i = 0; i < operands; ++i) {
    values.emplace_back(Literal(WithoutLayout(shapes[i]), {results[i].bytes().begin(), results[i].bytes().end()}));
  }
  return call.shape().IsTuple() ? Value::Tuple(std::move(values)) : values.front();
}

absl::StatusOr<Value> Reduce(const Call& call) {
  std::optional<Opcode> binary = AsBinary(*call.instruction.called().front());
  if (call.shape().IsTuple() || !binary.has_value()) {
    return ReduceGeneral(call, call.shape().IsTuple() ? call.shape().tuple() : std::vector<Shape>{call.shape()});
  }
  Literal rows = RowsToReduce(call.array(0), call.attr<hlo::DimensionsAttr>().dims);
  return WithWideType(call.shape().dtype(), [&]<typename W>() -> absl::StatusOr<Value> {
    BinaryFunction<W> function = BinaryFor<W>(*binary);
    if (function == nullptr) return ReduceGeneral(call, {call.shape()});
    return Value(FoldRows<W>(function, rows, call.array(1), call.shape()));
  });
}

absl::StatusOr<Value> Map(const Call& call) {
  int64_t lanes = call.shape().ElementCount();
  std::vector<Literal> arguments;
  for (const Value& operand : call.operands) {
    const Literal& x = operand.array();
    arguments.push_back(Literal(Shape(x.shape().dtype(), {lanes}), {x.bytes().begin(), x.bytes().end()}));
  }
  GW_ASSIGN_OR_RETURN(std::vector<Literal> results,
                      ApplyToLanes(call.interpreter, *call.instruction.called().front(), lanes, std::move(arguments)));
  const Literal& result = results.front();
  return Value(Literal(WithoutLayout(call.shape()), {result.bytes().begin(), result.bytes().end()}));
}

}  // namespace

void AddReduce(OpTable* table) {
  table->Set(Opcode::kReduce, Reduce);
  table->Set(Opcode::kMap, Map);
}

}  // namespace gangway::eval

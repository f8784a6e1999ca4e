// gather, scatter.
#include <algorithm>

#include "gangway/base/status.h"
#include "gangway/eval/elementwise_functions.h"
#include "gangway/eval/op_table.h"
#include "gangway/eval/scalar_function.h"
#include "gangway/eval/strided.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;

bool Contains(const DimVector& dims, int64_t dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); }

// Dimensions 0..rank-1 without those listed.
DimVector Others(int64_t rank, const DimVector& listed, const DimVector& also = {}) {
  DimVector others;
  for (int64_t i = 0; i < rank; ++i) {
    if (!Contains(listed, i) && !Contains(also, i)) others.push_back(i);
  }
  return others;
}

DimVector Pick(const DimVector& from, const DimVector& dims) {
  DimVector picked;
  for (int64_t dim : dims) picked.push_back(from[dim]);
  return picked;
}

// Where the slices of a gather or scatter start in the operand.
struct IndexMap {
  const DimVector& start_index_map;        // operand dimension of each index component
  const DimVector& operand_batching_dims;  // operand dimension ...
  const DimVector& indices_batching_dims;  // ... and the index dimension it runs with
  int64_t index_vector_dim;
};

// Reads indices at one position of their batch (all dimensions but index_vector_dim).
class Starts {
 public:
  Starts(const Literal& indices, const IndexMap& map, int64_t operand_rank)
      : indices_(indices), map_(map), rank_(operand_rank), strides_(Strides(indices.shape().dims())) {
    for (int64_t i = 0; i < indices.shape().rank(); ++i) {
      if (i != map.index_vector_dim) batch_.push_back(i);
    }
  }

  DimVector batch_dims() const { return Pick(indices_.shape().dims(), batch_); }

  DimVector At(const DimVector& batch_index) const {
    DType dtype = indices_.shape().dtype();
    int64_t from = Offset(batch_index, Pick(strides_, batch_));
    bool has_vector = map_.index_vector_dim < indices_.shape().rank();
    DimVector starts(rank_, 0);
    for (size_t k = 0; k < map_.start_index_map.size(); ++k) {
      int64_t offset = from + (has_vector ? static_cast<int64_t>(k) * strides_[map_.index_vector_dim] : 0);
      int64_t value = ElementAsInt64(dtype, indices_.data() + offset * ByteWidth(dtype));
      if (dtype == DType::kU64 && value < 0) value = std::numeric_limits<int64_t>::max() / 2;
      starts[map_.start_index_map[k]] = value;
    }
    for (size_t k = 0; k < map_.operand_batching_dims.size(); ++k) {
      int64_t dim = map_.indices_batching_dims[k];
      int64_t position = std::find(batch_.begin(), batch_.end(), dim) - batch_.begin();
      starts[map_.operand_batching_dims[k]] = batch_index[position];
    }
    return starts;
  }

 private:
  const Literal& indices_;
  const IndexMap& map_;
  int64_t rank_;
  DimVector strides_;
  DimVector batch_;
};

absl::StatusOr<Value> Gather(const Call& call) {
  const auto& attr = call.attr<hlo::GatherAttr>();
  const Literal& x = call.array(0);
  IndexMap map{attr.start_index_map, attr.operand_batching_dims, attr.start_indices_batching_dims,
               attr.index_vector_dim};
  Starts starts(call.array(1), map, x.shape().rank());
  Literal result(WithoutLayout(call.shape()));
  DimVector x_strides = Strides(x.shape().dims()), result_strides = Strides(call.shape().dims());
  DimVector batch_strides = Pick(result_strides, Others(call.shape().rank(), attr.offset_dims));
  // Operand dimensions that the slice keeps, and the block they form in the result.
  DimVector kept = Others(x.shape().rank(), attr.collapsed_slice_dims, attr.operand_batching_dims);
  DimVector block = Pick(attr.slice_sizes, kept);
  StridedSide from{0, Pick(x_strides, kept)}, to{0, Pick(result_strides, attr.offset_dims)};
  DimVector batch = starts.batch_dims(), index(batch.size(), 0);
  if (CountOf(batch) == 0 || CountOf(block) == 0) return Value(std::move(result));
  do {
    DimVector start = starts.At(index);
    for (int64_t i = 0; i < x.shape().rank(); ++i) {
      start[i] = std::clamp<int64_t>(start[i], 0, x.shape().dim(i) - attr.slice_sizes[i]);
    }
    from.from = Offset(start, x_strides);
    to.from = Offset(index, batch_strides);
    CopyStrided(block, ByteWidth(x.shape().dtype()), x.data(), from, result.data(), to);
  } while (Next(batch, &index));
  return Value(std::move(result));
}

// One element of the operands that an update changes: its offset, and that of the update.
using Pairs = std::vector<std::pair<int64_t, int64_t>>;

// In the order in which updates are applied. A window that does not lie inside the operand is dropped.
Pairs ScatterPairs(const hlo::ScatterAttr& attr, const Shape& operand, const Shape& updates, const Literal& indices) {
  IndexMap map{attr.scatter_dims_to_operand_dims, attr.input_batching_dims, attr.scatter_indices_batching_dims,
               attr.index_vector_dim};
  Starts starts(indices, map, operand.rank());
  DimVector operand_strides = Strides(operand.dims()), update_strides = Strides(updates.dims());
  DimVector batch_strides = Pick(update_strides, Others(updates.rank(), attr.update_window_dims));
  DimVector kept = Others(operand.rank(), attr.inserted_window_dims, attr.input_batching_dims);
  DimVector window = Pick(updates.dims(), attr.update_window_dims);
  DimVector window_strides = Pick(operand_strides, kept),
            update_window_strides = Pick(update_strides, attr.update_window_dims);
  DimVector sizes(operand.rank(), 1);
  for (size_t i = 0; i < kept.size(); ++i) sizes[kept[i]] = window[i];
  Pairs pairs;
  DimVector batch = starts.batch_dims(), index(batch.size(), 0);
  if (CountOf(batch) == 0) return pairs;
  do {
    DimVector start = starts.At(index);
    bool inside = true;
    for (int64_t i = 0; i < operand.rank(); ++i) inside &= start[i] >= 0 && start[i] <= operand.dim(i) - sizes[i];
    if (!inside) continue;
    int64_t update_from = Offset(index, batch_strides), from = Offset(start, operand_strides);
    DimVector at(window.size(), 0);
    if (CountOf(window) == 0) continue;
    do {
      pairs.emplace_back(from + Offset(at, window_strides), update_from + Offset(at, update_window_strides));
    } while (Next(window, &at));
  } while (Next(batch, &index));
  return pairs;
}

template <typename W>
Literal ScatterBinary(BinaryFunction<W> function, const Literal& x, const Literal& updates, const Pairs& pairs) {
  std::vector<W> values = Widen<W>(x), changes = Widen<W>(updates);
  int bits = x.shape().dtype() == DType::kPred ? 1 : BitWidth(x.shape().dtype());
  for (auto [to, from] : pairs) values[to] = function(values[to], changes[from], bits);
  return NarrowTo<W>(x.shape(), values);
}

// The update replaces what was there.
bool IsAssignment(const hlo::Computation& combiner) {
  return combiner.parameters().size() == 2 && combiner.root() == combiner.parameter(1);
}

Literal ScatterAssign(const Literal& x, const Literal& updates, const Pairs& pairs) {
  Literal result = x;
  size_t width = ByteWidth(x.shape().dtype());
  for (auto [to, from] : pairs) std::memcpy(result.data() + to * width, updates.data() + from * width, width);
  return result;
}

// Any combiner, any number of operands: one pair after the other.
absl::StatusOr<Value> ScatterGeneral(const Call& call, const Pairs& pairs) {
  int64_t count = call.instruction.operand_count() / 2;
  std::vector<Literal> results;
  for (int64_t i = 0; i < count; ++i) results.push_back(call.array(i));
  for (auto [to, from] : pairs) {
    std::vector<Literal> arguments;
    for (int64_t i = 0; i < count; ++i) arguments.push_back(GatherLanes(results[i], {to}));
    for (int64_t i = 0; i < count; ++i) arguments.push_back(GatherLanes(call.array(count + 1 + i), {from}));
    GW_ASSIGN_OR_RETURN(std::vector<Literal> combined,
                        ApplyToLanes(call.interpreter, *call.instruction.called().front(), 1, std::move(arguments)));
    for (int64_t i = 0; i < count; ++i) {
      size_t width = combined[i].bytes().size();
      std::memcpy(results[i].data() + to * width, combined[i].data(), width);
    }
  }
  if (!call.shape().IsTuple()) return Value(std::move(results.front()));
  std::vector<Value> values;
  for (Literal& result : results) values.emplace_back(std::move(result));
  return Value::Tuple(std::move(values));
}

absl::StatusOr<Value> Scatter(const Call& call) {
  const hlo::Computation& combiner = *call.instruction.called().front();
  int64_t count = call.instruction.operand_count() / 2;
  const Literal &x = call.array(0), &indices = call.array(count), &updates = call.array(count + 1);
  Pairs pairs = ScatterPairs(call.attr<hlo::ScatterAttr>(), x.shape(), updates.shape(), indices);
  if (call.shape().IsTuple()) return ScatterGeneral(call, pairs);
  if (IsAssignment(combiner)) return Value(ScatterAssign(x, updates, pairs));
  std::optional<Opcode> binary = AsBinary(combiner);
  if (!binary.has_value()) return ScatterGeneral(call, pairs);
  return WithWideType(x.shape().dtype(), [&]<typename W>() -> absl::StatusOr<Value> {
    BinaryFunction<W> function = BinaryFor<W>(*binary);
    if (function == nullptr) return ScatterGeneral(call, pairs);
    return Value(ScatterBinary<W>(function, x, updates, pairs));
  });
}

}  // namespace

void AddGather(OpTable* table) {
  table->Set(Opcode::kGather, Gather);
  table->Set(Opcode::kScatter, Scatter);
}

}  // namespace gangway::eval

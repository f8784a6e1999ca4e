// sort, topk.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "gangway/base/status.h"
#include "gangway/eval/op_table.h"
#include "gangway/eval/scalar_function.h"
#include "gangway/eval/strided.h"
#include "gangway/eval/wide.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;
using Indices = std::vector<int64_t>;

// Moves one dimension last, or back.
Literal SwapLast(const Literal& x, int64_t dim) {
  DimVector dims = x.shape().dims();
  StridedSide side{0, Strides(dims)};
  std::swap(dims[dim], dims.back());
  std::swap(side.strides[dim], side.strides.back());
  Literal result(Shape(x.shape().dtype(), dims));
  CopyStrided(dims, ByteWidth(x.shape().dtype()), x.data(), side, result.data(), {0, Strides(dims)});
  return result;
}

// A stable merge sort of all rows at once. Where two sorted runs are merged, an element's place is its place in its own
// run plus its rank in the other, found by binary search: every step of the search is one comparison in all lanes.
class LaneSorter {
 public:
  LaneSorter(const Call& call, std::vector<Literal> rows, int64_t length)
      : call_(call), rows_(std::move(rows)), length_(length), count_(rows_.front().shape().ElementCount()) {}

  // For every place of the sorted rows the element that belongs there.
  absl::StatusOr<Indices> Order() {
    Indices order(count_);
    std::iota(order.begin(), order.end(), 0);
    for (int64_t width = 1; width < length_; width *= 2) {
      GW_ASSIGN_OR_RETURN(Indices ranks, RanksInOtherRun(order, width));
      Indices merged(count_);
      for (int64_t i = 0; i < count_; ++i) {
        int64_t row = i / length_ * length_, at = i - row, run = at / width;
        merged[row + run / 2 * 2 * width + at % width + ranks[i]] = order[i];
      }
      order = std::move(merged);
    }
    return order;
  }

 private:
  // How many elements of the neighbour run come before each element: for one of the left run those less than it, for
  // one of the right run also the equal ones, which keeps the sort stable.
  absl::StatusOr<Indices> RanksInOtherRun(const Indices& order, int64_t width) {
    Indices low(count_), high(count_), base(count_);
    for (int64_t i = 0; i < count_; ++i) {
      int64_t row = i / length_ * length_, at = i - row, other = at / width ^ 1;
      int64_t first = std::min(other * width, length_), last = std::min(first + width, length_);
      base[i] = row + first;
      high[i] = last - first;
    }
    while (true) {
      Indices active, left, right;
      std::vector<bool> is_left;
      for (int64_t i = 0; i < count_; ++i) {
        if (low[i] >= high[i]) continue;
        bool in_left_run = (i % length_) / width % 2 == 0;
        int64_t middle = order[base[i] + (low[i] + high[i]) / 2];
        active.push_back(i);
        // Left run: is the other less than me? Right run: am I less than the other?
        left.push_back(in_left_run ? middle : order[i]);
        right.push_back(in_left_run ? order[i] : middle);
        is_left.push_back(in_left_run);
      }
      if (active.empty()) return low;
      GW_ASSIGN_OR_RETURN(Literal less, Less(left, right));
      for (size_t k = 0; k < active.size(); ++k) {
        int64_t i = active[k], middle = (low[i] + high[i]) / 2;
        bool other_comes_first = (less.data()[k] != 0) == is_left[k];
        (other_comes_first ? low[i] : high[i]) = other_comes_first ? middle + 1 : middle;
      }
    }
  }

  absl::StatusOr<Literal> Less(const Indices& left, const Indices& right) {
    std::vector<Literal> arguments;
    for (const Literal& rows : rows_) {
      arguments.push_back(GatherLanes(rows, left));
      arguments.push_back(GatherLanes(rows, right));
    }
    GW_ASSIGN_OR_RETURN(std::vector<Literal> less,
                        ApplyToLanes(call_.interpreter, *call_.instruction.called().front(),
                                     static_cast<int64_t>(left.size()), std::move(arguments)));
    return std::move(less.front());
  }

  const Call& call_;
  std::vector<Literal> rows_;
  int64_t length_, count_;
};

absl::StatusOr<Value> Sort(const Call& call) {
  int64_t dim = call.attr<hlo::SortAttr>().dimension;
  if (call.array(0).shape().ElementCount() == 0) {
    if (!call.shape().IsTuple()) return call.operands[0];
    return Value::Tuple({call.operands.begin(), call.operands.end()});
  }
  std::vector<Literal> rows;
  for (size_t i = 0; i < call.operands.size(); ++i) rows.push_back(SwapLast(call.array(i), dim));
  const Shape swapped = rows.front().shape();
  GW_ASSIGN_OR_RETURN(Indices order, LaneSorter(call, rows, call.array(0).shape().dim(dim)).Order());
  std::vector<Value> results;
  for (const Literal& row : rows) {
    Literal sorted = GatherLanes(row, order);
    Literal shaped(WithDType(swapped, row.shape().dtype()), {sorted.bytes().begin(), sorted.bytes().end()});
    results.emplace_back(SwapLast(shaped, dim));
  }
  return call.shape().IsTuple() ? Value::Tuple(std::move(results)) : results.front();
}

// NaN counts as larger than every number.
template <typename W>
bool Greater(W x, W y) {
  if constexpr (std::is_same_v<W, double>) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && !std::isnan(y);
  }
  return x > y;
}

absl::StatusOr<Value> TopK(const Call& call) {
  const auto& attr = call.attr<hlo::TopKAttr>();
  const Literal& x = call.array(0);
  int64_t length = x.shape().dims().back(), rows = length == 0 ? 0 : x.shape().ElementCount() / length;
  if (IsComplex(x.shape().dtype())) return absl::UnimplementedError("topk is not defined on complex numbers");
  Indices chosen;
  std::vector<int64_t> places;
  WithWideType(x.shape().dtype(), [&]<typename W>() {
    if constexpr (!std::is_same_v<W, Complex>) {
      std::vector<W> values = Widen<W>(x);
      for (int64_t r = 0; r < rows; ++r) {
        const W* row = values.data() + r * length;
        Indices order(length);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
          return attr.largest ? Greater(row[a], row[b]) : Greater(row[b], row[a]);
        });
        for (int64_t k = 0; k < attr.k; ++k) {
          chosen.push_back(r * length + order[k]);
          places.push_back(order[k]);
        }
      }
    }
  });
  Literal values = GatherLanes(x, chosen);
  const Shape &value_shape = call.shape().tuple()[0], &index_shape = call.shape().tuple()[1];
  return Value::Tuple({Value(Literal(WithoutLayout(value_shape), {values.bytes().begin(), values.bytes().end()})),
                       Value(NarrowTo<int64_t>(index_shape, places))});
}

}  // namespace

void AddSort(OpTable* table) {
  table->Set(Opcode::kSort, Sort);
  table->Set(Opcode::kTopK, TopK);
}

}  // namespace gangway::eval

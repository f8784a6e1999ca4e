// dot.
#include <algorithm>

#include "gangway/eval/op_table.h"
#include "gangway/eval/strided.h"
#include "gangway/eval/wide.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;

// The operand with its dimensions in the given order.
Literal Permuted(const Literal& x, const DimVector& order) {
  DimVector strides = Strides(x.shape().dims()), dims;
  StridedSide side;
  for (int64_t dim : order) {
    dims.push_back(x.shape().dim(dim));
    side.strides.push_back(strides[dim]);
  }
  Literal result(Shape(x.shape().dtype(), dims));
  CopyStrided(dims, ByteWidth(x.shape().dtype()), x.data(), side, result.data(), {0, Strides(dims)});
  return result;
}

DimVector Free(int64_t rank, const DimVector& batch, const DimVector& contracting) {
  DimVector free;
  for (int64_t i = 0; i < rank; ++i) {
    if (std::find(batch.begin(), batch.end(), i) == batch.end() &&
        std::find(contracting.begin(), contracting.end(), i) == contracting.end()) {
      free.push_back(i);
    }
  }
  return free;
}

DimVector Joined(const DimVector& a, const DimVector& b, const DimVector& c) {
  DimVector all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

int64_t SizeOf(const Shape& shape, const DimVector& dims) {
  int64_t size = 1;
  for (int64_t dim : dims) size *= shape.dim(dim);
  return size;
}

// c[b,m,n] = sum over k of x[b,m,k] y[b,k,n]; rows of c grow by whole rows of y, which vectorizes.
template <typename W>
std::vector<W> BatchMatrixProduct(const std::vector<W>& x, const std::vector<W>& y, int64_t batch, int64_t m, int64_t k,
                                  int64_t n) {
  std::vector<W> product(batch * m * n);
  for (int64_t row = 0; row < batch * m; ++row) {
    W* c = product.data() + row * n;
    const W* rows_of_y = y.data() + row / m * k * n;
    for (int64_t i = 0; i < k; ++i) {
      W scale = x[row * k + i];
      const W* b = rows_of_y + i * n;
      for (int64_t j = 0; j < n; ++j) c[j] += scale * b[j];
    }
  }
  return product;
}

// Operands may differ in type (s8 x u8, bf16 x f32): both are widened to the wide type of the result.
template <typename W>
std::vector<W> WidenTo(const Literal& x) {
  return WithWideType(x.shape().dtype(), [&]<typename V>() {
    std::vector<V> values = Widen<V>(x);
    if constexpr (std::is_same_v<V, W>) {
      return values;
    } else if constexpr (std::is_same_v<V, Complex>) {
      std::vector<W> real(values.size());
      for (size_t i = 0; i < values.size(); ++i) real[i] = static_cast<W>(values[i].real());
      return real;
    } else {
      std::vector<W> converted(values.size());
      for (size_t i = 0; i < values.size(); ++i) converted[i] = static_cast<W>(values[i]);
      return converted;
    }
  });
}

absl::StatusOr<Value> Dot(const Call& call) {
  const auto& attr = call.attr<hlo::DotAttr>();
  const Shape &lhs = call.array(0).shape(), &rhs = call.array(1).shape();
  DimVector lhs_free = Free(lhs.rank(), attr.lhs_batch, attr.lhs_contracting);
  DimVector rhs_free = Free(rhs.rank(), attr.rhs_batch, attr.rhs_contracting);
  Literal x = Permuted(call.array(0), Joined(attr.lhs_batch, lhs_free, attr.lhs_contracting));
  Literal y = Permuted(call.array(1), Joined(attr.rhs_batch, attr.rhs_contracting, rhs_free));
  int64_t batch = SizeOf(lhs, attr.lhs_batch), m = SizeOf(lhs, lhs_free), k = SizeOf(lhs, attr.lhs_contracting),
          n = SizeOf(rhs, rhs_free);
  return WithWideType(call.shape().dtype(), [&]<typename W>() {
    return Value(NarrowTo<W>(call.shape(), BatchMatrixProduct<W>(WidenTo<W>(x), WidenTo<W>(y), batch, m, k, n)));
  });
}

}  // namespace

void AddDot(OpTable* table) {
  table->Set(Opcode::kDot, Dot);
  table->SetUnsupported(Opcode::kRaggedDot, "its dimension numbers are not part of the IR yet");
}

}  // namespace gangway::eval

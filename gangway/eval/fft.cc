// fft, by the definition in powers of the root of unity where a length is no power of two.
#include <cmath>
#include <numbers>

#include "gangway/eval/op_table.h"
#include "gangway/eval/strided.h"
#include "gangway/eval/wide.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;

// Transform of x[0], x[step], ... into out[0..n): halves while the length is even, then the sum itself.
void Transform(const Complex* x, int64_t n, int64_t step, double sign, Complex* out) {
  auto root = [&](int64_t k) { return std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k % n) / n); };
  if (n % 2 != 0) {
    for (int64_t k = 0; k < n; ++k) {
      Complex sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += x[i * step] * root(i * k);
      out[k] = sum;
    }
    return;
  }
  int64_t half = n / 2;
  std::vector<Complex> even(half), odd(half);
  Transform(x, half, 2 * step, sign, even.data());
  Transform(x + step, half, 2 * step, sign, odd.data());
  for (int64_t k = 0; k < half; ++k) {
    Complex turned = root(k) * odd[k];
    out[k] = even[k] + turned;
    out[k + half] = even[k] - turned;
  }
}

// In place along one dimension of an array of `dims`.
void TransformDimension(const DimVector& dims, int64_t dim, bool inverse, std::vector<Complex>* values) {
  int64_t n = dims[dim], stride = Strides(dims)[dim];
  if (n == 0) return;
  std::vector<Complex> line(n), out(n);
  for (int64_t from = 0; from < static_cast<int64_t>(values->size()); ++from) {
    if (from / stride % n != 0) continue;  // not the first element of a line
    for (int64_t i = 0; i < n; ++i) line[i] = (*values)[from + i * stride];
    Transform(line.data(), n, 1, inverse ? 1 : -1, out.data());
    for (int64_t i = 0; i < n; ++i) (*values)[from + i * stride] = inverse ? out[i] / static_cast<double>(n) : out[i];
  }
}

// Keeps the first elements of the last dimension.
std::vector<Complex> Truncated(const std::vector<Complex>& values, int64_t length, int64_t keep) {
  std::vector<Complex> kept;
  for (size_t from = 0; from < values.size(); from += length) {
    kept.insert(kept.end(), values.begin() + from, values.begin() + from + keep);
  }
  return kept;
}

absl::StatusOr<Value> Fft(const Call& call) {
  const auto& attr = call.attr<hlo::FftAttr>();
  const Literal& x = call.array(0);
  int64_t first = x.shape().rank() - static_cast<int64_t>(attr.lengths.size());
  bool real_input = attr.type == hlo::FftType::kRfft;
  std::vector<Complex> values;
  if (real_input) {
    std::vector<double> real = Widen<double>(x);
    values.assign(real.begin(), real.end());
  } else {
    values = Widen<Complex>(x);
  }
  DimVector dims = x.shape().dims();
  bool inverse = attr.type == hlo::FftType::kIfft || attr.type == hlo::FftType::kIrfft;
  if (attr.type == hlo::FftType::kIrfft) {
    int64_t length = attr.lengths.back(), half = dims.back();
    for (int64_t dim = first; dim + 1 < x.shape().rank(); ++dim) TransformDimension(dims, dim, true, &values);
    // The other half of a real signal's spectrum is the mirror of this one. After the outer transforms every line is
    // the spectrum of a real line.
    std::vector<Complex> whole;
    for (size_t from = 0; from < values.size(); from += half) {
      for (int64_t k = 0; k < length; ++k) {
        Complex value = k < half ? values[from + k] : std::conj(values[from + length - k]);
        if (k == 0 || 2 * k == length) value = value.real();
        whole.push_back(value);
      }
    }
    dims.back() = length;
    TransformDimension(dims, x.shape().rank() - 1, true, &whole);
    std::vector<double> real(whole.size());
    for (size_t i = 0; i < real.size(); ++i) real[i] = whole[i].real();
    return Value(NarrowTo<double>(call.shape(), real));
  }
  for (int64_t dim = x.shape().rank() - 1; dim >= first; --dim) {
    TransformDimension(dims, dim, inverse, &values);
    if (real_input && dim == x.shape().rank() - 1) {
      int64_t keep = dims.back() / 2 + 1;
      values = Truncated(values, dims.back(), keep);
      dims.back() = keep;
    }
  }
  return Value(NarrowTo<Complex>(call.shape(), values));
}

}  // namespace

void AddFft(OpTable* table) { table->Set(Opcode::kFft, Fft); }

}  // namespace gangway::eval

#include "gangway/collective/reduce.h"

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "gangway/collective/small_float.h"
#include "gangway/tensor/literal.h"

namespace gangway::collective {
namespace {

struct Sum {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
struct Product {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a * b);
  }
};
// False for what has no NaN.
template <typename T>
bool IsNan(T a) {
  return a != a;  // NOLINT(misc-redundant-expression)
}
// NaN wins.
struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    return (a < b || IsNan(a)) ? a : b;
  }
};
struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    return (a > b || IsNan(a)) ? a : b;
  }
};
struct And {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

using Inputs = absl::Span<const void* const>;

template <typename T, typename F>
void ReduceNative(void* out, Inputs in, int64_t count) {
  T* __restrict acc = static_cast<T*>(out);
  const F f;
  if (in.size() == 1) {
    std::memcpy(acc, in[0], count * sizeof(T));
    return;
  }
  const T* __restrict a = static_cast<const T*>(in[0]);
  const T* __restrict b = static_cast<const T*>(in[1]);
  for (int64_t i = 0; i < count; ++i) acc[i] = f(a[i], b[i]);
  for (size_t s = 2; s < in.size(); ++s) {
    const T* __restrict next = static_cast<const T*>(in[s]);
    for (int64_t i = 0; i < count; ++i) acc[i] = f(acc[i], next[i]);
  }
}

constexpr int64_t kWideBlock = 1024;  // elements of the f32 accumulator, on the stack

// Elements [start, start + n) of the inputs into `acc`.
template <typename Bits, typename F, typename Decode>
void Accumulate(float* __restrict acc, Inputs in, int64_t start, int64_t n, Decode decode) {
  const F f;
  const Bits* first = static_cast<const Bits*>(in[0]) + start;
  for (int64_t i = 0; i < n; ++i) acc[i] = decode(first[i]);
  for (const void* input : in.subspan(1)) {
    const Bits* next = static_cast<const Bits*>(input) + start;
    for (int64_t i = 0; i < n; ++i) acc[i] = f(acc[i], decode(next[i]));
  }
}

template <typename Bits, typename F, typename Decode, typename Encode>
void ReduceWidened(void* out, Inputs in, int64_t count, Decode decode, Encode encode) {
  std::array<float, kWideBlock> acc;
  for (int64_t start = 0; start < count; start += kWideBlock) {
    const int64_t n = std::min(kWideBlock, count - start);
    Accumulate<Bits, F>(acc.data(), in, start, n, decode);
    Bits* result = static_cast<Bits*>(out) + start;
    for (int64_t i = 0; i < n; ++i) result[i] = encode(acc[i]);
  }
}

// f8, f6 and f4: rare, so through the tables of the tensor library.
std::array<float, 256> DecodeTable(DType dtype) {
  std::array<float, 256> table;
  for (int bits = 0; bits < 256; ++bits) {
    const char element = static_cast<char>(bits);
    table[bits] = static_cast<float>(ElementAsDouble(dtype, &element));
  }
  return table;
}

uint8_t EncodeNarrow(DType dtype, float value) {
  char element;
  StoreDouble(dtype, value, &element);
  return static_cast<uint8_t>(element);
}

template <typename F>
void ReduceNarrow(DType dtype, void* out, Inputs in, int64_t count) {
  const std::array<float, 256> table = DecodeTable(dtype);
  ReduceWidened<uint8_t, F>(
      out, in, count, [&table](uint8_t bits) { return table[bits]; },
      [dtype](float value) { return EncodeNarrow(dtype, value); });
}

// Floats narrower than f32 into f32.
template <typename F>
void ReduceToWide(DType dtype, float* out, Inputs in, int64_t count) {
  if (dtype == DType::kBF16) return Accumulate<uint16_t, F>(out, in, 0, count, DecodeBF16);
  if (dtype == DType::kF16) return Accumulate<uint16_t, F>(out, in, 0, count, DecodeF16);
  const std::array<float, 256> table = DecodeTable(dtype);
  Accumulate<uint8_t, F>(out, in, 0, count, [&table](uint8_t bits) { return table[bits]; });
}

template <typename F>
void ReduceReal(DType dtype, void* out, Inputs in, int64_t count) {
  switch (dtype) {
    case DType::kF32:
      return ReduceNative<float, F>(out, in, count);
    case DType::kF64:
      return ReduceNative<double, F>(out, in, count);
    case DType::kBF16:
      return ReduceWidened<uint16_t, F>(out, in, count, DecodeBF16, EncodeBF16);
    case DType::kF16:
      return ReduceWidened<uint16_t, F>(out, in, count, DecodeF16, EncodeF16);
    default:
      return ReduceNarrow<F>(dtype, out, in, count);
  }
}

// Sums and products wrap, which only unsigned arithmetic does.
template <typename F>
void ReduceBits(int bytes, void* out, Inputs in, int64_t count) {
  switch (bytes) {
    case 1:
      return ReduceNative<uint8_t, F>(out, in, count);
    case 2:
      return ReduceNative<uint16_t, F>(out, in, count);
    case 4:
      return ReduceNative<uint32_t, F>(out, in, count);
    default:
      return ReduceNative<uint64_t, F>(out, in, count);
  }
}

template <typename F>
void ReduceSigned(int bytes, void* out, Inputs in, int64_t count) {
  switch (bytes) {
    case 1:
      return ReduceNative<int8_t, F>(out, in, count);
    case 2:
      return ReduceNative<int16_t, F>(out, in, count);
    case 4:
      return ReduceNative<int32_t, F>(out, in, count);
    default:
      return ReduceNative<int64_t, F>(out, in, count);
  }
}

template <typename F>
void ReduceComplex(DType dtype, void* out, Inputs in, int64_t count) {
  if (dtype == DType::kC64) return ReduceNative<std::complex<float>, F>(out, in, count);
  return ReduceNative<std::complex<double>, F>(out, in, count);
}

// Arithmetic that every kind of type has: sum and product.
template <typename F>
void ReduceArithmetic(DType dtype, void* out, Inputs in, int64_t count) {
  if (IsComplex(dtype)) return ReduceComplex<F>(dtype, out, in, count);
  if (IsFloat(dtype)) return ReduceReal<F>(dtype, out, in, count);
  return ReduceBits<F>(ByteWidth(dtype), out, in, count);
}

template <typename F>
void ReduceOrdered(DType dtype, void* out, Inputs in, int64_t count) {
  if (IsFloat(dtype)) return ReduceReal<F>(dtype, out, in, count);
  if (IsSigned(dtype)) return ReduceSigned<F>(ByteWidth(dtype), out, in, count);
  return ReduceBits<F>(ByteWidth(dtype), out, in, count);
}

}  // namespace

absl::Status CheckReduction(DType dtype, Reduction reduction) {
  const bool bitwise = reduction == Reduction::kAnd || reduction == Reduction::kOr || reduction == Reduction::kXor;
  const bool ordered = reduction == Reduction::kMin || reduction == Reduction::kMax;
  const bool fits =
      IsElement(dtype) && !(bitwise && (IsFloat(dtype) || IsComplex(dtype))) && !(ordered && IsComplex(dtype));
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("there is no reduction \"", ReductionName(reduction), "\" of ", DTypeName(dtype)));
}

void Reduce(DType dtype, Reduction reduction, void* out, absl::Span<const void* const> in, int64_t count) {
  // The sum of truth values is their disjunction, the product their conjunction.
  if (dtype == DType::kPred && reduction == Reduction::kSum) reduction = Reduction::kOr;
  if (dtype == DType::kPred && reduction == Reduction::kProduct) reduction = Reduction::kAnd;
  switch (reduction) {
    case Reduction::kSum:
      return ReduceArithmetic<Sum>(dtype, out, in, count);
    case Reduction::kProduct:
      return ReduceArithmetic<Product>(dtype, out, in, count);
    case Reduction::kMin:
      return ReduceOrdered<Min>(dtype, out, in, count);
    case Reduction::kMax:
      return ReduceOrdered<Max>(dtype, out, in, count);
    case Reduction::kAnd:
      return ReduceBits<And>(ByteWidth(dtype), out, in, count);
    case Reduction::kOr:
      return ReduceBits<Or>(ByteWidth(dtype), out, in, count);
    case Reduction::kXor:
      return ReduceBits<Xor>(ByteWidth(dtype), out, in, count);
  }
}

DType AccumulatorOf(DType dtype) { return IsFloat(dtype) && dtype != DType::kF64 ? DType::kF32 : dtype; }

void ReducePartly(DType dtype, Reduction reduction, void* out, absl::Span<const void* const> in, int64_t count) {
  if (AccumulatorOf(dtype) == dtype) return Reduce(dtype, reduction, out, in, count);
  float* wide = static_cast<float*>(out);
  switch (reduction) {
    case Reduction::kProduct:
      return ReduceToWide<Product>(dtype, wide, in, count);
    case Reduction::kMin:
      return ReduceToWide<Min>(dtype, wide, in, count);
    case Reduction::kMax:
      return ReduceToWide<Max>(dtype, wide, in, count);
    default:  // CheckReduction leaves floats no other
      return ReduceToWide<Sum>(dtype, wide, in, count);
  }
}

void RoundTo(DType dtype, void* out, const void* in, int64_t count) {
  if (AccumulatorOf(dtype) == dtype) {
    std::memcpy(out, in, count * ByteWidth(dtype));
    return;
  }
  const float* wide = static_cast<const float*>(in);
  if (dtype == DType::kBF16) {
    for (int64_t i = 0; i < count; ++i) static_cast<uint16_t*>(out)[i] = EncodeBF16(wide[i]);
  } else if (dtype == DType::kF16) {
    for (int64_t i = 0; i < count; ++i) static_cast<uint16_t*>(out)[i] = EncodeF16(wide[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) static_cast<uint8_t*>(out)[i] = EncodeNarrow(dtype, wide[i]);
  }
}

}  // namespace gangway::collective

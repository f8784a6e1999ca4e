#include "gangway/collective/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/collective/move.h"
#include "gangway/collective/reduce.h"
#include "gangway/collective/small_float.h"
#include "gangway/tensor/literal.h"

namespace gangway::collective {
namespace {

using ::testing::HasSubstr;

// One array per member, in its own memory.
class Arrays {
 public:
  Arrays(int members, DType dtype, absl::InlinedVector<int64_t, 6> dims) {
    for (int m = 0; m < members; ++m) {
      Array array{dtype, dims, nullptr};
      memory_.emplace_back(PackedBytes(dtype, ElementCount(array)) + 1, '\x5a');
      array.data = memory_.back().data();
      arrays_.push_back(array);
    }
  }
  Array& operator[](int member) { return arrays_[member]; }
  template <typename T>
  T* data(int member) {
    return static_cast<T*>(arrays_[member].data);
  }

 private:
  std::vector<std::vector<char>> memory_;
  std::vector<Array> arrays_;
};

Op GroupOp(Kind kind, int members) {
  std::vector<int64_t> all(members);
  std::iota(all.begin(), all.end(), 0);
  Op op;
  op.kind = kind;
  return *MakeGroupOp(op, all, members, members);
}

absl::Status RunAll(const Op& op, Arrays& operands, Arrays& results, int members, int pieces = 1) {
  std::vector<Member> list;
  for (int m = 0; m < members; ++m) list.push_back({{&operands[m], 1}, {&results[m], 1}});
  if (absl::Status status = CheckExchange(op, list); !status.ok()) return status;
  for (int piece = 0; piece < pieces; ++piece) Exchange(op, 0, list, piece, pieces);
  return absl::OkStatus();
}

double Combine(Reduction reduction, double a, double b) {
  switch (reduction) {
    case Reduction::kSum:
      return a + b;
    case Reduction::kProduct:
      return a * b;
    case Reduction::kMin:
      return std::min(a, b);
    case Reduction::kMax:
      return std::max(a, b);
    default:
      return 0;
  }
}

// One byte or more per element, as Literal stores it.
std::vector<char> Element(DType dtype, double value) {
  std::vector<char> bytes(ByteWidth(dtype));
  StoreDouble(dtype, value, bytes.data());
  return bytes;
}

class ReductionOfEveryType : public ::testing::TestWithParam<std::tuple<DType, Reduction>> {};

TEST_P(ReductionOfEveryType, MatchesTheElementwiseDefinition) {
  const auto [dtype, reduction] = GetParam();
  constexpr int kMembers = 3, kCount = 37;
  Arrays in(kMembers, dtype, {kCount}), out(kMembers, dtype, {kCount});
  const bool packed = StorageBits(dtype) < 8;
  const double values[] = {1, 2, 0.5, 1, 2, 1, 1};
  std::vector<double> expected(kCount);
  for (int i = 0; i < kCount; ++i) {
    for (int m = 0; m < kMembers; ++m) {
      const std::vector<char> element = Element(dtype, values[(i + 3 * m) % 7]);
      if (packed) {
        Pack(dtype, in.data<char>(m), i, element.data(), 1);
      } else {
        std::memcpy(in.data<char>(m) + i * ByteWidth(dtype), element.data(), element.size());
      }
      const double value = ElementAsDouble(dtype, element.data());
      expected[i] = m == 0 ? value : Combine(reduction, expected[i], value);
    }
  }
  Op op = GroupOp(Kind::kAllReduce, kMembers);
  op.reduction = reduction;
  ASSERT_TRUE(RunAll(op, in, out, kMembers).ok());
  for (int m = 0; m < kMembers; ++m) {
    for (int i = 0; i < kCount; ++i) {
      std::vector<char> got(ByteWidth(dtype));
      if (packed) {
        Unpack(dtype, got.data(), out.data<char>(m), i, 1);
      } else {
        std::memcpy(got.data(), out.data<char>(m) + i * ByteWidth(dtype), got.size());
      }
      std::vector<char> want(ByteWidth(dtype));
      if (IsFloat(dtype) || IsComplex(dtype)) {
        StoreDouble(dtype, expected[i], want.data());
      } else {
        StoreInt64(dtype, static_cast<int64_t>(expected[i]), want.data());  // wraps as the type does
      }
      if (reduction <= Reduction::kMax) {
        const double g = ElementAsDouble(dtype, got.data()), w = ElementAsDouble(dtype, want.data());
        EXPECT_TRUE(g == w || (std::isnan(g) && std::isnan(w))) << i << ": " << g << " not " << w;
      }
    }
  }
}

// Those with an arithmetic definition; truth values have a test of their own.
std::vector<std::tuple<DType, Reduction>> ArithmeticReductions() {
  std::vector<std::tuple<DType, Reduction>> pairs;
  for (const DTypeInfo& info : AllDTypes()) {
    for (Reduction reduction : {Reduction::kSum, Reduction::kProduct, Reduction::kMin, Reduction::kMax}) {
      if (info.dtype != DType::kPred && CheckReduction(info.dtype, reduction).ok())
        pairs.push_back({info.dtype, reduction});
    }
  }
  return pairs;
}

INSTANTIATE_TEST_SUITE_P(All, ReductionOfEveryType, ::testing::ValuesIn(ArithmeticReductions()), [](const auto& info) {
  return absl::StrCat(DTypeName(std::get<0>(info.param)), "_", ReductionName(std::get<1>(info.param)));
});

TEST(Reduce, Bitwise) {
  const uint32_t a = 0b1100, b = 0b1010;
  const void* in[] = {&a, &b};
  uint32_t out;
  Reduce(DType::kU32, Reduction::kAnd, &out, in, 1);
  EXPECT_EQ(out, 0b1000u);
  Reduce(DType::kU32, Reduction::kOr, &out, in, 1);
  EXPECT_EQ(out, 0b1110u);
  Reduce(DType::kU32, Reduction::kXor, &out, in, 1);
  EXPECT_EQ(out, 0b0110u);
}

TEST(Reduce, SumOfTruthValuesIsOr) {
  const uint8_t a[] = {0, 0, 1, 1}, b[] = {0, 1, 0, 1};
  const void* in[] = {a, b};
  uint8_t out[4];
  Reduce(DType::kPred, Reduction::kSum, out, in, 4);
  EXPECT_THAT(out, ::testing::ElementsAre(0, 1, 1, 1));
  Reduce(DType::kPred, Reduction::kProduct, out, in, 4);
  EXPECT_THAT(out, ::testing::ElementsAre(0, 0, 0, 1));
}

TEST(Reduce, MinAndMaxPropagateNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float a[] = {nan, 1}, b[] = {1, nan};
  const void* in[] = {a, b};
  float out[2];
  for (Reduction reduction : {Reduction::kMin, Reduction::kMax}) {
    Reduce(DType::kF32, reduction, out, in, 2);
    EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
  }
}

TEST(Reduce, RefusesWhatTheTypeLacks) {
  EXPECT_FALSE(CheckReduction(DType::kC64, Reduction::kMax).ok());
  EXPECT_FALSE(CheckReduction(DType::kF32, Reduction::kAnd).ok());
  EXPECT_FALSE(CheckReduction(DType::kToken, Reduction::kSum).ok());
  EXPECT_TRUE(CheckReduction(DType::kPred, Reduction::kXor).ok());
}

TEST(SmallFloat, EveryHalfSurvivesARoundTripAndAgreesWithTheTensorLibrary) {
  for (int bits = 0; bits < 65536; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const float f16 = DecodeF16(half), bf16 = DecodeBF16(half);
    const double want16 = ElementAsDouble(DType::kF16, reinterpret_cast<const char*>(&half));
    const double wantb16 = ElementAsDouble(DType::kBF16, reinterpret_cast<const char*>(&half));
    ASSERT_TRUE(f16 == want16 || (std::isnan(f16) && std::isnan(want16))) << bits;
    ASSERT_TRUE(bf16 == wantb16 || (std::isnan(bf16) && std::isnan(wantb16))) << bits;
    if (!std::isnan(f16)) {
      ASSERT_EQ(EncodeF16(f16), half);
    }
    if (!std::isnan(bf16)) {
      ASSERT_EQ(EncodeBF16(bf16), half);
    }
  }
}

TEST(SmallFloat, RoundsToNearestEven) {
  for (float value :
       {1.0f + 0x1p-11f, 1.0f + 0x1p-9f, 65519.9f, 65520.0f, 0x1p-25f, 0x1.8p-24f, 1e-30f, 3.14159f, -0.1f, 1e30f}) {
    uint16_t f16, bf16;
    StoreDouble(DType::kF16, value, reinterpret_cast<char*>(&f16));
    StoreDouble(DType::kBF16, value, reinterpret_cast<char*>(&bf16));
    EXPECT_EQ(EncodeF16(value), f16) << value;
    EXPECT_EQ(EncodeBF16(value), bf16) << value;
  }
}

TEST(Exchange, AllReduceInPlaceInPieces) {
  constexpr int kMembers = 4, kCount = 20000;
  Arrays in(kMembers, DType::kF32, {kCount});
  for (int m = 0; m < kMembers; ++m) {
    for (int i = 0; i < kCount; ++i) in.data<float>(m)[i] = static_cast<float>(i + m);
  }
  ASSERT_TRUE(RunAll(GroupOp(Kind::kAllReduce, kMembers), in, in, kMembers, /*pieces=*/3).ok());
  for (int m = 0; m < kMembers; ++m) {
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(in.data<float>(m)[i], 4.0f * i + 6);
  }
}

// The value at a global index, so that every layout change can be checked by position.
void FillIota(Arrays& arrays, int members, int64_t count) {
  for (int m = 0; m < members; ++m) {
    for (int64_t i = 0; i < count; ++i) arrays.data<int32_t>(m)[i] = static_cast<int32_t>(1000 * m + i);
  }
}

TEST(Exchange, AllGatherAlongEveryDimension) {
  for (int dimension = 0; dimension < 3; ++dimension) {
    absl::InlinedVector<int64_t, 6> dims = {2, 3, 4}, gathered = dims;
    gathered[dimension] *= 2;
    Arrays in(2, DType::kS32, dims), out(2, DType::kS32, gathered);
    FillIota(in, 2, 24);
    Op op = GroupOp(Kind::kAllGather, 2);
    op.dimension = dimension;
    ASSERT_TRUE(RunAll(op, in, out, 2, 2).ok());
    for (int m = 0; m < 2; ++m) {
      int64_t at = 0;
      for (int64_t i = 0; i < gathered[0]; ++i) {
        for (int64_t j = 0; j < gathered[1]; ++j) {
          for (int64_t k = 0; k < gathered[2]; ++k) {
            int64_t index[] = {i, j, k};
            const int64_t source = index[dimension] / dims[dimension];
            index[dimension] %= dims[dimension];
            ASSERT_EQ(out.data<int32_t>(m)[at++], 1000 * source + (index[0] * 3 + index[1]) * 4 + index[2]);
          }
        }
      }
    }
  }
}

TEST(Exchange, ReduceScatterAlongEveryDimension) {
  for (int dimension = 0; dimension < 2; ++dimension) {
    absl::InlinedVector<int64_t, 6> dims = {4, 6}, scattered = dims;
    scattered[dimension] /= 2;
    Arrays in(2, DType::kS32, dims), out(2, DType::kS32, scattered);
    FillIota(in, 2, 24);
    Op op = GroupOp(Kind::kReduceScatter, 2);
    op.dimension = dimension;
    ASSERT_TRUE(RunAll(op, in, out, 2, 2).ok());
    for (int m = 0; m < 2; ++m) {
      for (int64_t i = 0; i < scattered[0]; ++i) {
        for (int64_t j = 0; j < scattered[1]; ++j) {
          const int64_t row = i + (dimension == 0 ? m * scattered[0] : 0);
          const int64_t column = j + (dimension == 1 ? m * scattered[1] : 0);
          ASSERT_EQ(out.data<int32_t>(m)[i * scattered[1] + j], 1000 + 2 * (row * 6 + column));
        }
      }
    }
  }
}

TEST(Exchange, AllToAllBetweenAllPairsOfDimensions) {
  constexpr int kMembers = 2;
  const absl::InlinedVector<int64_t, 6> dims = {2, 4, 6};
  for (int split = 0; split < 3; ++split) {
    for (int concat = 0; concat < 3; ++concat) {
      absl::InlinedVector<int64_t, 6> piece = dims;
      piece[split] /= kMembers;
      absl::InlinedVector<int64_t, 6> out_dims = piece;
      out_dims[concat] *= kMembers;
      Arrays in(kMembers, DType::kS32, dims), out(kMembers, DType::kS32, out_dims);
      FillIota(in, kMembers, 48);
      Op op = GroupOp(Kind::kAllToAll, kMembers);
      op.dimension = split;
      op.concat_dimension = concat;
      ASSERT_TRUE(RunAll(op, in, out, kMembers).ok());
      for (int m = 0; m < kMembers; ++m) {
        for (int64_t i = 0; i < out_dims[0]; ++i) {
          for (int64_t j = 0; j < out_dims[1]; ++j) {
            for (int64_t k = 0; k < out_dims[2]; ++k) {
              int64_t at[] = {i, j, k};
              const int64_t source = at[concat] / piece[concat];
              at[concat] %= piece[concat];
              at[split] += m * piece[split];
              ASSERT_EQ(out.data<int32_t>(m)[(i * out_dims[1] + j) * out_dims[2] + k],
                        1000 * source + (at[0] * 4 + at[1]) * 6 + at[2])
                  << split << " to " << concat;
            }
          }
        }
      }
    }
  }
}

TEST(Exchange, PermuteAndZeros) {
  Op op;
  op.kind = Kind::kPermute;
  op = *MakePermuteOp(op, {0, 1, 1, 2}, 4);
  EXPECT_EQ(op.groups, (std::vector<std::vector<int>>{{0, 1, 2}}));
  EXPECT_EQ(op.group_of[3], -1);
  Arrays in(3, DType::kS32, {2}), out(3, DType::kS32, {2});
  FillIota(in, 3, 2);
  ASSERT_TRUE(RunAll(op, in, out, 3).ok());
  EXPECT_EQ(out.data<int32_t>(0)[1], 0);
  EXPECT_EQ(out.data<int32_t>(1)[1], 1);
  EXPECT_EQ(out.data<int32_t>(2)[1], 1001);
}

TEST(Exchange, GatherOfPackedElementsThatEndInTheMiddleOfAByte) {
  Arrays in(2, DType::kS4, {3}), out(2, DType::kS4, {6});
  for (int m = 0; m < 2; ++m) {
    const int8_t values[] = {static_cast<int8_t>(m), -8, 7};
    Pack(DType::kS4, in.data<char>(m), 0, values, 3);
  }
  ASSERT_TRUE(RunAll(GroupOp(Kind::kAllGather, 2), in, out, 2).ok());
  int8_t got[6];
  Unpack(DType::kS4, got, out.data<char>(1), 0, 6);
  EXPECT_THAT(got, ::testing::ElementsAre(0, -8, 7, 1, -8, 7));
}

TEST(Exchange, EmptyArraysAreFine) {
  Arrays in(2, DType::kF32, {0, 4}), out(2, DType::kF32, {0, 8});
  Op op = GroupOp(Kind::kAllGather, 2);
  op.dimension = 1;
  EXPECT_TRUE(RunAll(op, in, out, 2).ok());
}

TEST(Exchange, WrongShapesAreNamed) {
  Arrays in(2, DType::kF32, {3}), out(2, DType::kF32, {3});
  Op op = GroupOp(Kind::kReduceScatter, 2);
  op.key = 7;
  const absl::Status status = RunAll(op, in, out, 2);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("reduce-scatter (key 7): dimension 0 of f32[3] is not a multiple of 2"));
}

TEST(Op, GroupsMayDifferInSize) {
  const Op op = *MakeGroupOp(Op(), {4, kNobody, kNobody, 0, 2, 3, 1, 5, kNobody}, 3, 6);
  EXPECT_EQ(op.groups, (std::vector<std::vector<int>>{{4}, {0, 2, 3}, {1, 5}}));
  EXPECT_EQ(op.group_of, (std::vector<int>{1, 2, 1, 1, 0, 2}));
  EXPECT_EQ(op.rank_of, (std::vector<int>{0, 0, 1, 2, 0, 1}));
}

TEST(Op, GroupsAreChecked) {
  Op op;
  EXPECT_THAT(std::string(MakeGroupOp(op, {0, 1, 2}, 2, 3).status().message()), HasSubstr("do not form groups of 2"));
  EXPECT_THAT(std::string(MakeGroupOp(op, {0, 5}, 2, 2).status().message()), HasSubstr("partition 5 is not one of 2"));
  EXPECT_THAT(std::string(MakeGroupOp(op, {0, 0}, 2, 2).status().message()), HasSubstr("in two places"));
  EXPECT_THAT(std::string(MakeGroupOp(op, {0, 1}, 2, 4).status().message()), HasSubstr("name 2 of 4"));
  op.kind = Kind::kReduceScatter;
  EXPECT_THAT(std::string(MakeGroupOp(op, {0, 1, 2, kNobody}, 2, 3).status().message()), HasSubstr("different sizes"));
  op.kind = Kind::kPermute;
  EXPECT_THAT(std::string(MakePermuteOp(op, {0, 2, 1, 2}, 3).status().message()), HasSubstr("target of two sources"));
  EXPECT_FALSE(ParseReduction("mean").ok());
}

}  // namespace
}  // namespace gangway::collective

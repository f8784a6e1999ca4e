#include "gangway/tensor/literal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "absl/strings/numbers.h"
#include "gangway/tensor/float_format.h"

namespace gangway {
namespace {

using ::testing::ElementsAre;

double RoundTrip(DType dtype, double value) {
  char element[16] = {};
  StoreDouble(dtype, value, element);
  return ElementAsDouble(dtype, element);
}

int64_t RoundTripInt(DType dtype, int64_t value) {
  char element[16] = {};
  StoreInt64(dtype, value, element);
  return ElementAsInt64(dtype, element);
}

TEST(FloatFormatTest, RoundsAsMlDtypesDoes) {
  std::ifstream table("gangway/tensor/testdata/small_floats.txt");
  ASSERT_TRUE(table.good());
  std::string name, wide, small;
  int count = 0;
  while (table >> name >> wide >> small) {
    FloatFormat format = FormatOf(*ParseDType(name));
    uint64_t value_bits = std::stoull(wide, nullptr, 16);
    double value;
    std::memcpy(&value, &value_bits, sizeof(value));
    ASSERT_EQ(EncodeFloat(format, value), std::stoul(small, nullptr, 16)) << name << " of " << value;
    ++count;
  }
  EXPECT_GT(count, 2000);
}

TEST(FloatFormatTest, EveryCodeSurvivesDecodeAndEncode) {
  for (const DTypeInfo& info : AllDTypes()) {
    FloatFormat format = FormatOf(info.dtype);
    if (format.bits() <= 1) continue;
    ASSERT_EQ(format.bits(), info.bits) << info.name;
    for (uint32_t code = 0; code < (1u << info.bits); ++code) {
      double value = DecodeFloat(format, code);
      if (std::isnan(value)) continue;
      ASSERT_EQ(EncodeFloat(format, value), code) << info.name;
    }
  }
}

TEST(LiteralTest, IntegersWrapAndExtend) {
  EXPECT_EQ(RoundTripInt(DType::kS4, 9), -7);
  EXPECT_EQ(RoundTripInt(DType::kU4, 17), 1);
  EXPECT_EQ(RoundTripInt(DType::kS2, 2), -2);
  EXPECT_EQ(RoundTripInt(DType::kU2, 7), 3);
  EXPECT_EQ(RoundTripInt(DType::kS1, 1), -1);
  EXPECT_EQ(RoundTripInt(DType::kS8, 200), -56);
  EXPECT_EQ(RoundTripInt(DType::kU32, -1), 4294967295);
  EXPECT_EQ(RoundTripInt(DType::kU64, -1), -1);
  char element = 0;
  StoreInt64(DType::kS4, -3, &element);
  EXPECT_EQ(static_cast<int8_t>(element), -3);  // sign-extended in its byte
}

TEST(LiteralTest, FloatsBecomeTheNearestIntegerInRange) {
  EXPECT_EQ(RoundTrip(DType::kS8, 1000), 127);
  EXPECT_EQ(RoundTrip(DType::kS8, -1000), -128);
  EXPECT_EQ(RoundTrip(DType::kS32, -2.9), -2);
  EXPECT_EQ(RoundTrip(DType::kU8, -3), 0);
  EXPECT_EQ(RoundTrip(DType::kU4, 99), 15);
  EXPECT_EQ(RoundTrip(DType::kS64, 1e300), 9223372036854775808.0);
  EXPECT_EQ(RoundTrip(DType::kU64, 1e300), 18446744073709551616.0);
  EXPECT_EQ(RoundTrip(DType::kS32, std::numeric_limits<double>::quiet_NaN()), 0);
  EXPECT_EQ(RoundTrip(DType::kPred, 0.5), 1);
}

TEST(LiteralTest, WideFloatsAndComplexKeepTheirParts) {
  EXPECT_EQ(RoundTrip(DType::kF64, 0.1), 0.1);
  EXPECT_EQ(RoundTrip(DType::kF32, 0.1), 0.1f);
  char element[16];
  StoreComplex(DType::kC64, 1.5, -2.5, element);
  EXPECT_EQ(ElementAsDouble(DType::kC64, element), 1.5);
  EXPECT_EQ(ImaginaryAsDouble(DType::kC64, element), -2.5);
  StoreDouble(DType::kC128, 3, element);
  EXPECT_EQ(ImaginaryAsDouble(DType::kC128, element), 0);
}

TEST(LiteralTest, SplatFillsEveryLeaf) {
  Shape shape = Shape::Tuple({Shape(DType::kBF16, {2, 2}), Shape(DType::kS32, {3})});
  Literal literal = SplatLiteral(shape, 2);
  EXPECT_EQ(literal.elements()[0].values<uint16_t>()[3], 0x4000);
  EXPECT_THAT(literal.elements()[1].values<int32_t>(), ElementsAre(2, 2, 2));
  EXPECT_TRUE(literal.elements()[1].IsSplat());
  EXPECT_FALSE(literal.IsSplat());
  EXPECT_FALSE(Literal(Shape(DType::kF32, {0})).IsSplat());
  EXPECT_EQ(literal, SplatLiteral(shape, 2));
}

TEST(LiteralTest, EqualityIsByBits) {
  Literal a = Literal::FromSpan<float>(DType::kF32, {2}, {0.0f, 1.0f});
  Literal b = Literal::FromSpan<float>(DType::kF32, {2}, {-0.0f, 1.0f});
  EXPECT_FALSE(a == b);
  EXPECT_FALSE(a.IsSplat());
}

}  // namespace
}  // namespace gangway

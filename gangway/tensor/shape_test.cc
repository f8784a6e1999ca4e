#include "gangway/tensor/shape.h"

#include <gtest/gtest.h>

namespace gangway {
namespace {

TEST(ShapeTest, TextBothWays) {
  for (const char* text : {"f32[]", "bf16[2,3]", "(s32[], f32[4])", "token[]", "()", "pred[0,5]", "f32[<=8,4]"}) {
    absl::StatusOr<Shape> shape = ParseShape(text);
    ASSERT_TRUE(shape.ok()) << shape.status();
    EXPECT_EQ(shape->ToString(), text);
  }
  EXPECT_EQ(ParseShape("f32[2,3]{1,0:T(8,128)S(5)}")->ToString(true), "f32[2,3]{1,0:T(8,128)S(5)}");
}

TEST(ShapeTest, MalformedTextIsAnError) {
  for (const char* text : {"", "f32", "f32[", "f32[2", "f32[x]", "q7[2]", "(f32[]", "f32[2]]",
                           "f32[99999999999999999999]", "f32[2]{1,0", "f32[-1]"}) {
    EXPECT_FALSE(ParseShape(text).ok()) << text;
  }
  EXPECT_FALSE(ParseShape(std::string(100, '(')).ok());  // nested too deeply
}

TEST(ShapeTest, SizesAndLeaves) {
  Shape shape = *ParseShape("(f32[2,3], (s4[5], token[]), bf16[])");
  EXPECT_EQ(shape.ByteSize(), 24 + 5 + 2);
  EXPECT_EQ(LeafCount(shape), 4);
  EXPECT_EQ(Leaves(shape)[3].ToString(), "bf16[]");
  EXPECT_TRUE(Shape::Compatible(*ParseShape("f32[2,3]{0,1}"), *ParseShape("f32[2,3]")));
}

TEST(ShapeTest, ValidationBoundsSizesAndLayouts) {
  EXPECT_TRUE(ValidateShape(*ParseShape("f32[1024,1024]{0,1}")).ok());
  EXPECT_FALSE(ValidateShape(Shape(DType::kF32, {int64_t{1} << 40, int64_t{1} << 40})).ok());
  EXPECT_FALSE(ValidateShape(Shape(DType::kF32, {-1})).ok());
  Shape bad(DType::kF32, {2, 2});
  bad.set_layout(Layout{{0, 0}, ""});
  EXPECT_FALSE(ValidateShape(bad).ok());
}

}  // namespace
}  // namespace gangway

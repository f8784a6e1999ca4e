// The container on hand-made bytes; whole artifacts are read by the tests of gangway/stablehlo.
#include <string>

#include "gangway/stablehlo/bytecode/artifact.h"
#include "gangway/stablehlo/bytecode/cursor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::bytecode {
namespace {

using ::testing::HasSubstr;

TEST(CursorTest, VarintLengthIsInTheLowBitsOfTheFirstByte) {
  EXPECT_EQ(Cursor("\x03").Varint().value(), 1u);
  EXPECT_EQ(Cursor("\xC7").Varint().value(), 0x63u);
  EXPECT_EQ(Cursor(absl::string_view("\x02\x04", 2)).Varint().value(), 256u);
  EXPECT_EQ(Cursor(std::string("\x00", 1) + std::string(8, '\xFF')).Varint().value(), ~uint64_t{0});
  // Seven more bytes.
  EXPECT_EQ(Cursor(std::string("\x80", 1) + std::string(6, '\0') + "\x01").Varint().value(), uint64_t{1} << 48);
}

TEST(CursorTest, SignedVarintIsZigzag) {
  EXPECT_EQ(Cursor("\x03").SignedVarint().value(), -1);
  EXPECT_EQ(Cursor("\x05").SignedVarint().value(), 1);
  EXPECT_EQ(Cursor(std::string("\x00", 1) + std::string(8, '\xFF')).SignedVarint().value(), INT64_MIN);
}

TEST(CursorTest, EndInsideAnIntegerNamesTheOffset) {
  EXPECT_THAT(Cursor(absl::string_view("\x02", 1), 100).Varint().status().message(),
              HasSubstr("byte 101: unexpected end inside an integer"));
}

TEST(CursorTest, CountsAreBoundedByTheBytesLeft) {
  Cursor cursor("\xC7 few");
  EXPECT_THAT(cursor.Count("apples").status().message(), HasSubstr("byte 0: 99 apples do not fit in the 4 bytes left"));
}

TEST(CursorTest, NarrowIntegersAreOneByteAndKeepTheirWidth) {
  EXPECT_EQ(Cursor("\xFD").Bits(8).value(), 0xFDu);
  EXPECT_EQ(Cursor("\xFE").Bits(4).value(), 0xEu);
}

TEST(CursorTest, AlignmentMustBeAPowerOfTwoAndPaddedWithCB) {
  EXPECT_FALSE(Cursor("\xCB\xCB\xCB", 1).Align(3).ok());
  EXPECT_TRUE(Cursor("\xCB\xCB\xCB", 1).Align(4).ok());
  EXPECT_FALSE(Cursor("xyz", 1).Align(4).ok());
}

TEST(ContainerTest, RefusesOtherFilesAndNewerVersions) {
  EXPECT_THAT(Container::Parse("").status().message(), HasSubstr("magic number"));
  EXPECT_THAT(Container::Parse("module {}").status().message(), HasSubstr("magic number"));
  EXPECT_THAT(Container::Parse(absl::string_view("ML\xEFR\x0F", 5)).status().message(),
              HasSubstr("version 7 is newer"));
  EXPECT_THAT(Container::Parse(absl::string_view("ML\xEFR\x0Dproducer\0", 14)).status().message(),
              HasSubstr("section 0 is missing"));
}

TEST(ContainerTest, RefusesASectionThatAppearsTwice) {
  const std::string file = std::string("ML\xEFR\x0Dp\0", 7) + std::string("\x05\x01\x05\x01", 4);
  EXPECT_THAT(Container::Parse(file).status().message(), HasSubstr("byte 9: section 5 appears twice"));
}

}  // namespace
}  // namespace gangway::bytecode

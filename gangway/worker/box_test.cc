#include "gangway/worker/box.h"

#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::worker {
namespace {

using testing::ElementsAre;

std::vector<int32_t> Copied(const net::Dims& from, const net::Dims& start, const net::Dims& to, const net::Dims& at,
                            const net::Dims& extent) {
  auto count = [](const net::Dims& dims) {
    return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  };
  std::vector<int32_t> source(count(from)), target(count(to), -1);
  std::iota(source.begin(), source.end(), 0);
  CopyBox(reinterpret_cast<const std::byte*>(source.data()), {from, start}, reinterpret_cast<std::byte*>(target.data()),
          {to, at}, extent, sizeof(int32_t));
  return target;
}

TEST(BoxTest, RowsMoveWhole) {
  EXPECT_THAT(Copied({3, 2}, {1, 0}, {4, 2}, {2, 0}, {2, 2}), ElementsAre(-1, -1, -1, -1, 2, 3, 4, 5));
}

TEST(BoxTest, ColumnsMoveByRow) {
  EXPECT_THAT(Copied({2, 3}, {0, 1}, {2, 2}, {0, 0}, {2, 2}), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(Copied({2, 2}, {0, 1}, {2, 3}, {0, 2}, {2, 1}), ElementsAre(-1, -1, 1, -1, -1, 3));
}

TEST(BoxTest, InnerBoxesOfThreeDimensions) {
  EXPECT_THAT(Copied({2, 2, 3}, {0, 1, 1}, {2, 1, 2}, {0, 0, 0}, {2, 1, 2}), ElementsAre(4, 5, 10, 11));
  EXPECT_THAT(Copied({2, 1, 2}, {0, 0, 0}, {2, 2, 2}, {0, 1, 0}, {2, 1, 2}), ElementsAre(-1, -1, 0, 1, -1, -1, 2, 3));
}

TEST(BoxTest, ScalarsAndNothing) {
  EXPECT_THAT(Copied({}, {}, {}, {}, {}), ElementsAre(0));
  EXPECT_THAT(Copied({2, 2}, {0, 0}, {1, 1}, {0, 0}, {0, 1}), ElementsAre(-1));
}

TEST(BoxTest, WhatLeavesTheArrayIsRefused) {
  EXPECT_TRUE(CheckBox({4, 4}, {0, 2}, {4, 2}).ok());
  EXPECT_FALSE(CheckBox({4, 4}, {0, 3}, {4, 2}).ok());
  EXPECT_FALSE(CheckBox({4, 4}, {-1, 0}, {4, 2}).ok());
  EXPECT_FALSE(CheckBox({4, 4}, {0, 0}, {4, -1}).ok());
  EXPECT_FALSE(CheckBox({4, 4}, {0}, {4}).ok());
  EXPECT_FALSE(CheckBox({4}, {INT64_MAX}, {INT64_MAX}).ok());
}

}  // namespace
}  // namespace gangway::worker

#include "gangway/resource/memory_book.h"

#include "gtest/gtest.h"

namespace gangway::resource {
namespace {

class MemoryBookTest : public testing::Test {
 protected:
  MemoryBookTest() {
    book_.AddDevice(100);
    book_.AddDevice(50);
    book_.AddDevice(0);
  }
  ClaimRef Claim(std::vector<DeviceId> devices, int64_t bytes) {
    auto claim = std::make_shared<MemoryBook::Claim>(book_, std::move(devices), bytes);
    claim->Take();
    return claim;
  }
  const DeviceId a_{0}, b_{1}, unlimited_{2};
  MemoryBook book_;
};

TEST_F(MemoryBookTest, ClaimsLastAsLongAsTheirReferences) {
  auto both = Claim({a_, b_}, 40);
  both->Take();
  EXPECT_EQ(book_[a_].claimed, 40);
  EXPECT_EQ(book_.Full({a_, b_}, 11), b_);
  EXPECT_EQ(book_.Full({a_, b_}, 10), std::nullopt);
  EXPECT_EQ(book_.Full({unlimited_}, 1 << 30), std::nullopt);
  auto shared = both;
  both.reset();
  EXPECT_EQ(book_[b_].claimed, 40);
  int heard = 0;
  book_.OnRelease([&] { ++heard; });
  shared.reset();
  EXPECT_EQ(book_[a_].claimed + book_[b_].claimed, 0);
  EXPECT_EQ(heard, 1);
}

TEST_F(MemoryBookTest, WhatIsNotTakenHoldsNothing) {
  auto claim = std::make_shared<MemoryBook::Claim>(book_, std::vector<DeviceId>{a_}, 99);
  EXPECT_EQ(book_[a_].claimed, 0);
  EXPECT_EQ(book_.TooSmall({a_, b_}, 60), b_);
  EXPECT_EQ(book_.TooSmall({a_, unlimited_}, 60), std::nullopt);
}

TEST_F(MemoryBookTest, TheLeastLimitIsKnownOnlyWhereAllAre) {
  auto claim = Claim({b_}, 50);  // who has it is of no account
  EXPECT_EQ(book_.LeastLimit({a_, b_}), 50);
  EXPECT_EQ(book_.LeastLimit({a_, unlimited_}), 0);
  EXPECT_EQ(book_.LeastLimit({}), 0);
}

TEST_F(MemoryBookTest, AWorkerThatComesBackIsEmpty) {
  auto before = Claim({a_, b_}, 30);
  book_.Reset(a_, 80);
  auto after = Claim({a_}, 5);
  EXPECT_EQ(book_[a_].claimed, 5);
  before.reset();
  EXPECT_EQ(book_[a_].claimed, 5);
  EXPECT_EQ(book_[b_].claimed, 0);
  EXPECT_EQ(book_[a_].limit, 80);
}

}  // namespace
}  // namespace gangway::resource

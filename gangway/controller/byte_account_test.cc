#include "gangway/controller/byte_account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gangway::controller {
namespace {

TEST(ByteAccount, RefusesWhatIsBeyondItsLimit) {
  ByteAccount account("tenant red", "max_host_bytes", 100);
  EXPECT_TRUE(account.Add(60).ok());
  EXPECT_EQ(account.Add(50).message(),
            "tenant red: 50 B more on their way are beyond its max_host_bytes of 100 B, of which 60 B are taken");
  EXPECT_EQ(account.bytes(), 60);
  EXPECT_TRUE(account.Check(40).ok());
  account.AddAnyway(50);
  EXPECT_FALSE(account.Check(1).ok());
  EXPECT_TRUE(account.Check(0).ok()) << "it takes nothing";
  account.Remove(110);
  EXPECT_TRUE(account.Add(100).ok());
}

TEST(ByteAccount, MayHaveNone) {
  ByteAccount account("tenant red", "max_host_bytes", 0);
  EXPECT_TRUE(account.Add(int64_t{1} << 60).ok());
}

}  // namespace
}  // namespace gangway::controller

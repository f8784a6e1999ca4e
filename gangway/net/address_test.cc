#include "gangway/net/address.h"

#include "gtest/gtest.h"

namespace gangway::net {
namespace {

TEST(Address, IsAHostAndAPort) {
  EXPECT_EQ(ParseAddress("host1:70")->host, "host1");
  EXPECT_EQ(ParseAddress("host1:70")->port, 70);
  EXPECT_EQ(ParseAddress("[::1]:0")->host, "::1");
  for (const char* wrong : {"", "host", "host:", "host:port", "host:65536", "host:-1", "unix:/x"}) {
    EXPECT_FALSE(ParseAddress(wrong).ok()) << wrong;
  }
  EXPECT_EQ(WithPort("[::]:0", 7), "[::]:7");
}

TEST(Address, OfThisMachineOnly) {
  for (const char* here : {"127.0.0.1:1", "127.1.2.3:1", "localhost:1", "[::1]:1", "unix:/x"}) {
    EXPECT_TRUE(IsLoopback(here)) << here;
  }
  for (const char* elsewhere : {"0.0.0.0:1", "10.0.0.1:1", "[::]:1", ":1", "localhost.example.org:1", "127.0.0.1"}) {
    EXPECT_FALSE(IsLoopback(elsewhere)) << elsewhere;
  }
}

}  // namespace
}  // namespace gangway::net

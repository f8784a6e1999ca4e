#include "gangway/net/tcp/socket.h"

#include <sys/resource.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace gangway::net {
namespace {

// As many descriptors as there are now.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

TEST(SocketTest, AListenerOutlastsALackOfDescriptors) {
  const Socket listener = *ListenTcp("127.0.0.1", 0);
  const Socket client = *ConnectTcp(absl::StrCat("127.0.0.1:", listener.port()));
  bool accepted = false;
  std::thread acceptor;
  {
    const NoMoreDescriptors none;
    acceptor = std::thread([&] { accepted = listener.Accept().valid(); });
    absl::SleepFor(absl::Milliseconds(100));  // so that it tries: the outcome is the same if it does not
  }
  acceptor.join();
  EXPECT_TRUE(accepted);
}

TEST(SocketTest, AListenerThatIsShutEndsInALackOfDescriptors) {
  const Socket listener = *ListenTcp("127.0.0.1", 0);
  const Socket client = *ConnectTcp(absl::StrCat("127.0.0.1:", listener.port()));
  const NoMoreDescriptors none;
  std::thread acceptor([&] { EXPECT_FALSE(listener.Accept().valid()); });
  listener.Shutdown();
  acceptor.join();
}

TEST(SocketTest, ALimitedReadEnds) {
  const Socket listener = *ListenTcp("127.0.0.1", 0);
  const Socket client = *ConnectTcp(absl::StrCat("127.0.0.1:", listener.port()));
  const Socket server = listener.Accept();
  server.LimitReads(absl::Milliseconds(10));
  char byte = 0;
  EXPECT_FALSE(server.ReadAll(&byte, 1));
  server.LimitReads(absl::InfiniteDuration());
  ASSERT_TRUE(client.WriteAll("x", 1));
  EXPECT_TRUE(server.ReadAll(&byte, 1));
}

TEST(SocketTest, OwnHostIsWhereConnectionsComeFrom) {
  EXPECT_EQ(*OwnHostTowards("127.0.0.1:1"), "127.0.0.1");
  EXPECT_FALSE(OwnHostTowards("no.such.host.invalid:1").ok());
  EXPECT_FALSE(OwnHostTowards("127.0.0.1").ok());
}

}  // namespace
}  // namespace gangway::net

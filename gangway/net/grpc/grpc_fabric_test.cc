#include "gangway/net/grpc/grpc_fabric.h"

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "gangway/net/cts/authority.h"
#include "gangway/net/cts/fabric_cts.h"
#include "gangway/net/tcp/socket.h"

namespace gangway::net {
namespace {

using FabricPair = std::pair<std::shared_ptr<Fabric>, std::shared_ptr<Fabric>>;

Authority& Ours() {
  static Authority& authority = *new Authority("ours");
  return authority;
}
const Tls& One() {
  static const Tls& tls = *new Tls(Ours().Certificate("one"));
  EXPECT_FALSE(tls.empty()) << "no openssl";
  return tls;
}
const Tls& Two() {
  static const Tls& tls = *new Tls(Ours().Certificate("two"));
  return tls;
}

FabricPair PairOf(const Tls& one, const Tls& two) {
  auto a = *MakeGrpcFabric("127.0.0.1:0", one);
  auto b = *MakeGrpcFabric("127.0.0.1:0", two);
  a->Introduce(PeerId(0));
  b->Introduce(PeerId(1));
  a->Connect(PeerId(1), "b", b->address());
  b->Connect(PeerId(0), "a", a->address());
  return {a, b};
}
FabricPair Open() { return PairOf({}, {}); }
// No certificate names an address: each is known as it is.
FabricPair Sealed() { return PairOf(One(), Two()); }
INSTANTIATE_TEST_SUITE_P(Open, FabricCts, testing::Values(Open));
INSTANTIATE_TEST_SUITE_P(Sealed, FabricCts, testing::Values(Sealed));

// What a parcel of a's becomes; b receives nothing where it is an error.
absl::Status Exchange(Fabric& a, Fabric& b, uint64_t subject) {
  const std::string large(1 << 20, 'x');
  std::string room(large.size(), ' ');
  Outcome sent, received;
  b.Receive(PeerId(0), {subject, 0, 0, 0}, room.data(), room.size(), received.done());
  a.Send(PeerId(1), {subject, 0, 0, 0}, large.data(), large.size(), sent.done());
  const absl::Status outcome = sent.Await();
  if (!outcome.ok()) {
    EXPECT_FALSE(received.ready());
    b.Abandon(subject, absl::CancelledError("its sender failed"));
    return outcome;
  }
  EXPECT_EQ(received.Await(), absl::OkStatus());
  EXPECT_EQ(room, large);
  return outcome;
}

TEST(GrpcFabricTest, AStrangerIsNotServed) {
  Authority theirs("theirs");
  for (const Tls& stranger : {theirs.Certificate("three"), Tls()}) {
    for (const bool calls : {true, false}) {
      const FabricPair pair = calls ? PairOf(stranger, One()) : PairOf(One(), stranger);
      const absl::Status outcome = Exchange(*pair.first, *pair.second, 1);
      EXPECT_EQ(outcome.code(), absl::StatusCode::kUnavailable);
      EXPECT_THAT(std::string(outcome.message()), testing::HasSubstr("the connection to worker b broke"));
    }
  }
}

// Of the same authority, but not the one whom the address means.
TEST(GrpcFabricTest, AnotherCertificateThanTheAnnouncedIsNotBelieved) {
  const FabricPair pair = PairOf(One(), Two());
  const FabricPair other = PairOf(One(), One());
  const std::vector<std::string> two = absl::StrSplit(pair.second->address(), '\n');
  const std::vector<std::string> one = absl::StrSplit(other.second->address(), '\n');
  pair.first->Connect(PeerId(1), "b", absl::StrCat(two[0], "\n", two[1], "\n", one[2]));
  EXPECT_EQ(Exchange(*pair.first, *pair.second, 1).code(), absl::StatusCode::kUnavailable);
  pair.first->Connect(PeerId(1), "b", pair.second->address());
  EXPECT_EQ(Exchange(*pair.first, *pair.second, 2), absl::OkStatus());
}

TEST(GrpcFabricTest, WhoDoesNotKnowTheSecretIsRefused) {
  const FabricPair pair = PairOf(One(), Two());
  const std::vector<std::string> parts = absl::StrSplit(pair.second->address(), '\n');
  pair.first->Connect(PeerId(1), "b", absl::StrCat(parts[0], "\n", std::string(32, '0'), "\n", parts[2]));
  const absl::Status outcome = Exchange(*pair.first, *pair.second, 1);
  EXPECT_THAT(std::string(outcome.message()), testing::HasSubstr("no worker of this cluster"));
}

TEST(GrpcFabricTest, AddressesThatDoNotWork) {
  auto fabric = *MakeGrpcFabric("127.0.0.1:0", {});
  const std::vector<std::string> parts = absl::StrSplit(fabric->address(), '\n');
  const absl::Status taken = MakeGrpcFabric(parts[0], {}).status();
  EXPECT_EQ(taken.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(taken.message()), testing::HasSubstr(parts[0]));
  EXPECT_FALSE(MakeGrpcFabric("127.0.0.1:0", {One().authorities, "nonsense", "nonsense"}).ok());
  fabric->Connect(PeerId(1), "b", "nonsense");
  Outcome sent;
  fabric->Send(PeerId(1), {1, 0, 0, 0}, "x", 1, sent.done());
  EXPECT_THAT(std::string(sent.Await().message()), testing::HasSubstr("worker b has no address"));
}

// A wire that can be cut: what connects to it is carried to `target`.
class Wire {
 public:
  explicit Wire(std::string target) : target_(std::move(target)), listener_(*ListenTcp("127.0.0.1", 0)) {
    thread_ = std::thread([this] { Serve(); });
  }
  ~Wire() {
    stopping_ = true;
    listener_.Shutdown();
    Cut();
    thread_.join();
    for (std::thread& carrier : carriers_) carrier.join();
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", listener_.port()); }
  void Cut() {
    absl::MutexLock lock(&mutex_);
    for (const auto& socket : sockets_) socket->Shutdown();
  }

 private:
  void Serve() {
    while (!stopping_) {
      auto here = std::make_shared<Socket>(listener_.Accept());
      if (!here->valid()) return;
      absl::StatusOr<Socket> connected = ConnectTcp(target_);
      if (!connected.ok()) continue;
      auto there = std::make_shared<Socket>(*std::move(connected));
      {
        absl::MutexLock lock(&mutex_);
        sockets_.push_back(here);
        sockets_.push_back(there);
      }
      carriers_.emplace_back([here, there] { Carry(*here, *there); });
      carriers_.emplace_back([here, there] { Carry(*there, *here); });
    }
  }
  static void Carry(const Socket& from, const Socket& to) {
    char some[65536];
    for (size_t got; (got = from.ReadSome(some, sizeof some)) > 0;) {
      if (!to.WriteAll(some, got)) break;
    }
    from.Shutdown();
    to.Shutdown();
  }

  const std::string target_;
  const Socket listener_;
  std::atomic<bool> stopping_ = false;
  absl::Mutex mutex_;
  std::vector<std::shared_ptr<Socket>> sockets_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
  std::vector<std::thread> carriers_;  // the thread's
};

TEST(GrpcFabricTest, AConnectionThatBrokeIsMadeAgain) {
  const FabricPair pair = PairOf(One(), Two());
  const std::vector<std::string> parts = absl::StrSplit(pair.second->address(), '\n');
  Wire wire(parts[0]);
  pair.first->Connect(PeerId(1), "b", absl::StrReplaceAll(pair.second->address(), {{parts[0], wire.address()}}));
  for (uint64_t subject = 1; subject < 6; subject += 2) {
    ASSERT_EQ(Exchange(*pair.first, *pair.second, subject), absl::OkStatus()) << subject;
    // What waits when it breaks ends at both ends, and so does what comes later of the same subject.
    char room = 0;
    Outcome at_a, at_b, later;
    pair.first->Receive(PeerId(1), {subject + 1, 0, 0, 0}, &room, 1, at_a.done());
    pair.second->Receive(PeerId(0), {subject + 1, 0, 0, 0}, &room, 1, at_b.done());
    wire.Cut();
    EXPECT_THAT(std::string(at_a.Await().message()), testing::HasSubstr("the connection to worker b broke"));
    EXPECT_THAT(std::string(at_b.Await().message()), testing::HasSubstr("the connection to worker a broke"));
    pair.first->Send(PeerId(1), {subject + 1, 1, 0, 0}, &room, 1, later.done());
    EXPECT_EQ(later.Await().code(), absl::StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace gangway::net

#include "gangway/net/routed_fabric.h"

#include "gangway/net/cts/fabric_cts.h"
#include "gangway/net/inproc/inproc_fabric.h"

namespace gangway::net {
namespace {

using FabricPair = std::pair<std::shared_ptr<Fabric>, std::shared_ptr<Fabric>>;

// Two networks; ends of one do not reach the other.
struct Networks {
  InprocFabrics near, far;
  std::shared_ptr<Fabric> Make(const std::string& host) { return MakeRoutedFabric(host, near.Make(), far.Make()); }
};

FabricPair Met(std::shared_ptr<Fabric> a, std::shared_ptr<Fabric> b) {
  a->Introduce(PeerId(0));
  b->Introduce(PeerId(1));
  a->Connect(PeerId(1), "b", b->address());
  b->Connect(PeerId(0), "a", a->address());
  return {std::move(a), std::move(b)};
}
FabricPair OneHost() {
  Networks networks;
  return Met(networks.Make("x"), networks.Make("x"));
}
FabricPair TwoHosts() {
  Networks networks;
  return Met(networks.Make("x"), networks.Make("y"));
}
INSTANTIATE_TEST_SUITE_P(OneHost, FabricCts, testing::Values(OneHost));
INSTANTIATE_TEST_SUITE_P(TwoHosts, FabricCts, testing::Values(TwoHosts));

absl::Status SendFrom(const FabricPair& pair) {
  Outcome sent;
  pair.first->Send(PeerId(1), {1, 0, 0, 0}, "x", 1, sent.done());
  return sent.Await();
}

TEST(RoutedFabricTest, ParcelsGoByTheirPeersHost) {
  InprocFabrics near, far;
  for (const bool one_host : {true, false}) {
    const std::shared_ptr<Fabric> a_near = near.Make(), a_far = far.Make();
    const FabricPair pair =
        Met(MakeRoutedFabric("x", a_near, a_far), MakeRoutedFabric(one_host ? "x" : "y", near.Make(), far.Make()));
    EXPECT_EQ(SendFrom(pair), absl::OkStatus());
    EXPECT_EQ(a_near->sent_bytes(), one_host ? 1 : 0);
    EXPECT_EQ(a_far->sent_bytes(), one_host ? 0 : 1);
    EXPECT_EQ(pair.first->sent_bytes(), 1);
  }
}

TEST(RoutedFabricTest, WhoCannotBeReachedIsNamed) {
  InprocFabrics near, far;
  const auto closed = [&](const std::string& host) { return MakeRoutedFabric(host, near.Make(), nullptr); };
  const auto open = [&](const std::string& host) { return MakeRoutedFabric(host, near.Make(), far.Make()); };
  EXPECT_EQ(SendFrom(Met(closed("x"), closed("x"))), absl::OkStatus());
  for (const FabricPair& pair : {Met(closed("x"), open("y")), Met(open("x"), closed("y"))}) {
    EXPECT_EQ(SendFrom(pair).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(SendFrom(pair).message()), testing::HasSubstr("worker b shares no memory with this one"));
  }
}

TEST(RoutedFabricTest, AnAddressOfNoFabricIsAnError) {
  InprocFabrics near;
  const std::string good = MakeRoutedFabric("x", near.Make(), nullptr)->address();
  for (const std::string& address : {std::string(), good.substr(1), good.substr(0, good.size() - 3), good + "7:x",
                                     std::string("routed:99999999999999999999:"), std::string("routed:1:x")}) {
    auto fabric = MakeRoutedFabric("x", near.Make(), nullptr);
    fabric->Connect(PeerId(1), "b", address);
    Outcome sent;
    fabric->Send(PeerId(1), {1, 0, 0, 0}, "x", 1, sent.done());
    EXPECT_EQ(sent.Await().code(), absl::StatusCode::kInvalidArgument) << address;
  }
}

}  // namespace
}  // namespace gangway::net

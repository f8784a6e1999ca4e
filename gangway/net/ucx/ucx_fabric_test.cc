#include "gangway/net/ucx/ucx_fabric.h"

#include <sys/socket.h>

#include <cstdlib>

#include "gangway/net/cts/fabric_cts.h"

namespace gangway::net {
namespace {

using FabricPair = std::pair<std::shared_ptr<Fabric>, std::shared_ptr<Fabric>>;

// As if it came from another host: nobody tries to read that process's memory.
std::string FromElsewhere(std::string address) {
  address[0] = static_cast<char>(address[0] ^ 1);
  return address;
}

FabricPair PairOf(UcxReach reach, bool a_reads, bool b_reads) {
  auto a = *MakeUcxFabric(reach);
  auto b = *MakeUcxFabric(reach);
  a->Introduce(PeerId(0));
  b->Introduce(PeerId(1));
  a->Connect(PeerId(1), "b", a_reads ? b->address() : FromElsewhere(b->address()));
  b->Connect(PeerId(0), "a", b_reads ? a->address() : FromElsewhere(a->address()));
  return {a, b};
}

FabricPair SameHost() { return PairOf(UcxReach::kHost, true, true); }
// Everything is sent through the shared memory.
FabricPair Closed() { return PairOf(UcxReach::kHost, false, false); }
FabricPair OtherHosts() { return PairOf(UcxReach::kNetwork, false, false); }
// What is offered cannot be read, and is sent after all.
FabricPair OneReads() { return PairOf(UcxReach::kNetwork, true, false); }

INSTANTIATE_TEST_SUITE_P(SameHost, FabricCts, testing::Values(SameHost));
INSTANTIATE_TEST_SUITE_P(Closed, FabricCts, testing::Values(Closed));
INSTANTIATE_TEST_SUITE_P(OtherHosts, FabricCts, testing::Values(OtherHosts));
INSTANTIATE_TEST_SUITE_P(OneReads, FabricCts, testing::Values(OneReads));

// The TCP connections of this process.
void CutAll() {
  for (int descriptor = 3; descriptor < 1024; ++descriptor) {
    sockaddr_storage peer = {};
    socklen_t size = sizeof peer;
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) == 0 && peer.ss_family != AF_UNIX) {
      shutdown(descriptor, SHUT_RDWR);
    }
  }
}

absl::Status Exchange(const FabricPair& pair, uint64_t subject) {
  const std::string parcel(1000, 'x');
  std::string room(parcel.size(), ' ');
  Outcome sent, received;
  pair.second->Receive(PeerId(0), {subject, 0, 0, 0}, room.data(), room.size(), received.done());
  pair.first->Send(PeerId(1), {subject, 0, 0, 0}, parcel.data(), parcel.size(), sent.done());
  const absl::Status outcome = sent.Await();
  if (!outcome.ok()) return outcome;
  return received.Await();
}

TEST(UcxFabricTest, AConnectionThatBrokeIsMadeAgain) {
  setenv("UCX_TLS", "tcp,self", /*replace=*/1);
  const FabricPair pair = OtherHosts();
  unsetenv("UCX_TLS");
  for (uint64_t subject = 1; subject < 6; subject += 2) {
    ASSERT_EQ(Exchange(pair, subject), absl::OkStatus()) << subject;
    char room = 0;
    Outcome waiting, later;
    pair.first->Receive(PeerId(1), {subject + 1, 0, 0, 0}, &room, 1, waiting.done());
    CutAll();
    EXPECT_THAT(std::string(waiting.Await().message()), testing::HasSubstr("the connection to worker b broke"));
    pair.first->Send(PeerId(1), {subject + 1, 1, 0, 0}, &room, 1, later.done());
    EXPECT_EQ(later.Await().code(), absl::StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace gangway::net

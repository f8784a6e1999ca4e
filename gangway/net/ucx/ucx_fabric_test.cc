#include "gangway/net/ucx/ucx_fabric.h"

#include "gangway/net/cts/fabric_cts.h"

namespace gangway::net {
namespace {

using FabricPair = std::pair<std::shared_ptr<Fabric>, std::shared_ptr<Fabric>>;

// As if it came from another host: nobody tries to read that process's memory.
std::string FromElsewhere(std::string address) {
  address[0] = static_cast<char>(address[0] ^ 1);
  return address;
}

FabricPair PairOf(bool a_reads, bool b_reads) {
  auto a = *MakeUcxFabric();
  auto b = *MakeUcxFabric();
  a->Introduce(PeerId(0));
  b->Introduce(PeerId(1));
  a->Connect(PeerId(1), "b", a_reads ? b->address() : FromElsewhere(b->address()));
  b->Connect(PeerId(0), "a", b_reads ? a->address() : FromElsewhere(a->address()));
  return {a, b};
}

FabricPair SameHost() { return PairOf(true, true); }
FabricPair OtherHosts() { return PairOf(false, false); }
// What is offered cannot be read, and is sent after all.
FabricPair OneReads() { return PairOf(true, false); }

INSTANTIATE_TEST_SUITE_P(SameHost, FabricCts, testing::Values(SameHost));
INSTANTIATE_TEST_SUITE_P(OtherHosts, FabricCts, testing::Values(OtherHosts));
INSTANTIATE_TEST_SUITE_P(OneReads, FabricCts, testing::Values(OneReads));

}  // namespace
}  // namespace gangway::net

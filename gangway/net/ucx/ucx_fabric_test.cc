#include "gangway/net/ucx/ucx_fabric.h"

#include "gangway/net/cts/fabric_cts.h"

namespace gangway::net {
namespace {

std::pair<std::shared_ptr<Fabric>, std::shared_ptr<Fabric>> Pair() {
  auto a = *MakeUcxFabric();
  auto b = *MakeUcxFabric();
  a->Introduce(PeerId(0));
  b->Introduce(PeerId(1));
  a->Connect(PeerId(1), "b", b->address());
  b->Connect(PeerId(0), "a", a->address());
  return {a, b};
}

INSTANTIATE_TEST_SUITE_P(Ucx, FabricCts, testing::Values(Pair));

}  // namespace
}  // namespace gangway::net

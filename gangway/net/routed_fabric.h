// A fabric of two: one for peers of this host, one for all others.
#pragma once

#include <memory>
#include <string>

#include "gangway/net/fabric.h"

namespace gangway::net {

// Peers with the same `host` (host_card.h) are reached by `near`, others by `far`; without `far` they are not, which
// the errors say. Both ends of a connection are of such a fabric.
std::shared_ptr<Fabric> MakeRoutedFabric(std::string host, std::shared_ptr<Fabric> near, std::shared_ptr<Fabric> far);

}  // namespace gangway::net

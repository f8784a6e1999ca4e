// The part of a fabric that knows its own number: the same for every backend.
#pragma once

#include <atomic>
#include <cstdint>

#include "gangway/net/fabric.h"

namespace gangway::net {

class IntroducedFabric : public Fabric {
 public:
  void Introduce(PeerId self) final { self_ = self.value(); }
  PeerId self() const final { return PeerId(self_); }

 private:
  std::atomic<int32_t> self_ = -1;  // set by the worker's loop, read by whoever sends
};

}  // namespace gangway::net

// What is the same for every fabric: its own number, its counts, and that it calls with nothing locked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gangway/net/fabric.h"

namespace gangway::net {

// `done`s to be called once the lock is released.
using Calls = std::vector<std::pair<Fabric::Done, absl::Status>>;

inline void CallAll(Calls calls) {
  for (auto& [done, status] : calls) done(status);
}

class IntroducedFabric : public Fabric {
 public:
  void Introduce(PeerId self) final { self_ = self.value(); }
  PeerId self() const final { return PeerId(self_); }
  int64_t sent_bytes() const final { return sent_; }
  int64_t received_bytes() const final { return received_; }

 protected:
  void CountSent(size_t bytes) { sent_ += static_cast<int64_t>(bytes); }
  void CountReceived(size_t bytes) { received_ += static_cast<int64_t>(bytes); }

 private:
  std::atomic<int64_t> sent_ = 0, received_ = 0;
  std::atomic<int32_t> self_ = -1;  // set by the worker's loop, read by whoever sends
};

}  // namespace gangway::net

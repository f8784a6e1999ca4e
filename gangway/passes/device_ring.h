// The devices of each group of a collective as a ring: what a loop over shards passes on.
#pragma once

#include <cstdint>
#include <vector>

#include "gangway/hlo/builder.h"
#include "gangway/hlo/module.h"

namespace gangway::passes {

class DeviceRing {
 public:
  // Of a collective with groups of equal size. Channels are taken from `next_channel`.
  DeviceRing(const hlo::Instruction& collective, int64_t* next_channel);

  int64_t size() const { return size_; }
  // Even rings of four and more pass shards on in both directions at once.
  bool GoesBothWays() const;

  // s32[]: the device's place in its ring.
  hlo::Instruction* Place(hlo::Builder& builder) const;
  // What the device `from` places further on has; the ends meet.
  hlo::Instruction* Pass(hlo::Builder& builder, hlo::Instruction* shard, int64_t from) const;
  // A number less than a ring's size before or behind the ring, brought into it.
  hlo::Instruction* Wrapped(hlo::Builder& builder, hlo::Instruction* number) const;

 private:
  int64_t devices_ = 1, size_ = 1;
  std::vector<std::vector<int64_t>> groups_;
  int64_t* next_channel_;
};

}  // namespace gangway::passes

#include "gangway/passes/device_ring.h"

#include <utility>

#include "gangway/hlo/computation.h"

namespace gangway::passes {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

namespace {
constexpr int64_t kMinSizeOfBoth = 4;
}  // namespace

DeviceRing::DeviceRing(const Instruction& collective, int64_t* next_channel)
    : devices_(collective.parent()->module()->config().num_partitions),
      groups_(collective.attr<hlo::CollectiveAttr>().groups.Expand(devices_)),
      next_channel_(next_channel) {
  size_ = static_cast<int64_t>(groups_.front().size());
}

bool DeviceRing::GoesBothWays() const { return size_ >= kMinSizeOfBoth && size_ % 2 == 0; }

Instruction* DeviceRing::Place(Builder& builder) const {
  Literal places(Shape(DType::kS32, {devices_}));
  for (const std::vector<int64_t>& group : groups_) {
    for (size_t place = 0; place < group.size(); ++place) {
      StoreInt64(DType::kS32, static_cast<int64_t>(place), places.data() + group[place] * ByteWidth(DType::kS32));
    }
  }
  Instruction* device = builder.Convert(builder.PartitionId(), DType::kS32);
  return builder.Reshape(builder.DynamicSlice(builder.Constant(std::move(places)), {device}, {1}), {});
}

Instruction* DeviceRing::Pass(Builder& builder, Instruction* shard, int64_t from) const {
  hlo::CollectiveAttr attr;
  attr.channel_id = (*next_channel_)++;
  for (const std::vector<int64_t>& group : groups_) {
    for (int64_t place = 0; place < size_; ++place) {
      attr.source_target_pairs.emplace_back(group[(place + from + size_) % size_], group[place]);
    }
  }
  return builder.Add(Opcode::kCollectivePermute, {shard}, std::move(attr));
}

Instruction* DeviceRing::Wrapped(Builder& builder, Instruction* number) const {
  Instruction* n = builder.Index(size_);
  Instruction* below = builder.Compare(hlo::ComparisonDirection::kLt, number, builder.Index(0));
  number = builder.Select(below, builder.Binary(Opcode::kAdd, number, n), number);
  Instruction* above = builder.Compare(hlo::ComparisonDirection::kGe, number, n);
  return builder.Select(above, builder.Binary(Opcode::kSubtract, number, n), number);
}

}  // namespace gangway::passes

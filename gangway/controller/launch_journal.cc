#include "gangway/controller/launch_journal.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace gangway::controller {
namespace {

constexpr size_t kBlock = std::tuple_size_v<decltype(LaunchBlock::launches)>;

}  // namespace

void LaunchList::ForEach(absl::FunctionRef<void(const LaunchRecord&)> f) const {
  for (size_t i = first_; i < last_; ++i) f(blocks_[i / kBlock]->launches[i % kBlock]);
}

void LaunchJournal::Count(bool failed) {
  ++next_;
  failed_ += failed ? 1 : 0;
}

void LaunchJournal::Add(LaunchRecord launch) {
  const size_t position = next_ - first_;
  if (position == blocks_.size() * kBlock) blocks_.push_back(std::make_shared<LaunchBlock>());
  launch.number = next_;
  Count(!launch.error.empty());
  // Whoever looks meanwhile, elsewhere, looks at those before it only.
  blocks_[position / kBlock]->launches[position % kBlock] = std::move(launch);
  if (next_ - first_ >= capacity_ + kBlock) {
    blocks_.pop_front();
    first_ += kBlock;
  }
}

LaunchList LaunchJournal::After(uint64_t after) const {
  LaunchList list;
  const uint64_t oldest = std::max(first_, next_ - std::min<uint64_t>(next_, capacity_));
  const uint64_t from = after < oldest ? oldest : after + 1;
  if (from >= next_) return list;
  const size_t skipped = (from - first_) / kBlock;
  list.blocks_.assign(blocks_.begin() + skipped, blocks_.end());
  list.first_ = from - first_ - skipped * kBlock;
  list.last_ = next_ - first_ - skipped * kBlock;
  return list;
}

}  // namespace gangway::controller

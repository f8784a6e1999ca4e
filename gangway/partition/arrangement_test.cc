#include "gangway/partition/arrangement.h"

#include <random>
#include <set>
#include <vector>

#include "gangway/mesh/geometry.h"
#include "gtest/gtest.h"

namespace gangway::partition {
namespace {

using Kind = StretchSource::Kind;

constexpr int64_t kNothing = -1;

// Element i of source s is s * 1000 + i; what a shard of it holds at a position.
int64_t ElementAt(const StretchSource& source, int index, int64_t shards, int64_t shard, int64_t position) {
  const int64_t tile = source.kind == Kind::kSplit ? ShardExtent(source.extent, shards) : source.extent;
  const int64_t begin = source.kind == Kind::kSplit ? shard * tile : 0;
  const int64_t element = source.mirrored ? begin + tile - 1 - position : begin + position;
  return element < source.extent ? index * 1000 + element : kNothing;
}

// Carries out the plan and compares every element that a stretch names.
void CheckPlan(const ArrangementPlan& plan, const std::vector<Stretch>& stretches) {
  const int64_t tile = plan.Tile();
  std::vector<int64_t> result(plan.shards * tile, kNothing);
  for (const auto* rounds : {&plan.local, &plan.remote}) {
    for (const TransferRound& round : *rounds) {
      std::set<int64_t> senders, receivers;
      for (const Transfer& t : round.transfers) {
        EXPECT_TRUE(senders.insert(t.sender).second && receivers.insert(t.receiver).second) << plan.ToString();
        EXPECT_EQ(t.sender == t.receiver, rounds == &plan.local) << plan.ToString();
        EXPECT_LE(t.length, round.length);
        for (int64_t i = 0; i < t.length; ++i) {
          int64_t& place = result[t.receiver * tile + t.to + i];
          EXPECT_EQ(place, kNothing) << "written twice\n" << plan.ToString();
          place = ElementAt(plan.sources[t.source], t.source, plan.shards, t.sender, t.from + i);
        }
      }
    }
  }
  for (const Stretch& s : stretches) {
    const StretchSource& source = plan.sources[s.source];
    for (int64_t i = s.begin; i < s.end; ++i) {
      const int64_t read = s.from + i - s.begin;
      const int64_t element = source.mirrored ? source.extent - 1 - read : read;
      EXPECT_EQ(result[i], s.source * 1000 + element) << "element " << i << "\n" << plan.ToString();
    }
  }
}

TEST(Arrangement, RollIsOneRound) {
  const std::vector<Stretch> stretches = {{0, 0, 8, 8}, {0, 8, 16, 0}};
  const ArrangementPlan plan = PlanArrangement(16, 4, stretches, {{Kind::kSplit, 16, false}});
  CheckPlan(plan, stretches);
  EXPECT_EQ(plan.remote.size(), 1);
  EXPECT_EQ(plan.Rows(), 4);
}

TEST(Arrangement, ShiftTakesOneElement) {
  const std::vector<Stretch> stretches = {{0, 1, 16, 0}};
  const ArrangementPlan plan = PlanArrangement(16, 4, stretches, {{Kind::kSplit, 16, false}});
  CheckPlan(plan, stretches);
  EXPECT_EQ(plan.Rows(), 1);
}

TEST(Arrangement, JoinedArraysAreReceivedOnce) {
  const std::vector<Stretch> stretches = {{0, 0, 16, 0}, {1, 16, 32, 0}};
  const ArrangementPlan plan =
      PlanArrangement(32, 4, stretches, {{Kind::kSplit, 16, false}, {Kind::kSplit, 16, false}});
  CheckPlan(plan, stretches);
  EXPECT_EQ(plan.remote.size(), 2);
  EXPECT_EQ(plan.Rows(), 8);
}

TEST(Arrangement, WholeSourcesNeedNobody) {
  const std::vector<Stretch> stretches = {{0, 0, 5, 11}, {0, 5, 16, 0}};
  const ArrangementPlan plan = PlanArrangement(16, 4, stretches, {{Kind::kWhole, 16, false}});
  EXPECT_TRUE(plan.remote.empty());
  CheckPlan(plan, stretches);
}

TEST(Arrangement, RandomStretchesArriveOnce) {
  std::mt19937_64 random(1);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int i = 0; i < 2000; ++i) {
    const int64_t shards = 1 + below(9);
    std::vector<StretchSource> sources;
    for (int64_t s = 0; s <= below(3); ++s) {
      sources.push_back({below(4) == 0 ? Kind::kWhole : Kind::kSplit, 1 + below(40), below(4) == 0});
    }
    std::vector<Stretch> stretches;
    int64_t extent = below(3);
    for (int64_t n = 1 + below(5); n > 0; --n) {
      const int source = static_cast<int>(below(static_cast<int64_t>(sources.size())));
      const int64_t from = below(sources[source].extent), length = 1 + below(sources[source].extent - from);
      stretches.push_back({source, extent, extent + length, from});
      extent += length + below(2);
    }
    const ArrangementPlan plan = PlanArrangement(extent, shards, stretches, sources);
    CheckPlan(plan, stretches);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace gangway::partition

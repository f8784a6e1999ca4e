#include "gangway/net/sim/sim_network.h"

#include "gangway/net/cts/channel_cts.h"

namespace gangway::net {
namespace {

class SimHarness final : public ChannelHarness {
 public:
  explicit SimHarness(uint64_t seed) : timeline_(seed), network_(timeline_) {}
  std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> Connect() override { return network_.Connect("pair"); }
  bool RunUntil(const std::function<bool()>& condition) override {
    timeline_.RunFor(absl::Seconds(1));
    return condition();
  }

 private:
  SimTimeline timeline_;
  SimNetwork network_;
};

MakeChannelHarness Seeded(uint64_t seed) {
  return [seed] { return std::make_unique<SimHarness>(seed); };
}
INSTANTIATE_TEST_SUITE_P(Sim, ChannelCts, testing::Values(Seeded(0), Seeded(1), Seeded(2)));

TEST(SimNetworkTest, BreaksAndSilences) {
  SimTimeline timeline(1);
  SimNetwork network(timeline);
  Received at_a, at_b;
  auto [a, b] = network.Connect("w0");
  a->Start(at_a.handler());
  b->Start(at_b.handler());
  network.Silence("w0");
  EXPECT_TRUE(a->Send(Welcome{1, PeerId(0)}).ok());
  timeline.RunFor(absl::Seconds(1));
  EXPECT_EQ(at_b.count(), 0);
  EXPECT_TRUE(at_b.reasons().empty());
  network.Break("w0");
  timeline.RunFor(absl::Seconds(1));
  EXPECT_EQ(at_a.reasons().size(), 1);
  EXPECT_EQ(at_b.reasons().size(), 1);
  EXPECT_FALSE(a->Send(Welcome{1, PeerId(0)}).ok());
}

}  // namespace
}  // namespace gangway::net

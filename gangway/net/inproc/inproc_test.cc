#include "gangway/net/inproc/inproc.h"

#include "gangway/net/cts/channel_cts.h"

namespace gangway::net {
namespace {

class InprocHarness final : public ChannelHarness {
 public:
  std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> Connect() override { return MakeInprocPair("pair"); }
  bool RunUntil(const std::function<bool()>& condition) override { return condition(); }
};

INSTANTIATE_TEST_SUITE_P(Inproc, ChannelCts,
                         testing::Values(MakeChannelHarness([] { return std::make_unique<InprocHarness>(); })));

TEST(InprocTest, SharesTheBytes) {
  Received at_a, at_b;
  auto [a, b] = MakeInprocPair("pair");
  b->Start(at_b.handler());
  auto text = std::make_shared<const std::string>("abc");
  ASSERT_TRUE(a->Send(Fetched{RequestId(1), absl::OkStatus(), Payload(text)}).ok());
  EXPECT_EQ(std::get<Fetched>(at_b.messages()[0]).bytes.AsString().get(), text.get());
}

}  // namespace
}  // namespace gangway::net

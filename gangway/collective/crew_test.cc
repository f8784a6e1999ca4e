#include "gangway/collective/crew.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gangway/net/introduced_fabric.h"

namespace gangway::collective {
namespace {

// The thread that one job ran on, given to the crew by this thread.
std::thread::id RunOne(Crew& crew, absl::Duration length) {
  std::thread::id ran_on;
  absl::Notification over;
  crew.Run({{[&](const absl::Status&) {
               absl::SleepFor(length);
               ran_on = std::this_thread::get_id();
               over.Notify();
             },
             absl::OkStatus()}},
           /*spread=*/false);
  over.WaitForNotification();
  return ran_on;
}

// A device that completes a collective goes on at once: below the others' programs it would be the last.
TEST(Crew, LongJobsDoNotHoldUpTheThreadThatBringsThem) {
  Crew crew(2);
  int here = 0;
  // Until their length is known, and a helper is there, they run here.
  while (here < 1000 && RunOne(crew, absl::Milliseconds(2)) == std::this_thread::get_id()) ++here;
  EXPECT_LT(here, 1000);
}

TEST(Crew, WithoutHelpersAllRunsHere) {
  Crew crew(0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(RunOne(crew, absl::Milliseconds(2)), std::this_thread::get_id());
}

// Parcels that are there as soon as somebody looks.
class PromptFabric final : public net::IntroducedFabric {
 public:
  explicit PromptFabric(std::function<void()> arrive) : arrive_(std::move(arrive)) {}
  void LookOut(absl::FunctionRef<bool()> enough) override {
    EXPECT_FALSE(enough());
    arrive_();
    EXPECT_TRUE(enough());
  }
  std::string address() const override { return ""; }
  void Connect(net::PeerId, std::string, std::string) override {}
  void Disconnect(net::PeerId, const absl::Status&) override {}
  void DisconnectAll(const absl::Status&) override {}
  void Send(net::PeerId, const net::ParcelLabel&, const void*, size_t, Done) override {}
  void Receive(net::PeerId, const net::ParcelLabel&, void*, size_t, Done) override {}
  void Abandon(uint64_t, const absl::Status&) override {}

 private:
  const std::function<void()> arrive_;
};

// What came with a look, and who looked and went on with it.
struct Arrival {
  explicit Arrival(Crew& crew)
      : fabric(std::make_shared<PromptFabric>([this, &crew] {
          looked = std::this_thread::get_id();
          crew.Hand({{[this](const absl::Status&) {
                        resumed = std::this_thread::get_id();
                        over.Notify();
                      },
                      absl::OkStatus()}});
        })) {}

  std::thread::id looked, resumed;
  absl::Notification over;
  std::shared_ptr<PromptFabric> fabric;
};

TEST(Crew, AHelperLooksOutBeforeItSleeps) {
  Crew crew(1);
  for (int i = 0; i < 100; ++i) {
    Arrival arrival(crew);
    crew.Hand({{[&](const absl::Status&) { crew.SentFor(arrival.fabric); }, absl::OkStatus()}});
    ASSERT_TRUE(arrival.over.WaitForNotificationWithTimeout(absl::Seconds(20)));
    EXPECT_EQ(arrival.looked, arrival.resumed);
    EXPECT_NE(arrival.looked, std::this_thread::get_id());
  }
}

TEST(Crew, WhoeverWaitsMayLookOut) {
  Crew crew(1);
  Arrival arrival(crew);
  crew.LookOut([] { return false; });  // for nothing
  crew.SentFor(arrival.fabric);
  crew.LookOut([] { return false; });
  ASSERT_TRUE(arrival.over.HasBeenNotified());
  EXPECT_EQ(arrival.looked, std::this_thread::get_id());
  EXPECT_EQ(arrival.resumed, std::this_thread::get_id());
}

}  // namespace
}  // namespace gangway::collective

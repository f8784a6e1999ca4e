#include "gangway/collective/crew.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

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

}  // namespace
}  // namespace gangway::collective

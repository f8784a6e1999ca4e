#include "gangway/controller/transfer_history.h"

#include <gtest/gtest.h>

namespace gangway::controller {
namespace {

TransferSample At(int ms, int64_t sent, const std::string& worker = "w0") {
  return {worker, absl::UnixEpoch() + absl::Milliseconds(ms), sent, 0};
}

TEST(TransferHistoryTest, KeepsOneOfAWorkerAndPeriodThatChanged) {
  TransferHistory history(10);
  for (int ms : {0, 50, 100, 200}) history.Add(At(ms, ms));
  history.Add(At(50, 7, "w1"));
  history.Add(At(400, 200));
  const std::vector<TransferSample> samples = history.After(0);
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[1].sent_bytes, 100);
  EXPECT_EQ(samples[3].worker, "w1");
}

TEST(TransferHistoryTest, KeepsTheEndOfAPause) {
  TransferHistory history(10);
  history.Add(At(0, 0));
  history.Add(At(100, 10));
  for (int ms : {200, 300, 5000}) history.Add(At(ms, 10));
  history.Add(At(5100, 20));
  const std::vector<TransferSample> samples = history.After(0);
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[2].when, absl::UnixEpoch() + absl::Seconds(5)) << "nothing was sent until then";
}

TEST(TransferHistoryTest, AnswersOnlyWithWhatIsNew) {
  TransferHistory history(10);
  for (int i = 0; i < 3; ++i) history.Add(At(100 * i, i));
  const std::vector<TransferSample> fresh = history.After(2);
  ASSERT_EQ(fresh.size(), 1u);
  EXPECT_EQ(fresh[0].sent_bytes, 2);
  EXPECT_TRUE(history.After(3).empty());
}

TEST(TransferHistoryTest, ForgetsTheOldest) {
  TransferHistory history(2);
  for (int i = 0; i < 5; ++i) history.Add(At(100 * i, i));
  ASSERT_EQ(history.After(0).size(), 2u);
  EXPECT_EQ(history.After(0)[0].sent_bytes, 3);
  TransferHistory nothing(0);
  nothing.Add(At(0, 1));
  EXPECT_TRUE(nothing.After(0).empty());
}

}  // namespace
}  // namespace gangway::controller

#include "gangway/controller/launch_journal.h"

#include <gtest/gtest.h>

namespace gangway::controller {
namespace {

LaunchRecord LaunchOf(std::string program, std::string error = "") {
  LaunchRecord launch;
  launch.program = std::move(program);
  launch.error = std::move(error);
  return launch;
}

TEST(LaunchJournal, KeepsTheLastAndCountsAll) {
  LaunchJournal journal(2);
  for (const char* name : {"a", "b", "c"}) journal.Add(LaunchOf(name));
  const std::vector<LaunchRecord> kept = journal.After(0);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].program, "b");
  EXPECT_EQ(kept[1].number, 3u);
  EXPECT_EQ(journal.launches(), 3);
}

TEST(LaunchJournal, AnswersOnlyWithWhatIsNew) {
  LaunchJournal journal(8);
  for (const char* name : {"a", "b", "c"}) journal.Add(LaunchOf(name));
  const std::vector<LaunchRecord> fresh = journal.After(2);
  ASSERT_EQ(fresh.size(), 1u);
  EXPECT_EQ(fresh[0].program, "c");
  EXPECT_TRUE(journal.After(3).empty());
}

TEST(LaunchJournal, CountsFailures) {
  LaunchJournal journal(1);
  journal.Add(LaunchOf("a", "lost worker"));
  journal.Add(LaunchOf("b"));
  EXPECT_EQ(journal.failed(), 1);
}

TEST(LaunchJournal, OfNoCapacityOnlyCounts) {
  LaunchJournal journal(0);
  EXPECT_FALSE(journal.keeps());
  journal.Count(/*failed=*/false);
  journal.Count(/*failed=*/true);
  EXPECT_EQ(journal.launches(), 2);
  EXPECT_EQ(journal.failed(), 1);
  EXPECT_TRUE(journal.After(0).empty());
}

}  // namespace
}  // namespace gangway::controller

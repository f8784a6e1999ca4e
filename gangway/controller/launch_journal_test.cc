#include "gangway/controller/launch_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace gangway::controller {
namespace {

using ::testing::ElementsAre;

LaunchRecord LaunchOf(const char* program, std::string error = "") {
  LaunchRecord launch;
  launch.program = std::make_shared<const std::string>(program);
  launch.error = std::move(error);
  return launch;
}

std::vector<std::string> ProgramsOf(const LaunchList& launches) {
  std::vector<std::string> programs;
  launches.ForEach([&](const LaunchRecord& launch) { programs.push_back(*launch.program); });
  return programs;
}

std::vector<uint64_t> NumbersOf(const LaunchList& launches) {
  std::vector<uint64_t> numbers;
  launches.ForEach([&](const LaunchRecord& launch) { numbers.push_back(launch.number); });
  return numbers;
}

TEST(LaunchJournal, KeepsTheLastAndCountsAll) {
  LaunchJournal journal(2);
  for (const char* name : {"a", "b", "c"}) journal.Add(LaunchOf(name));
  EXPECT_THAT(ProgramsOf(journal.After(0)), ElementsAre("b", "c"));
  EXPECT_THAT(NumbersOf(journal.After(0)), ElementsAre(2, 3));
  EXPECT_EQ(journal.launches(), 3);
}

TEST(LaunchJournal, AnswersOnlyWithWhatIsNew) {
  LaunchJournal journal(8);
  EXPECT_TRUE(journal.After(0).empty());
  for (const char* name : {"a", "b", "c"}) journal.Add(LaunchOf(name));
  EXPECT_THAT(ProgramsOf(journal.After(2)), ElementsAre("c"));
  EXPECT_TRUE(journal.After(3).empty());
  EXPECT_TRUE(journal.After(1000).empty());
}

// Whatever was dropped and wherever one asks: the last `capacity`, and of those the ones that are new.
TEST(LaunchJournal, OfAnyLengthItAnswersWithTheSameLaunches) {
  for (size_t capacity : {1, 255, 256, 257, 1000}) {
    LaunchJournal journal(capacity);
    const LaunchRecord launch = LaunchOf("a");
    for (uint64_t count = 1; count <= 2000; ++count) {
      journal.Add(launch);
      if (count % 97 != 0) continue;
      for (uint64_t after : {uint64_t{0}, count / 2, count - 1}) {
        const uint64_t oldest = count > capacity ? count - capacity + 1 : 1;
        const std::vector<uint64_t> numbers = NumbersOf(journal.After(after));
        ASSERT_FALSE(numbers.empty());
        EXPECT_EQ(numbers.front(), std::max(oldest, after + 1)) << capacity << ", " << count;
        EXPECT_EQ(numbers.back(), count);
        EXPECT_EQ(numbers.size(), count - numbers.front() + 1);
      }
    }
  }
}

TEST(LaunchJournal, WhatWasAskedForStaysAsItWas) {
  LaunchJournal journal(300);
  for (int i = 0; i < 100; ++i) journal.Add(LaunchOf("before"));
  const LaunchList seen = journal.After(0);
  std::thread reader([&] { EXPECT_THAT(ProgramsOf(seen), ::testing::Each("before")); });
  for (int i = 0; i < 1000; ++i) journal.Add(LaunchOf("after"));
  reader.join();
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_EQ(NumbersOf(seen).back(), 100u);
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

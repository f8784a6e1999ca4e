#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gangway/files/cache.h"
#include "gangway/files/folder.h"
#include "gangway/files/read.h"
#include "gangway/files/write.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::files {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FilesTest : public ::testing::Test {
 protected:
  FilesTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) / absl::StrCat("files_test.", getpid(), ".", test->name());
    fs::create_directories(folder_);
  }
  ~FilesTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Content(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  fs::path folder_;
};

TEST_F(FilesTest, ResolvesWhatIsInTheFolder) {
  EXPECT_EQ(*Resolve(folder_.string(), Path("new/step/file")), fs::canonical(folder_) / "new/step/file");
  EXPECT_EQ(*Resolve("/", "/a/../b"), "/b");
}

TEST_F(FilesTest, RefusesWhatIsOutside) {
  EXPECT_EQ(Resolve("", Path("x")).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Resolve(folder_.string(), "x").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Resolve(folder_.string(), absl::string_view("/x\0y", 4)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Resolve(folder_.string(), Path("../x")).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Resolve(folder_.string(), folder_.string() + "x/y").status().code(), absl::StatusCode::kPermissionDenied);
  fs::create_directory_symlink("/", folder_ / "link");
  EXPECT_EQ(Resolve(folder_.string(), Path("link/etc/passwd")).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Resolve(Path("none"), Path("none/x")).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(FilesTest, OwnersHaveFoldersOfTheirOwn) {
  EXPECT_EQ(*OwnFolder("", "red"), "") << "still nowhere";
  EXPECT_EQ(*OwnFolder(folder_.string(), ""), folder_.string());
  const std::string red = *OwnFolder(folder_.string(), "red"), blue = *OwnFolder(folder_.string(), "blue");
  EXPECT_EQ(red, Path("red"));
  EXPECT_TRUE(fs::is_directory(red));
  EXPECT_EQ(*OwnFolder(folder_.string(), "red"), red) << "it is there now";
  EXPECT_TRUE(Resolve(red, Path("red/step/file")).ok());
  fs::create_directory_symlink(blue, fs::path(red) / "link");
  fs::create_symlink(Path("blue/x"), fs::path(red) / "file");
  for (const char* path : {"blue/x", "x", "red/../blue/x", "red/link/x", "red/file", "redder/x"}) {
    EXPECT_EQ(Resolve(red, Path(path)).status().code(), absl::StatusCode::kPermissionDenied) << path;
  }
  for (const char* owner : {"..", ".", "a/b", "/"}) {
    EXPECT_EQ(OwnFolder(folder_.string(), owner).status().code(), absl::StatusCode::kInvalidArgument) << owner;
  }
  EXPECT_EQ(OwnFolder(Path("none"), "red").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(FilesTest, WritesPiecesInAnyOrder) {
  ASSERT_TRUE(WriteAt(Path("a/b"), 3, "def").ok());
  ASSERT_TRUE(WriteAt(Path("a/b"), 0, "abc").ok());
  EXPECT_EQ(Content("a/b"), "abcdef");
}

TEST_F(FilesTest, WhatIsThereIsNotWrittenAgain) {
  const std::string bytes(3 << 20, 'x');
  ASSERT_TRUE(WriteAt(Path("a"), 0, bytes).ok());
  const timespec past[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, Path("a").c_str(), past, 0), 0);
  ASSERT_TRUE(WriteAt(Path("a"), 0, bytes).ok());
  struct stat status = {};
  stat(Path("a").c_str(), &status);
  EXPECT_EQ(status.st_mtim.tv_sec, 1000);
  ASSERT_TRUE(WriteAt(Path("a"), 2 << 20, "y").ok());
  EXPECT_EQ(Content("a")[2 << 20], 'y');
}

TEST_F(FilesTest, CommitReplacesCutsAndRemoves) {
  ASSERT_TRUE(WriteAt(Path("final"), 0, "old").ok());
  ASSERT_TRUE(WriteAt(Path("partial"), 0, "newer").ok());
  ASSERT_TRUE(WriteAt(Path("gone"), 0, "x").ok());
  ASSERT_TRUE(Commit(Path("partial"), 3, Path("final"), {Path("gone"), Path("never")}).ok());
  EXPECT_EQ(Content("final"), "new");
  EXPECT_FALSE(fs::exists(Path("partial")));
  EXPECT_FALSE(fs::exists(Path("gone")));
}

TEST_F(FilesTest, WhatIsNotWholeIsNotCommitted) {
  ASSERT_TRUE(WriteAt(Path("final"), 0, "old").ok());
  ASSERT_TRUE(WriteAt(Path("partial"), 0, "new").ok());
  EXPECT_EQ(Commit(Path("partial"), 4, Path("final"), {}).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Content("final"), "old");
  const absl::Status missing = Commit(Path("none"), 0, Path("final"), {});
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr(Path("none")));
}

// Every box of a saved array into every place of a result, element by element.
TEST_F(FilesTest, ReadsEveryBox) {
  const Dims saved = {3, 4, 2}, dims = {4, 4, 2};
  std::vector<int16_t> values(24);
  std::iota(values.begin(), values.end(), 1);
  ASSERT_TRUE(WriteAt(Path("a"), 6, {reinterpret_cast<char*>(values.data()), 48}).ok());
  int boxes = 0;
  for (int64_t at = 0; at < 3 * 4 * 2; ++at) {
    const Dims from = {at / 8, at / 2 % 4, at % 2};
    for (int64_t size = 1; size <= (3 - from[0]) * (4 - from[1]) * (2 - from[2]); ++size) {
      const Dims extent = {1 + size % (3 - from[0]), 1 + size % (4 - from[1]), 1 + size % (2 - from[2])};
      const Dims to = {4 - extent[0], 4 - extent[1], 2 - extent[2]};
      std::vector<int16_t> result(32, 0), expected(32, 0);
      for (int64_t i = 0; i < extent[0]; ++i) {
        for (int64_t j = 0; j < extent[1]; ++j) {
          for (int64_t k = 0; k < extent[2]; ++k) {
            expected[((to[0] + i) * 4 + to[1] + j) * 2 + to[2] + k] =
                values[((from[0] + i) * 4 + from[1] + j) * 2 + from[2] + k];
          }
        }
      }
      ASSERT_TRUE(ReadPiece({Path("a"), 6, saved, from, to, extent},
                            {reinterpret_cast<char*>(result.data()), dims, sizeof(int16_t)})
                      .ok());
      EXPECT_EQ(result, expected);
      ++boxes;
    }
  }
  EXPECT_GT(boxes, 100);
}

TEST_F(FilesTest, ReadsColumnsOfALargeArray) {
  const int64_t rows = 3000, columns = 1000;  // three windows
  std::vector<int32_t> values(rows * columns);
  std::iota(values.begin(), values.end(), 0);
  ASSERT_TRUE(WriteAt(Path("a"), 0, {reinterpret_cast<char*>(values.data()), values.size() * 4}).ok());
  std::vector<int32_t> result(rows * 2);
  ASSERT_TRUE(ReadPiece({Path("a"), 0, {rows, columns}, {0, 998}, {0, 0}, {rows, 2}},
                        {reinterpret_cast<char*>(result.data()), {rows, 2}, 4})
                  .ok());
  for (int64_t i = 0; i < rows; ++i) {
    ASSERT_EQ(result[2 * i], i * columns + 998);
    ASSERT_EQ(result[2 * i + 1], i * columns + 999);
  }
}

TEST_F(FilesTest, RefusesBoxesThatDoNotFit) {
  char data[8];
  const Destination destination{data, {2, 2}, 2};
  const Piece fits{Path("a"), 0, {2, 2}, {0, 0}, {0, 0}, {2, 2}};
  auto code = [&](Piece piece) { return ReadPiece(piece, destination).code(); };
  EXPECT_EQ(code(fits), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteAt(Path("a"), 0, "1234567").ok());
  EXPECT_EQ(code(fits), absl::StatusCode::kDataLoss);
  const int64_t huge = int64_t{1} << 62;
  for (auto break_it : {+[](Piece&p, int64_t) {
                          p.from = {1, 0};
                        },
                        +[](Piece&p, int64_t) {
                          p.to = {0, -1};
                        },
                        +[](Piece&p, int64_t) { p.to = {0}; },
                        +[](Piece&p, int64_t) {
                          p.extent = {-1, 2};
                        },
                        +[](Piece&p, int64_t huge) {
                          p.saved = {huge, huge};
                        },
                        +[](Piece&p, int64_t) { p.offset = std::numeric_limits<int64_t>::max(); },
                        +[](Piece&p, int64_t huge) {
                          p.extent = {huge, 2};
                        },
                        +[](Piece&p, int64_t huge) {
                          p.saved = {huge, 2}, p.from = {huge - 1, 0};
                        }}) {
    Piece piece = fits;
    break_it(piece, huge);
    EXPECT_EQ(code(piece), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(FilesTest, AnEmptyBoxReadsNothing) {
  EXPECT_TRUE(ReadPiece({Path("none"), 0, {0, 2}, {0, 0}, {0, 0}, {0, 2}}, {nullptr, {0, 2}, 4}).ok());
}

TEST_F(FilesTest, Sizes) {
  ASSERT_TRUE(WriteAt(Path("a"), 5, "x").ok());
  EXPECT_EQ(*SizeOf(Path("a")), 6);
  EXPECT_EQ(SizeOf(Path("none")).status().code(), absl::StatusCode::kNotFound);
  char start[6];
  ASSERT_TRUE(ReadStart(Path("a"), start, 6).ok());
  EXPECT_EQ(std::string(start, 6), std::string("\0\0\0\0\0x", 6));
}

TEST_F(FilesTest, WhatIsKeptIsFoundUnderItsKey) {
  const Cache cache(Path("cache"), 1 << 20);
  EXPECT_EQ(cache.Find("a"), std::nullopt);
  ASSERT_TRUE(cache.Keep("a", "value of a").ok());
  ASSERT_TRUE(cache.Keep("b", "").ok());
  EXPECT_EQ(Cache(Path("cache"), 1 << 20).Find("a"), "value of a");
  EXPECT_EQ(cache.Find("b"), "");
  EXPECT_EQ(cache.Find("c"), std::nullopt);
  ASSERT_TRUE(cache.Keep("a", "new").ok());
  EXPECT_EQ(cache.Find("a"), "new");
}

TEST_F(FilesTest, DamagedEntriesAreNotFound) {
  const Cache cache(Path("cache"), 1 << 20);
  for (int cut : {0, 5, 30, 45}) {
    ASSERT_TRUE(cache.Keep("key", "some value").ok());
    for (const auto& file : fs::directory_iterator(Path("cache"))) fs::resize_file(file.path(), cut);
    EXPECT_EQ(cache.Find("key"), std::nullopt) << cut;
  }
  // An entry of another key under the same name.
  ASSERT_TRUE(cache.Keep("key", "some value").ok());
  fs::path kept = fs::directory_iterator(Path("cache"))->path();
  ASSERT_TRUE(cache.Keep("yek", "other").ok());
  for (const auto& file : fs::directory_iterator(Path("cache"))) {
    if (file.path() != kept) fs::rename(file.path(), kept);
  }
  EXPECT_EQ(cache.Find("key"), std::nullopt);
}

TEST_F(FilesTest, WhatWasNotUsedForLongestGoes) {
  const Cache cache(Path("cache"), 250);
  const std::string value(60, 'x');
  ASSERT_TRUE(cache.Keep("a", value).ok());
  ASSERT_TRUE(cache.Keep("b", value).ok());
  for (const auto& file : fs::directory_iterator(Path("cache"))) {
    fs::last_write_time(file.path(), file.last_write_time() - std::chrono::hours(1));
  }
  EXPECT_TRUE(cache.Find("a").has_value());
  ASSERT_TRUE(cache.Keep("c", value).ok());
  EXPECT_TRUE(cache.Find("a").has_value());
  EXPECT_FALSE(cache.Find("b").has_value());
  EXPECT_TRUE(cache.Find("c").has_value());
}

}  // namespace
}  // namespace gangway::files

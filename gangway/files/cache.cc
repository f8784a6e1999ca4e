#include "gangway/files/cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/files/descriptor.h"
#include "gangway/files/read.h"
#include "gangway/files/write.h"

namespace gangway::files {
namespace {

namespace fs = std::filesystem;

constexpr char kSuffix[] = ".kept";

// What an entry's file begins with.
std::string Head(absl::string_view key, size_t value_size) {
  return absl::StrCat("gangway cache 1\n", key.size(), " ", absl::Dec(value_size, absl::kZeroPad16), "\n", key);
}

}  // namespace

// Keys that share a name replace each other.
std::string Cache::PathOf(absl::string_view key) const {
  const size_t hash = std::hash<std::string_view>()({key.data(), key.size()});
  return absl::StrCat(folder_, "/", absl::Hex(hash, absl::kZeroPad16), kSuffix);
}

std::optional<std::string> Cache::Find(absl::string_view key) const {
  const std::string path = PathOf(key);
  const absl::StatusOr<int64_t> size = SizeOf(path);
  if (!size.ok()) return std::nullopt;
  std::string entry(static_cast<size_t>(*size), '\0');
  if (!ReadStart(path, entry.data(), *size).ok()) return std::nullopt;
  const size_t head = Head(key, 0).size();
  if (entry.size() < head || !absl::StartsWith(entry, Head(key, entry.size() - head))) return std::nullopt;
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return entry.substr(head);
}

absl::Status Cache::Keep(absl::string_view key, absl::string_view value) const {
  static std::atomic<int> count = 0;  // several threads may keep the same
  const std::string path = PathOf(key), partial = absl::StrCat(path, ".", getpid(), ".", ++count);
  const std::string head = Head(key, value.size());
  GW_RETURN_IF_ERROR(WriteAt(partial, 0, head));
  GW_RETURN_IF_ERROR(WriteAt(partial, static_cast<int64_t>(head.size()), value));
  GW_RETURN_IF_ERROR(Commit(partial, static_cast<int64_t>(head.size() + value.size()), path, {}));
  DropOldest();
  return absl::OkStatus();
}

void Cache::DropOldest() const {
  struct Entry {
    fs::file_time_type used;
    int64_t size;
    fs::path path;
    bool operator<(const Entry& other) const { return used < other.used; }
  };
  std::vector<Entry> entries;
  int64_t total = 0;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder_, error)) {
    if (file.path().extension() != kSuffix) continue;
    std::error_code gone;
    Entry entry{file.last_write_time(gone), static_cast<int64_t>(file.file_size(gone)), file.path()};
    if (gone) continue;
    total += entry.size;
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end());
  for (const Entry& entry : entries) {
    if (total <= limit_) break;
    if (fs::remove(entry.path, error)) total -= entry.size;
  }
}

}  // namespace gangway::files

#include "gangway/device/pjrt/code_cache.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gangway::device::pjrt {
namespace {

constexpr int64_t kLimitBytes = int64_t{4} << 30;

// What the first processor can do, as the kernel names it.
std::string InstructionSet() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "flags") || absl::StartsWith(line, "Features")) return line;
  }
  return "";
}

}  // namespace

CodeCache::CodeCache(std::string folder, const Plugin& plugin, absl::string_view version)
    : cache_(std::move(folder), kLimitBytes) {
  struct stat file = {};
  stat(plugin.path().c_str(), &file);
  const char* threads = std::getenv("NPROC");
  maker_ = absl::StrCat(version, "\n", file.st_size, " ", file.st_mtim.tv_sec, ".", file.st_mtim.tv_nsec, "\n",
                        InstructionSet(), "\n", threads != nullptr ? threads : "", " ",
                        std::thread::hardware_concurrency(), "\n");
}

std::string CodeCache::KeyOf(absl::string_view hlo, absl::string_view options) const {
  return absl::StrCat(maker_, options.size(), "\n", options, hlo);
}

std::optional<std::string> CodeCache::Find(absl::string_view hlo, absl::string_view options) const {
  return cache_.Find(KeyOf(hlo, options));
}

void CodeCache::Keep(absl::string_view hlo, absl::string_view options, absl::string_view serialized) const {
  cache_.Keep(KeyOf(hlo, options), serialized).IgnoreError();
}

}  // namespace gangway::device::pjrt

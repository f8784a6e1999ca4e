#include "gangway/cli/allocation.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace gangway::cli {
namespace {

constexpr size_t kLarge = size_t{64} << 20;

// Bytes of pages that the system would not have to make.
size_t Resident(void* memory, size_t size) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t from = (reinterpret_cast<uintptr_t>(memory) + page - 1) / page * page;
  std::vector<unsigned char> pages((size - page) / page);
  if (mincore(reinterpret_cast<void*>(from), pages.size() * page, pages.data()) != 0) return 0;
  size_t resident = 0;
  for (unsigned char one : pages) resident += (one & 1) * page;
  return resident;
}

#ifdef GANGWAY_JEMALLOC

// Some of it may be given back meanwhile, if this takes long; not all of it at once.
TEST(Allocation, LargeMemoryIsThereWhenItIsAskedForAgain) {
  KeepLargeMemory();
  auto* first = static_cast<volatile char*>(std::malloc(kLarge));
  for (size_t at = 0; at < kLarge; at += 1024) first[at] = 1;
  std::free(const_cast<char*>(first));
  void* again = std::malloc(kLarge);
  EXPECT_GT(Resident(again, kLarge), 0u);
  std::free(again);
}

// Nobody could fill it: who asks is told so, and is not killed later.
TEST(Allocation, MoreThanTheSystemHasIsNotGiven) {
  KeepLargeMemory();
  EXPECT_EQ(std::malloc(size_t{1} << 45), nullptr);
}

#endif

TEST(Allocation, WhatNobodyWroteIsNotThere) {
  KeepLargeMemory();
  void* fresh = mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(Resident(fresh, kLarge), 0u);
  munmap(fresh, kLarge);
}

}  // namespace
}  // namespace gangway::cli

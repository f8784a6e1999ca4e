// GW_CHECK: for our own bugs only, never reachable from a client, a file or the network.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"

namespace gangway::internal {
[[noreturn]] inline void CheckFailed(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: internal error: %s\n", file, line, what.c_str());
  std::abort();
}
}  // namespace gangway::internal

// GW_CHECK(condition) or GW_CHECK(condition, "what", value, ...): aborts with the text when the condition is false.
#define GW_CHECK(condition, ...)                                                                                       \
  do {                                                                                                                 \
    if (!(condition)) [[unlikely]]                                                                                     \
      ::gangway::internal::CheckFailed(__FILE__, __LINE__, absl::StrCat(#condition __VA_OPT__(, ": ", ) __VA_ARGS__)); \
  } while (false)

// How a command ends.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gangway::cli {

// Exit codes of our own failures; `run` passes its command's code on otherwise.
inline constexpr int kExitUsage = 2;
inline constexpr int kExitFailure = 1;

// 0, or kExitFailure after one line on standard error that begins with the command: "gangway explain".
int ExitCodeOf(const absl::Status& status, absl::string_view command);

}  // namespace gangway::cli

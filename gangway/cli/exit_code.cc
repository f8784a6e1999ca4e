#include "gangway/cli/exit_code.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"

namespace gangway::cli {

int ExitCodeOf(const absl::Status& status, absl::string_view command) {
  if (status.ok()) return 0;
  std::fputs(absl::StrCat(command, ": ", status.message(), "\n").c_str(), stderr);
  return kExitFailure;
}

}  // namespace gangway::cli

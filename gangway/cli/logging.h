// Where log lines of our processes go.
#pragma once

#include <string>

namespace gangway::cli {

// Lines of at least this level go to standard error, each with its process ("controller", "worker 0"). An unknown level
// counts as warn.
void SetUpLogging(const std::string& process, const std::string& level);

}  // namespace gangway::cli

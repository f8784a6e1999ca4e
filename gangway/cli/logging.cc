#include "gangway/cli/logging.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace gangway::cli {

void SetUpLogging(const std::string& process, const std::string& level) {
  setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);  // its failures are ours to tell, in one line
  auto logger = spdlog::stderr_logger_mt(process);
  logger->set_pattern(absl::StrCat("[%H:%M:%S.%e] [gangway ", process, "] [%l] %v"));
  spdlog::level::level_enum parsed = spdlog::level::from_str(level);
  bool known = parsed != spdlog::level::off || level == "off";
  logger->set_level(known ? parsed : spdlog::level::warn);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace gangway::cli

#include "gangway/cli/logging.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gangway/cli/process.h"
#include "nlohmann/json.hpp"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace gangway::cli {
namespace {

// A text as JSON has it, quotes included; what is no UTF-8 is replaced.
std::string Quoted(absl::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class QuotedMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    const std::string text = Quoted({message.payload.data(), message.payload.size()});
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<QuotedMessage>(); }
};

std::unique_ptr<spdlog::formatter> JsonLines(const std::string& process) {
  auto lines = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  lines->add_flag<QuotedMessage>('*');
  const std::string name = absl::StrReplaceAll(Quoted(process), {{"%", "%%"}});
  lines->set_pattern(
      absl::StrCat(R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","process":)", name, R"(,"message":%*})"));
  return lines;
}

}  // namespace

void AddLogOptions(CLI::App& command, LogOptions* options) {
  command.add_option("--log-level", options->level, "trace, debug, info, warn, error or off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "warning", "error", "off"}))
      ->capture_default_str();
  command.add_option("--log-format", options->format, "text, or json: an object a line")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

void SetUpLogging(const std::string& process, const LogOptions& options) {
  setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);  // its failures are ours to tell, in one line
  auto logger = spdlog::stderr_logger_mt(process);
  if (options.format == "json") {
    logger->set_formatter(JsonLines(process));
  } else {
    logger->set_pattern(absl::StrCat("[%H:%M:%S.%e] [gangway ", process, "] [%l] %v"));
  }
  logger->set_level(spdlog::level::from_str(options.level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void AnnounceError(int announce_fd, const absl::Status& status) {
  std::string why(status.message());
  std::replace(why.begin(), why.end(), '\n', ' ');
  if (announce_fd < 0) return spdlog::error("{}", why);
  Announce(announce_fd, absl::StrCat("error: ", why));
}

}  // namespace gangway::cli

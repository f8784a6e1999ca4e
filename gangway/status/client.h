// Asks a controller's status page.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gangway::status {

// Of an answer: what of the query the program does not keep to (server.h); one line.
inline constexpr char kComplaint[] = "Gangway-Complaint";

struct Answer {
  std::string text;
  std::string complaint;
};

// The document at `path` of the status page at `address` (host:port). UNAVAILABLE with what went wrong. Blocks for some
// seconds at most.
absl::StatusOr<std::string> Get(const std::string& address, const std::string& path);
// What /explain says of a program there, with these parameters. Blocks for `patience` at most.
absl::StatusOr<Answer> GetExplanation(const std::string& address, const std::string& program,
                                      const std::vector<std::pair<std::string, std::string>>& query,
                                      absl::Duration patience);

}  // namespace gangway::status

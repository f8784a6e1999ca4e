// Asks a controller's status page.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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
// What happens there from now on, for that long, as a trace. `take` gets the document part by part, as it is made;
// false from it ends the recording, which is no error. Blocks until the end.
absl::Status RecordTrace(const std::string& address, absl::Duration length,
                         absl::FunctionRef<bool(absl::string_view part)> take);

}  // namespace gangway::status

// The HTTP server of a controller's status.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/controller/controller.h"

namespace gangway::status {

// What `/explain` answers with: why a program communicates, as the query's other parameters ask for it. On a thread of
// the server's; may take seconds. INVALID_ARGUMENT names the parameter. A limit of the query that the program exceeds
// is a `complaint` beside the text.
struct Explained {
  std::string text, content_type, complaint;
};
using Parameters = std::vector<std::pair<std::string, std::string>>;
using ExplainFunction =
    std::function<absl::StatusOr<Explained>(const controller::CompileRequest& program, const Parameters& query)>;

// Serves until it is destroyed, on threads of its own. Borrows the controller.
class Server {
 public:
  virtual ~Server() = default;
  virtual std::string address() const = 0;  // host:port, with the port the system chose
};

// `address` is host:port of this machine's loopback, port 0 for any free one; INVALID_ARGUMENT for other hosts. Without
// `explain` there is no /explain.
absl::StatusOr<std::unique_ptr<Server>> Serve(controller::Controller& controller, const std::string& address,
                                              ExplainFunction explain = nullptr);

}  // namespace gangway::status

// One run of a graph over the controller.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/controller/controller.h"
#include "gangway/program_api/graph.h"

namespace gangway::program_api {

struct RunContext {
  controller::Controller* controller = nullptr;
  controller::SessionId session;
  bool sequential = false;  // each node when the workers have queued the one before it; all together otherwise
};

// The results, owned by the caller; or why the run failed, everything it made freed.
using RunDone = std::function<void(absl::StatusOr<std::vector<controller::ArrayId>>)>;

// On the controller's loop, where `done` is called too, before this returns unless the run has to wait for a device
// value. The inputs stay the caller's and alive until `done`.
void RunGraph(const RunContext& context, GraphRef graph, std::vector<controller::ArrayId> inputs, RunDone done);

}  // namespace gangway::program_api

// A program of a client as data: nodes over numbered values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/controller/controller.h"
#include "gangway/v1/program_service.pb.h"

namespace gangway::program_api {

// A compiled function; released at the controller when the last graph and the session have let go of it.
struct Function {
  controller::Controller& controller;
  const controller::SessionId session;
  const std::shared_ptr<const controller::Program> program;
  const std::shared_ptr<const bool> closed;  // the session's: closing has released its programs

  Function(controller::Controller& controller, controller::SessionId session,
           std::shared_ptr<const controller::Program> program, std::shared_ptr<const bool> closed)
      : controller(controller), session(session), program(std::move(program)), closed(std::move(closed)) {}
  ~Function() {
    if (!*closed) controller.ReleaseProgram(session, program->id);
  }
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;
};
using FunctionRef = std::shared_ptr<const Function>;  // shared by the session and its graphs

struct Graph;
using GraphRef = std::shared_ptr<const Graph>;  // shared by all its runs

struct Call {
  FunctionRef function;
};
struct Copy {
  FunctionRef function;  // whose parameter it is to become
  int parameter = 0;
};
struct Cond {
  GraphRef then, otherwise;
};
struct While {
  GraphRef condition, body;
};

// Values are numbered: the inputs, then the results of each node.
struct Node {
  std::variant<Call, Copy, Cond, While> kind;
  std::vector<int> arguments;
  int first_result = 0;
  int num_results = 0;
  std::vector<int> last_uses;  // values nobody needs after this node, and that are no results
};

// Immutable once made.
struct Graph {
  int inputs = 0;
  int values = 0;
  std::vector<Node> nodes;
  std::vector<int> results;
};

inline constexpr int kMaxDepth = 16;

// Of the controller's memory, about.
int64_t BytesOf(const Graph& graph);

using FindFunction = std::function<absl::StatusOr<FunctionRef>(uint64_t)>;

// INVALID_ARGUMENT naming the node when it uses what is not made before it, has the wrong number of arguments, or nests
// too deep; NOT_FOUND for an unknown function.
absl::StatusOr<GraphRef> MakeGraph(const v1::Graph& graph, const FindFunction& find, int depth = 0);

}  // namespace gangway::program_api

// A client of the program API in a simulated cluster: no protocol, straight at the controller.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gangway/program_api/graph.h"
#include "gangway/program_api/graph_run.h"
#include "tests/runtime/sim_cluster.h"

namespace gangway {

class SimClient {
 public:
  SimClient(SimCluster& cluster, controller::SessionInfo info);
  // Closes the session.
  ~SimClient();

  // Modelled words (device/modelled) for `count` devices from `first` on; lets simulated time pass until it is there.
  program_api::FunctionRef Compile(const std::string& words, int first, int count);
  // As the function takes it: the first element of every shard is `value`.
  controller::ArrayId Put(const program_api::FunctionRef& function, int32_t value);
  // In a turn of the controller's loop, where `done` is called too.
  void Run(const program_api::GraphRef& graph, std::vector<controller::ArrayId> arguments, bool sequential,
           program_api::RunDone done);

  controller::SessionId session() const { return session_; }

 private:
  SimCluster& cluster_;
  controller::SessionId session_;
  const std::shared_ptr<bool> closed_ = std::make_shared<bool>(false);  // shared with its functions
  std::vector<program_api::FunctionRef> functions_;                     // released with the session
};

// A program under construction; inserts the copies between functions on different devices.
class SimProgram {
 public:
  // The inputs are where the first function that uses them wants them.
  SimProgram(std::vector<program_api::FunctionRef> functions, int inputs);
  // A call of functions[function] on values; its only result.
  int Call(int function, const std::vector<int>& arguments);
  program_api::GraphRef Make(const std::vector<int>& results);

 private:
  const std::vector<program_api::FunctionRef> functions_;
  std::vector<int> made_for_;  // by value: the function on whose devices it is; -1: an unused input
  v1::Graph graph_;
};

// Calls one function after the other on one value, `stages` calls in all, from the first function again after the last.
program_api::GraphRef SimChain(const std::vector<program_api::FunctionRef>& functions, int stages);

}  // namespace gangway

#include "tests/runtime/sim_client.h"

#include <utility>

#include "gangway/base/check.h"

namespace gangway {

using controller::RuntimeController;
using program_api::FunctionRef;
using program_api::GraphRef;

SimClient::SimClient(SimCluster& cluster, controller::SessionInfo info) : cluster_(cluster) {
  session_ = cluster_.On([&](RuntimeController& c) { return c.OpenSession(info); });
}

SimClient::~SimClient() {
  *closed_ = true;
  cluster_.Post([session = session_](RuntimeController& c) { c.CloseSession(session); });
}

FunctionRef SimClient::Compile(const std::string& words, int first, int count) {
  controller::CompileRequest request;
  request.artifact = words;
  for (int d = first; d < first + count; ++d) request.devices.push_back(controller::DeviceId(d));
  request.options.num_partitions = count;
  auto [id, ready] = cluster_.On([&](RuntimeController& c) { return c.Compile(session_, request); });
  while (!ready.IsReady()) cluster_.RunFor(absl::Milliseconds(1));
  auto program = ready.Await(absl::Now(), "a program");
  GW_CHECK(program.ok(), std::string(program.status().message()));
  functions_.push_back(
      std::make_shared<const program_api::Function>(cluster_.controller(), session_, *program, closed_));
  return functions_.back();
}

controller::ArrayId SimClient::Put(const FunctionRef& function, int32_t value) {
  const controller::Program& program = *function->program;
  return *cluster_.Put(session_, program.compiled.parameters[0].shape, program.devices, value);
}

void SimClient::Run(const GraphRef& graph, std::vector<controller::ArrayId> arguments, bool sequential,
                    program_api::RunDone done) {
  cluster_.Post([=, session = session_](RuntimeController& c) {
    program_api::RunGraph({&c, session, sequential}, graph, arguments, done);
  });
}

SimProgram::SimProgram(std::vector<FunctionRef> functions, int inputs)
    : functions_(std::move(functions)), made_for_(inputs, -1) {
  graph_.set_inputs(inputs);
}

int SimProgram::Call(int function, const std::vector<int>& arguments) {
  std::vector<int> local;
  for (size_t i = 0; i < arguments.size(); ++i) {
    int& on = made_for_[arguments[i]];
    if (on < 0) on = function;
    local.push_back(arguments[i]);
    if (functions_[on]->program->devices == functions_[function]->program->devices) continue;
    v1::Node* copy = graph_.add_nodes();
    copy->mutable_copy()->set_function(function);
    copy->mutable_copy()->set_parameter(static_cast<int>(i));
    copy->add_arguments(arguments[i]);
    local.back() = static_cast<int>(made_for_.size());
    made_for_.push_back(function);
  }
  v1::Node* call = graph_.add_nodes();
  call->set_call(function);
  for (int argument : local) call->add_arguments(argument);
  made_for_.push_back(function);
  return static_cast<int>(made_for_.size()) - 1;
}

GraphRef SimProgram::Make(const std::vector<int>& results) {
  for (int result : results) graph_.add_results(result);
  auto made = program_api::MakeGraph(
      graph_, [this](uint64_t number) -> absl::StatusOr<FunctionRef> { return functions_[number]; });
  GW_CHECK(made.ok(), std::string(made.status().message()));
  return *made;
}

GraphRef SimChain(const std::vector<FunctionRef>& functions, int stages) {
  SimProgram program(functions, 1);
  int value = 0;
  for (int s = 0; s < stages; ++s) value = program.Call(s % static_cast<int>(functions.size()), {value});
  return program.Make({value});
}

}  // namespace gangway

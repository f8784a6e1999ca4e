#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/client/client.h"
#include "gangway/v1/program_service.pb.h"

namespace gangway::client {

ProgramBuilder::ProgramBuilder(int inputs) : graph_(std::make_unique<v1::Graph>()), devices_(inputs) {
  graph_->set_inputs(inputs);
}
ProgramBuilder::ProgramBuilder(ProgramBuilder&&) noexcept = default;
ProgramBuilder::~ProgramBuilder() = default;

ProgramBuilder ProgramBuilder::Inner(absl::Span<const Value> values) const {
  ProgramBuilder inner(static_cast<int>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) inner.devices_[i] = devices_[values[i].index];
  return inner;
}

absl::Status ProgramBuilder::Check(absl::Span<const Value> values) const {
  for (Value value : values) {
    if (value.index < 0 || value.index >= static_cast<int>(devices_.size())) {
      return absl::InvalidArgumentError(absl::StrCat("value ", value.index, " is none of the program"));
    }
  }
  return absl::OkStatus();
}

std::vector<Value> ProgramBuilder::Results(size_t count, const std::optional<Slice>& on) {
  std::vector<Value> values;
  for (size_t i = 0; i < count; ++i) {
    values.push_back({static_cast<int>(devices_.size())});
    devices_.push_back(on);
  }
  return values;
}

std::optional<Slice> ProgramBuilder::DevicesOf(const ProgramBuilder& inner) {
  if (inner.graph_->results_size() == 0) return std::nullopt;
  return inner.devices_[inner.graph_->results(0)];
}

absl::StatusOr<std::vector<Value>> ProgramBuilder::Call(const Function& function, absl::Span<const Value> arguments) {
  GW_RETURN_IF_ERROR_WITH(Check(arguments), function.name());
  std::vector<Value> local(arguments.begin(), arguments.end());
  for (size_t i = 0; i < local.size(); ++i) {
    std::optional<Slice>& on = devices_[local[i].index];
    if (!on.has_value()) on = function.slice();
    if (*on != function.slice()) local[i] = CopyFor(local[i], function, static_cast<int>(i));
  }
  v1::Node* call = graph_->add_nodes();
  call->set_call(function.number_);
  for (Value argument : local) call->add_arguments(argument.index);
  return Results(function.results().size(), function.slice());
}

Value ProgramBuilder::CopyFor(Value value, const Function& function, int parameter) {
  auto [it, is_new] = copies_.try_emplace({value.index, function.slice().devices});
  if (!is_new) return it->second;
  v1::Node* copy = graph_->add_nodes();
  copy->mutable_copy()->set_function(function.number_);
  copy->mutable_copy()->set_parameter(parameter);
  copy->add_arguments(value.index);
  return it->second = Results(1, function.slice())[0];
}

absl::StatusOr<std::vector<Value>> ProgramBuilder::Cond(Value predicate, const ProgramBuilder& then,
                                                        const ProgramBuilder& otherwise,
                                                        absl::Span<const Value> operands) {
  GW_RETURN_IF_ERROR_WITH(Check({predicate}), "predicate");
  GW_RETURN_IF_ERROR_WITH(Check(operands), "conditional");
  v1::Node* node = graph_->add_nodes();
  *node->mutable_cond()->mutable_then() = *then.graph_;
  *node->mutable_cond()->mutable_otherwise() = *otherwise.graph_;
  node->add_arguments(predicate.index);
  for (Value operand : operands) node->add_arguments(operand.index);
  return Results(then.graph_->results_size(), DevicesOf(then));
}

absl::StatusOr<std::vector<Value>> ProgramBuilder::While(const ProgramBuilder& condition, const ProgramBuilder& body,
                                                         absl::Span<const Value> state) {
  GW_RETURN_IF_ERROR_WITH(Check(state), "loop");
  v1::Node* node = graph_->add_nodes();
  *node->mutable_loop()->mutable_condition() = *condition.graph_;
  *node->mutable_loop()->mutable_body() = *body.graph_;
  for (Value value : state) node->add_arguments(value.index);
  return Results(state.size(), DevicesOf(body));
}

void ProgramBuilder::Return(absl::Span<const Value> results) {
  graph_->clear_results();
  for (Value result : results) graph_->add_results(result.index);
}

}  // namespace gangway::client

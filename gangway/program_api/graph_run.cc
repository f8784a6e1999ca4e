#include "gangway/program_api/graph_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/program_api/brought.h"

namespace gangway::program_api {
namespace {

using controller::ArrayId;
using controller::Controller;

// A value: an input, which is somebody else's, or made here and freed here.
struct Value {
  std::optional<ArrayId> array;
  bool owned = false;
};

class GraphRun : public std::enable_shared_from_this<GraphRun> {
 public:
  GraphRun(const RunContext& context, GraphRef graph, RunDone done)
      : context_(context), controller_(*context.controller), graph_(std::move(graph)), done_(std::move(done)) {}

  void Start(const std::vector<ArrayId>& inputs) {
    values_.resize(graph_->values);
    for (size_t i = 0; i < inputs.size(); ++i) values_[i].array = inputs[i];
    Continue();
  }

 private:
  void Continue() {
    controller_.Together([this] { DispatchNodes(); });
  }

  // Dispatches nodes until one has to wait. A node's dispatch says whether to go on at once; what it would wait for may
  // have been there already.
  void DispatchNodes() {
    while (next_ < graph_->nodes.size()) {
      const Node& node = graph_->nodes[next_++];
      dispatching_ = true;
      absl::StatusOr<bool> go_on = std::visit([&](const auto& kind) { return Dispatch(node, kind); }, node.kind);
      dispatching_ = false;
      if (!go_on.ok()) return Fail(Annotate(go_on.status(), absl::StrCat("node ", next_ - 1)));
      if (!*go_on && !std::exchange(resumed_, false)) return;
    }
    Finish();
  }

  absl::StatusOr<bool> Dispatch(const Node& node, const Call& call) {
    const controller::Program& program = *call.function->program;
    GW_ASSIGN_OR_RETURN(const Brought brought, Brought::To(controller_, context_.session, program, Arguments(node, 0)));
    controller::ExecuteOptions options;
    options.notify = false;
    const auto& donation = program.compiled.donation;
    for (size_t i = 0; i < donation.size(); ++i) {
      if (donation[i] != compile::Donation::kNone && !brought.IsNew(i) && !MayDonate(node, i)) {
        options.non_donatable.insert(static_cast<int>(i));
      }
    }
    GW_ASSIGN_OR_RETURN(controller::ExecuteResult result,
                        controller_.Execute(context_.session, program.id, brought.arguments(), options));
    return Took(node, result.outputs);
  }

  absl::StatusOr<bool> Dispatch(const Node& node, const Copy& copy) {
    const ArrayId source = Arguments(node, 0)[0];
    GW_ASSIGN_OR_RETURN(ArrayId array,
                        Bring(controller_, context_.session, source, *copy.function->program, copy.parameter));
    if (array == source) {
      GW_ASSIGN_OR_RETURN(array, Alias(source));
    }
    return Took(node, {array});
  }

  absl::StatusOr<bool> Dispatch(const Node& node, const Cond& cond) {
    Decide(*values_[node.arguments[0]].array, [self = shared_from_this(), &node, &cond](absl::StatusOr<bool> yes) {
      if (!yes.ok()) return self->Fail(yes.status());
      RunGraph(self->context_, *yes ? cond.then : cond.otherwise, self->Arguments(node, 1), self->Resume(node));
    });
    return false;
  }

  absl::StatusOr<bool> Dispatch(const Node& node, const While& loop) {
    Turn(node, loop, Arguments(node, 0), /*owned=*/false);
    return false;
  }

  // One turn of a loop over `state`, which is ours when `owned`.
  void Turn(const Node& node, const While& loop, std::vector<ArrayId> state, bool owned) {
    auto self = shared_from_this();
    auto drop = [self, state, owned] {
      if (!owned) return;
      for (ArrayId array : state) self->controller_.Release(array);
    };
    RunGraph(context_, loop.condition, state, [self, &node, &loop, state, owned, drop](auto conditions) {
      if (!conditions.ok()) return drop(), self->Fail(conditions.status());
      const ArrayId condition = (*conditions)[0];
      self->Decide(condition, [self, &node, &loop, state, owned, drop, condition](absl::StatusOr<bool> again) {
        self->controller_.Release(condition);
        if (!again.ok()) return drop(), self->Fail(again.status());
        if (!*again) return self->LoopOver(node, state, owned);
        RunGraph(self->context_, loop.body, state, [self, &node, &loop, drop](auto next) {
          drop();
          if (!next.ok()) return self->Fail(next.status());
          // In a turn of its own: the stack must not grow with the loop.
          self->controller_.loop().Post(
              [self, &node, &loop, next = *std::move(next)] { self->Turn(node, loop, next, /*owned=*/true); });
        });
      });
    });
  }

  void LoopOver(const Node& node, std::vector<ArrayId> state, bool owned) {
    if (owned) return Resume(node)(std::move(state));
    std::vector<ArrayId> copies;  // a loop of no turn gives what it took
    for (ArrayId array : state) {
      auto copy = Alias(array);
      if (!copy.ok()) {
        for (ArrayId made : copies) controller_.Release(made);
        return Fail(copy.status());
      }
      copies.push_back(*copy);
    }
    Resume(node)(std::move(copies));
  }

  // Reads a scalar on its first device.
  void Decide(ArrayId array, std::function<void(absl::StatusOr<bool>)> then) {
    controller_.Fetch(array, 0).OnReady(
        [then = std::move(then)](const absl::StatusOr<std::shared_ptr<const std::string>>& bytes) {
          if (!bytes.ok()) return then(bytes.status());
          then(std::any_of((*bytes)->begin(), (*bytes)->end(), [](char byte) { return byte != 0; }));
        });
  }

  RunDone Resume(const Node& node) {
    return [self = shared_from_this(), &node](absl::StatusOr<std::vector<ArrayId>> results) {
      if (!results.ok()) return self->Fail(results.status());
      auto go_on = self->Took(node, *results);
      if (!go_on.ok()) return self->Fail(go_on.status());
      if (!*go_on) return;
      // The stack must not grow with the nodes.
      if (self->dispatching_) {
        self->resumed_ = true;
      } else {
        self->Continue();
      }
    };
  }

  // The node's results are there; what was used for the last time goes.
  absl::StatusOr<bool> Took(const Node& node, const std::vector<ArrayId>& results) {
    for (size_t i = 0; i < results.size(); ++i) values_[node.first_result + i] = {results[i], true};
    Future<Unit> enqueued = context_.sequential && !results.empty() ? controller_.Enqueued(results[0]) : ReadyFuture();
    for (int value : node.last_uses) Drop(values_[value]);
    if (!context_.sequential || results.empty()) return true;
    enqueued.OnReady([self = shared_from_this()](const absl::StatusOr<Unit>& outcome) {
      if (!outcome.ok()) return self->Fail(outcome.status());
      self->controller_.loop().Post([self] { self->Continue(); });
    });
    return false;
  }

  std::vector<ArrayId> Arguments(const Node& node, size_t first) const {
    std::vector<ArrayId> arrays;
    for (size_t i = first; i < node.arguments.size(); ++i) arrays.push_back(*values_[node.arguments[i]].array);
    return arrays;
  }
  // A value of ours that is used here for the last time, and only once.
  bool MayDonate(const Node& node, size_t argument) const {
    const int value = node.arguments[argument];
    return values_[value].owned && std::count(node.last_uses.begin(), node.last_uses.end(), value) > 0 &&
           std::count(node.arguments.begin(), node.arguments.end(), value) == 1;
  }
  void Drop(Value& value) {
    if (value.owned && value.array.has_value()) controller_.Release(*value.array);
    value = {};
  }
  // Another handle of the same shards.
  absl::StatusOr<ArrayId> Alias(ArrayId array) {
    return controller_.Copy(context_.session, array, {}, {}, controller::CopySemantics::kCopy);
  }

  void Fail(const absl::Status& status) {
    for (Value& value : values_) Drop(value);
    if (auto done = std::exchange(done_, nullptr)) done(status);
  }

  void Finish() {
    std::vector<ArrayId> results;
    for (int index : graph_->results) {
      Value& value = values_[index];
      if (value.owned) {
        value.owned = false;  // the caller's now
        results.push_back(*value.array);
        continue;
      }
      auto alias = Alias(*value.array);
      if (!alias.ok()) {
        for (ArrayId made : results) controller_.Release(made);
        return Fail(alias.status());
      }
      results.push_back(*alias);
    }
    for (Value& value : values_) Drop(value);
    if (auto done = std::exchange(done_, nullptr)) done(std::move(results));
  }

  const RunContext context_;
  Controller& controller_;
  const GraphRef graph_;  // keeps the nodes that callbacks refer to
  RunDone done_;
  std::vector<Value> values_;
  size_t next_ = 0;
  bool dispatching_ = false;  // a node, further up the stack
  bool resumed_ = false;      // what that waited for was there
};

}  // namespace

void RunGraph(const RunContext& context, GraphRef graph, std::vector<ArrayId> inputs, RunDone done) {
  if (static_cast<int>(inputs.size()) != graph->inputs) {
    return done(
        absl::InvalidArgumentError(absl::StrCat("the program takes ", graph->inputs, " inputs, got ", inputs.size())));
  }
  std::make_shared<GraphRun>(context, std::move(graph), std::move(done))->Start(inputs);
}

}  // namespace gangway::program_api

#include "gangway/program_api/graph.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"

namespace gangway::program_api {
namespace {

constexpr int kMostValues = 1 << 24;

absl::Status WantArguments(size_t wanted, const v1::Node& node) {
  if (static_cast<size_t>(node.arguments_size()) == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("takes ", wanted, " arguments, got ", node.arguments_size()));
}

absl::StatusOr<Cond> MakeCond(const v1::Cond& cond, const FindFunction& find, int depth) {
  Cond made;
  GW_ASSIGN_OR_RETURN_WITH(made.then, MakeGraph(cond.then(), find, depth + 1), "then");
  GW_ASSIGN_OR_RETURN_WITH(made.otherwise, MakeGraph(cond.otherwise(), find, depth + 1), "otherwise");
  if (made.then->results.size() != made.otherwise->results.size() || made.then->inputs != made.otherwise->inputs) {
    return absl::InvalidArgumentError("the branches of a conditional differ in what they take or give");
  }
  return made;
}

absl::StatusOr<While> MakeWhile(const v1::While& loop, const FindFunction& find, int depth) {
  While made;
  GW_ASSIGN_OR_RETURN_WITH(made.condition, MakeGraph(loop.condition(), find, depth + 1), "condition");
  GW_ASSIGN_OR_RETURN_WITH(made.body, MakeGraph(loop.body(), find, depth + 1), "body");
  if (made.condition->results.size() != 1 || made.condition->inputs != made.body->inputs ||
      static_cast<int>(made.body->results.size()) != made.body->inputs) {
    return absl::InvalidArgumentError("a loop's body gives what it takes, its condition one value of the same");
  }
  return made;
}

absl::StatusOr<Node> MakeNode(const v1::Node& node, const FindFunction& find, int depth) {
  Node made;
  switch (node.kind_case()) {
    case v1::Node::kCall: {
      GW_ASSIGN_OR_RETURN(FunctionRef function, find(node.call()));
      GW_RETURN_IF_ERROR_WITH(WantArguments(function->program->compiled.parameters.size(), node),
                              function->program->compiled.name);
      made.num_results = static_cast<int>(function->program->compiled.outputs.size());
      made.kind = Call{std::move(function)};
      break;
    }
    case v1::Node::kCopy: {
      GW_ASSIGN_OR_RETURN(FunctionRef function, find(node.copy().function()));
      GW_RETURN_IF_ERROR(WantArguments(1, node));
      const int parameter = node.copy().parameter();
      if (parameter < 0 || parameter >= static_cast<int>(function->program->compiled.parameters.size())) {
        return absl::InvalidArgumentError(absl::StrCat("no parameter ", parameter));
      }
      made.num_results = 1;
      made.kind = Copy{std::move(function), parameter};
      break;
    }
    case v1::Node::kCond: {
      GW_ASSIGN_OR_RETURN(Cond cond, MakeCond(node.cond(), find, depth));
      GW_RETURN_IF_ERROR(WantArguments(cond.then->inputs + 1, node));
      made.num_results = static_cast<int>(cond.then->results.size());
      made.kind = std::move(cond);
      break;
    }
    case v1::Node::kLoop: {
      GW_ASSIGN_OR_RETURN(While loop, MakeWhile(node.loop(), find, depth));
      GW_RETURN_IF_ERROR(WantArguments(loop.body->inputs, node));
      made.num_results = loop.body->inputs;
      made.kind = std::move(loop);
      break;
    }
    case v1::Node::KIND_NOT_SET:
      return absl::InvalidArgumentError("of no known kind");
  }
  made.arguments.assign(node.arguments().begin(), node.arguments().end());
  return made;
}

// Marks, from the back, where each value is used last.
void MarkLastUses(Graph& graph) {
  std::vector<bool> needed(graph.values, false);
  for (int result : graph.results) needed[result] = true;
  for (size_t n = graph.nodes.size(); n > 0; --n) {
    Node& node = graph.nodes[n - 1];
    auto mark = [&](int value) {
      if (!needed[value]) node.last_uses.push_back(value);
      needed[value] = true;
    };
    for (int i = 0; i < node.num_results; ++i) mark(node.first_result + i);  // used by nobody
    for (int argument : node.arguments) mark(argument);
  }
}

}  // namespace

absl::StatusOr<GraphRef> MakeGraph(const v1::Graph& graph, const FindFunction& find, int depth) {
  if (depth > kMaxDepth) return absl::InvalidArgumentError("the program nests too deep");
  if (graph.inputs() < 0 || graph.inputs() > (1 << 20)) return absl::InvalidArgumentError("inputs out of range");
  auto made = std::make_shared<Graph>();
  made->inputs = made->values = graph.inputs();
  auto check = [&made](int value) {
    if (value >= 0 && value < made->values) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("value ", value, " is not made before it is used"));
  };
  for (int i = 0; i < graph.nodes_size(); ++i) {
    const std::string where = absl::StrCat("node ", i);
    GW_ASSIGN_OR_RETURN_WITH(Node node, MakeNode(graph.nodes(i), find, depth), where);
    for (int argument : node.arguments) GW_RETURN_IF_ERROR_WITH(check(argument), where);
    if (node.num_results > kMostValues - made->values) {
      return absl::InvalidArgumentError(absl::StrCat("more than ", kMostValues, " values"));
    }
    node.first_result = made->values;
    made->values += node.num_results;
    made->nodes.push_back(std::move(node));
  }
  for (int result : graph.results()) {
    GW_RETURN_IF_ERROR_WITH(check(result), "result");
    made->results.push_back(result);
  }
  MarkLastUses(*made);
  return GraphRef(std::move(made));
}

int64_t BytesOf(const Graph& graph) {
  // Values: what a run keeps of each.
  int64_t bytes = static_cast<int64_t>(sizeof(Graph) + 16 * graph.values + sizeof(int) * graph.results.size());
  for (const Node& node : graph.nodes) {
    bytes += static_cast<int64_t>(sizeof(Node) + sizeof(int) * (node.arguments.size() + node.last_uses.size()));
    if (const auto* cond = std::get_if<Cond>(&node.kind)) bytes += BytesOf(*cond->then) + BytesOf(*cond->otherwise);
    if (const auto* loop = std::get_if<While>(&node.kind)) bytes += BytesOf(*loop->condition) + BytesOf(*loop->body);
  }
  return bytes;
}

}  // namespace gangway::program_api

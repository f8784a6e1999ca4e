#include "gangway/dataflow/progress.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::dataflow {
namespace {

using resource::WorkerId;
using testing::ElementsAre;
using testing::IsEmpty;

// %1 = f(%0) on w0,w1; %2 = copy(%1) on w2; g(%2, %0) on w2.
std::shared_ptr<const Graph> Pipeline() {
  auto graph = std::make_shared<Graph>();
  graph->num_inputs = 1;
  graph->num_edges = 4;
  graph->nodes.push_back({NodeKind::kCompute, "f", {EdgeId(0)}, {EdgeId(1)}, {WorkerId(0), WorkerId(1)}});
  graph->nodes.push_back({NodeKind::kCopy, "c", {EdgeId(1)}, {EdgeId(2)}, {WorkerId(2)}});
  graph->nodes.push_back({NodeKind::kCompute, "g", {EdgeId(2), EdgeId(0)}, {EdgeId(3)}, {WorkerId(2)}});
  return graph;
}

TEST(ProgressTest, ANodeIsReadyWhenItsInputsAreMade) {
  auto graph = Pipeline();
  ASSERT_TRUE(Validate(*graph).ok());
  EXPECT_EQ(graph->ToString(), "%1 = compute f(%0) on w0,w1\n%2 = copy c(%1) on w2\n%3 = compute g(%2, %0) on w2\n");
  Progress run(graph);
  EXPECT_THAT(run.Begin().ready, ElementsAre(NodeId(0)));
  EXPECT_THAT(run.PartDone(NodeId(0), WorkerId(1), absl::OkStatus()).ready, IsEmpty());
  EXPECT_THAT(run.PartDone(NodeId(0), WorkerId(1), absl::OkStatus()).ready, IsEmpty()) << "told twice";
  EXPECT_THAT(run.PartDone(NodeId(0), WorkerId(0), absl::OkStatus()).ready, ElementsAre(NodeId(1)));
  EXPECT_THAT(run.PartDone(NodeId(1), WorkerId(2), absl::OkStatus()).ready, ElementsAre(NodeId(2)));
  EXPECT_TRUE(run.PartDone(NodeId(2), WorkerId(2), absl::OkStatus()).over);
  EXPECT_TRUE(run.status().ok());
}

TEST(ProgressTest, AFailurePoisonsWhatTheNodeMakes) {
  Progress run(Pipeline());
  run.Begin();
  Step step = run.PartDone(NodeId(0), WorkerId(0), absl::InternalError("boom"));
  EXPECT_THAT(step.poisoned, ElementsAre(EdgeId(1)));
  EXPECT_FALSE(step.over) << "the others still report";
  step = run.WorkerLost(WorkerId(2), absl::UnavailableError("w2 is lost"));
  EXPECT_THAT(step.poisoned, ElementsAre(EdgeId(2), EdgeId(3)));
  EXPECT_TRUE(run.PartDone(NodeId(0), WorkerId(1), absl::OkStatus()).over);
  EXPECT_EQ(run.status().message(), "boom") << "the first error is the run's";
}

TEST(GraphTest, RefusesEdgesWithoutOneMaker) {
  Graph graph = SingleNode(NodeKind::kCompute, "f", 1, 1, {WorkerId(0)});
  EXPECT_TRUE(Validate(graph).ok());
  graph.nodes[0].inputs.push_back(EdgeId(1));
  EXPECT_FALSE(Validate(graph).ok());
  graph = SingleNode(NodeKind::kCompute, "f", 1, 1, {});
  EXPECT_FALSE(Validate(graph).ok());
  graph = SingleNode(NodeKind::kCompute, "f", 1, 1, {WorkerId(0)});
  graph.nodes[0].outputs.push_back(EdgeId(0));
  EXPECT_FALSE(Validate(graph).ok());
}

TEST(GraphTest, FindsPartsByWorker) {
  Graph graph = SingleNode(NodeKind::kCompute, "f", 0, 1, {WorkerId(7), WorkerId(0), WorkerId(3)});
  EXPECT_TRUE(Validate(graph).ok());
  const Node& node = graph.nodes[0];
  for (size_t part = 0; part < node.workers.size(); ++part) EXPECT_EQ(node.PartOf(node.workers[part]), part);
  EXPECT_FALSE(node.PartOf(WorkerId(1)).has_value());
  EXPECT_FALSE(node.PartOf(WorkerId(8)).has_value());
  std::swap(graph.nodes[0].workers[0], graph.nodes[0].workers[1]);
  EXPECT_FALSE(Validate(graph).ok()) << "out of order";
}

}  // namespace
}  // namespace gangway::dataflow

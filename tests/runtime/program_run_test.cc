// Whole dataflow programs over a cluster in simulated time.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/sim_client.h"

namespace gangway {
namespace {

using controller::ArrayId;
using controller::RuntimeController;
using program_api::FunctionRef;
using program_api::GraphRef;
using testing::ElementsAre;
using testing::Pair;

// One way between the controller and any worker, and between workers of two islands.
constexpr absl::Duration kHop = absl::Microseconds(100), kFar = absl::Milliseconds(1);

// w0 and w1 are in one island, w2 in another; each has two devices.
class ProgramRunTest : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    const net::SimLink link = {.min_delay = kHop, .max_delay = kHop};
    for (auto [name, island] : {std::pair("w0", 0), std::pair("w1", 0), std::pair("w2", 1)}) {
      cluster_.AddWorker(name, {.devices = 2, .link = link, .island = island});
      cluster_.RunFor(absl::Milliseconds(10));
    }
    cluster_.network().OnDeliver([this](const std::string& worker, const std::vector<net::Message>& messages) {
      auto works = [](const net::Message& m) {
        return std::holds_alternative<net::Launch>(m) || std::holds_alternative<net::CopyBuffer>(m);
      };
      if (std::any_of(messages.begin(), messages.end(), works)) ++messages_[worker];
    });
    client_ = std::make_unique<SimClient>(cluster_, controller::SessionInfo{"test", "", 1});
  }

  // Runs a program of one input and reads its results; `span_` is the simulated time until the last was read.
  std::vector<int32_t> Run(const GraphRef& graph, ArrayId input, bool sequential) {
    const absl::Duration start = cluster_.timeline().elapsed();
    std::vector<int32_t> values;
    messages_.clear();
    RuntimeController& c = cluster_.controller();
    client_->Run(graph, {input}, sequential, [&](const absl::StatusOr<std::vector<ArrayId>>& results) {
      ASSERT_TRUE(results.ok()) << results.status();
      for (ArrayId result : *results) {
        c.Fetch(result, 0).OnReady([&](const absl::StatusOr<std::shared_ptr<const std::string>>& bytes) {
          ASSERT_TRUE(bytes.ok()) << bytes.status();
          values.emplace_back();
          std::memcpy(&values.back(), (*bytes)->data(), sizeof(int32_t));
          span_ = cluster_.timeline().elapsed() - start;
        });
        c.Release(result);
      }
    });
    cluster_.RunFor(absl::Seconds(10));
    return values;
  }

  SimCluster cluster_{{.seed = GetParam(), .between_islands = {kFar, 1e9}}};
  std::unique_ptr<SimClient> client_;
  std::map<std::string, int> messages_;  // with launches or copies, by worker
  absl::Duration span_;
};

INSTANTIATE_TEST_SUITE_P(Seeds, ProgramRunTest, testing::Range<uint64_t>(0, 10));

TEST_P(ProgramRunTest, AProgramIsOneMessageForEachWorker) {
  const std::vector<FunctionRef> functions = {client_->Compile("ms=0.01", 0, 2), client_->Compile("ms=0.02", 2, 2)};
  EXPECT_THAT(Run(SimChain(functions, 16), client_->Put(functions[0], 1), /*sequential=*/false), ElementsAre(17));
  EXPECT_THAT(messages_, ElementsAre(Pair("w0", 1), Pair("w1", 1)));
  // A gang over both workers.
  const FunctionRef wide = client_->Compile("ms=0.01 all_reduce", 0, 4);
  const int expected = 4 * (4 * (1 + 1) + 1);
  EXPECT_THAT(Run(SimChain({wide}, 2), client_->Put(wide, 1), /*sequential=*/false), ElementsAre(expected));
  EXPECT_THAT(messages_, ElementsAre(Pair("w0", 1), Pair("w1", 1)));
}

// Values that are there already decide at once; the stack must not grow with them.
TEST_P(ProgramRunTest, ManyDecisionsInARow) {
  if (GetParam() > 1) GTEST_SKIP();
  const FunctionRef function = client_->Compile("", 0, 1);
  const ArrayId x = client_->Put(function, 0);
  ArrayId y;
  for (int i = 0; i < 4; ++i) {  // read every time, it comes along with the launch
    y = cluster_.On([&](RuntimeController& c) {
      return c.Execute(client_->session(), function->program->id, {x}, {})->outputs[0];
    });
    EXPECT_EQ(*cluster_.Value(y, 0, absl::Seconds(1)), 1);
  }
  v1::Graph graph;
  graph.set_inputs(1);
  for (int i = 0; i < 100'000; ++i) {
    v1::Node* node = graph.add_nodes();
    node->mutable_cond()->mutable_then();
    node->add_arguments(0);
  }
  const auto none = [](uint64_t) -> absl::StatusOr<FunctionRef> { return absl::NotFoundError("none"); };
  absl::Status outcome = absl::UnknownError("still runs");
  client_->Run(*program_api::MakeGraph(graph, none), {y}, false,
               [&](const absl::StatusOr<std::vector<ArrayId>>& results) { outcome = results.status(); });
  cluster_.RunFor(absl::Seconds(1));
  EXPECT_EQ(outcome, absl::OkStatus());
}

TEST_P(ProgramRunTest, SequentialDispatchTellsTheWorkersOneAfterTheOther) {
  const std::vector<FunctionRef> functions = {client_->Compile("ms=0.01", 0, 2), client_->Compile("ms=0.02", 2, 2)};
  const GraphRef chain = SimChain(functions, 8);
  const ArrayId input = client_->Put(functions[0], 1);
  EXPECT_THAT(Run(chain, input, /*sequential=*/false), ElementsAre(9));
  const absl::Duration parallel = span_;
  EXPECT_THAT(Run(chain, input, /*sequential=*/true), ElementsAre(9));
  // Each worker has four launches and a part of seven copies.
  EXPECT_THAT(messages_, ElementsAre(Pair("w0", 11), Pair("w1", 11)));
  EXPECT_GE(span_ - parallel, 14 * 2 * kHop - absl::Milliseconds(1)) << "a round trip for each node but the last";
}

TEST_P(ProgramRunTest, SequentialDispatchDoesNotWaitForDevices) {
  // Two calls that need nothing of each other.
  SimProgram program({client_->Compile("ms=50", 0, 1), client_->Compile("ms=50", 1, 1)}, 1);
  const GraphRef graph = program.Make({program.Call(0, {0}), program.Call(1, {0})});
  const FunctionRef first = std::get<program_api::Call>(graph->nodes[0].kind).function;
  EXPECT_THAT(Run(graph, client_->Put(first, 1), /*sequential=*/true), ElementsAre(2, 2));
  EXPECT_LT(span_, absl::Milliseconds(60)) << "they ran side by side";
}

TEST_P(ProgramRunTest, EdgesBetweenIslandsGoOverTheLinkBetweenThem) {
  const FunctionRef near = client_->Compile("ms=0.01", 0, 2), beside = client_->Compile("ms=0.01", 2, 2),
                    far = client_->Compile("ms=0.01", 4, 2);
  EXPECT_THAT(Run(SimChain({near, beside}, 4), client_->Put(near, 0), /*sequential=*/false), ElementsAre(4));
  EXPECT_LT(span_, kFar);
  EXPECT_THAT(Run(SimChain({near, far}, 4), client_->Put(near, 0), /*sequential=*/false), ElementsAre(4));
  EXPECT_GE(span_, 3 * kFar);
  EXPECT_THAT(messages_, ElementsAre(Pair("w0", 1), Pair("w2", 1)));
}

TEST_P(ProgramRunTest, AGangMayLieInSeveralIslands) {
  const FunctionRef wide = client_->Compile("ms=0.01 all_reduce", 0, 6);
  const int expected = 6 * (6 * (1 + 1) + 1);
  EXPECT_THAT(Run(SimChain({wide}, 2), client_->Put(wide, 1), /*sequential=*/false), ElementsAre(expected));
  EXPECT_THAT(messages_, ElementsAre(Pair("w0", 1), Pair("w1", 1), Pair("w2", 1)));
}

// Clients whose gangs lie in both islands, or in one of them, where each device takes one launch at a time: those that
// wait for one island hold their place in another.
TEST_P(ProgramRunTest, GangsOverIslandsNeverWaitForEachOther) {
  SimCluster cluster({.seed = GetParam(), .scheduler = {.lookahead = 1}});
  for (int w = 0; w < 4; ++w) {
    cluster.AddWorker(absl::StrCat("w", w), {.devices = 1, .island = w / 2});
    cluster.RunFor(absl::Milliseconds(10));
  }
  constexpr int kChain = 5;
  std::vector<std::unique_ptr<SimClient>> clients;
  int done = 0, launches = 0;
  for (auto [first, count] : {std::pair(0, 4), std::pair(1, 2), std::pair(0, 2), std::pair(2, 2), std::pair(1, 3)}) {
    clients.push_back(std::make_unique<SimClient>(cluster, controller::SessionInfo{absl::StrCat("c", first), "", 1}));
    const FunctionRef function = clients.back()->Compile("ms=1 all_reduce", first, count);
    for (int repeat = 0; repeat < 3; ++repeat, ++launches) {
      clients.back()->Run(SimChain({function}, kChain), {clients.back()->Put(function, 1)}, /*sequential=*/false,
                          [&](const absl::StatusOr<std::vector<ArrayId>>& results) {
                            ASSERT_TRUE(results.ok()) << results.status();
                            cluster.controller().Ready((*results)[0]).OnReady([&](const absl::StatusOr<Unit>& ready) {
                              EXPECT_TRUE(ready.ok()) << ready.status();
                              ++done;
                            });
                          });
    }
  }
  cluster.RunFor(absl::Seconds(10));
  EXPECT_EQ(done, launches);
  for (int island : {0, 1}) EXPECT_EQ(cluster.controller().scheduler(island)->under_way(), 0);
}

}  // namespace
}  // namespace gangway

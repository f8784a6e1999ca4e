// One client of gangway.v1 over a cluster in simulated time: what it may have is bounded, and what is beyond that is
// refused at once.
#include <memory>
#include <string>
#include <vector>

#include "gangway/program_api/session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/sim_cluster.h"

namespace gangway {
namespace {

using controller::RuntimeController;
using program_api::Session;
using program_api::SessionBounds;
using testing::HasSubstr;

constexpr char kAddsOne[] = "elements=4";

class ProgramSessionTest : public testing::Test {
 protected:
  void Start(const SessionBounds& bounds, const controller::SessionLimits& limits = {}) {
    SimClusterOptions options;
    options.session = limits;
    cluster_ = std::make_unique<SimCluster>(std::move(options));
    cluster_->AddWorker("w0", {.devices = 2});
    cluster_->RunFor(absl::Milliseconds(10));
    session_ = std::make_shared<Session>(
        cluster_->controller(), "a client", [this](v1::Response response) { answers_.push_back(std::move(response)); },
        bounds);
    v1::Request open;
    open.mutable_open()->set_name("a client");
    ASSERT_EQ(Call(open).code(), 0);
  }
  ~ProgramSessionTest() override {
    cluster_->On([&](RuntimeController& c) { return session_->Close(), c.Stats().arrays; });
    EXPECT_EQ(cluster_->On([](RuntimeController& c) { return c.Stats().arrays + c.Stats().programs; }), 0);
  }

  uint64_t Send(v1::Request request) {
    request.set_id(++last_);
    cluster_->On([&](RuntimeController&) { return session_->Handle(request), 0; });
    return last_;
  }
  bool IsAnswered(uint64_t id) const {
    for (const v1::Response& answer : answers_) {
      if (answer.id() == id) return true;
    }
    return false;
  }
  v1::Response AnswerTo(uint64_t id) const {
    for (const v1::Response& answer : answers_) {
      if (answer.id() == id) return answer;
    }
    ADD_FAILURE() << "no answer to " << id;
    return {};
  }
  v1::Response Call(v1::Request request) {
    const uint64_t id = Send(std::move(request));
    if (!IsAnswered(id)) cluster_->RunFor(absl::Milliseconds(100));
    return AnswerTo(id);
  }
  v1::Response Compile(uint64_t function, const std::string& artifact = kAddsOne) {
    v1::Request request;
    request.mutable_compile()->set_function(function);
    request.mutable_compile()->set_artifact(artifact);
    request.mutable_compile()->add_devices(0);
    return Call(request);
  }
  v1::Response Put(uint64_t array, uint64_t function) {
    v1::Request request;
    request.mutable_put()->set_array(array);
    request.mutable_put()->set_function(function);
    request.mutable_put()->set_value(std::string(16, '\0'));
    return Call(request);
  }
  // A chain of calls of a function.
  v1::Response Define(uint64_t program, uint64_t function, int calls) {
    v1::Request request;
    request.mutable_define()->set_program(program);
    v1::Graph* graph = request.mutable_define()->mutable_graph();
    graph->set_inputs(1);
    for (int i = 0; i < calls; ++i) {
      graph->add_nodes()->set_call(function);
      graph->mutable_nodes(i)->add_arguments(i);
    }
    graph->add_results(calls);
    return Call(request);
  }
  static v1::Request Wait(uint64_t array) {
    v1::Request request;
    request.mutable_wait()->add_arrays(array);
    return request;
  }
  static v1::Request Fetch(uint64_t array) {
    v1::Request request;
    request.mutable_fetch()->set_array(array);
    return request;
  }

  std::vector<v1::Response> answers_;
  std::unique_ptr<SimCluster> cluster_;
  std::shared_ptr<Session> session_;
  uint64_t last_ = 0;
};

TEST_F(ProgramSessionTest, RequestsThatAreNotAnsweredAreBounded) {
  Start({.unanswered = 3});
  ASSERT_EQ(Compile(1).code(), 0);
  ASSERT_EQ(Put(5, 1).code(), 0);
  const std::vector<uint64_t> waiting = {Send(Wait(5)), Send(Fetch(5)), Send(Wait(5))};
  const uint64_t refused = Send(Fetch(5));
  EXPECT_THAT(AnswerTo(refused).message(), HasSubstr("already 3 requests"));
  ASSERT_EQ(Put(6, 1).code(), 0) << "what needs no place goes on";
  cluster_->RunFor(absl::Seconds(1));
  for (uint64_t id : waiting) EXPECT_EQ(AnswerTo(id).code(), 0) << AnswerTo(id).message();
  EXPECT_EQ(Call(Fetch(5)).fetch().value().size(), 16u);
}

TEST_F(ProgramSessionTest, SoAreTheirBytes) {
  Start({.unanswered_bytes = 40});
  ASSERT_EQ(Compile(1).code(), 0);
  ASSERT_EQ(Put(5, 1).code(), 0);
  const std::vector<uint64_t> waiting = {Send(Fetch(5)), Send(Fetch(5))};
  const uint64_t refused = Send(Fetch(5));
  EXPECT_THAT(AnswerTo(refused).message(), HasSubstr("with 32 B of this session are not answered yet"));
  cluster_->RunFor(absl::Seconds(1));
  for (uint64_t id : waiting) EXPECT_EQ(AnswerTo(id).fetch().value().size(), 16u);
  EXPECT_EQ(Call(Fetch(5)).code(), 0);
}

TEST_F(ProgramSessionTest, ProgramsAreBounded) {
  Start({.program_bytes = 4000});
  ASSERT_EQ(Compile(1).code(), 0);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Define(7, 1, 10).code(), 0) << "one takes the other's place";
  const v1::Response refused = Define(8, 1, 100);
  EXPECT_EQ(refused.code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(refused.message(), HasSubstr("more are beyond the 3.91 KiB of a session"));
  int defined = 0;
  while (defined < 100 && Define(10 + defined, 1, 10).code() == 0) ++defined;
  EXPECT_LT(defined, 100);
  v1::Request release;
  release.mutable_release()->add_programs(7);
  Call(release);
  EXPECT_EQ(Define(8, 1, 10).code(), 0);
}

TEST_F(ProgramSessionTest, AProgramThatDoesNotCompileIsNotKept) {
  Start({});
  EXPECT_NE(Compile(1, "x|refuse").code(), 0);
  cluster_->RunFor(absl::Seconds(1));
  EXPECT_EQ(cluster_->On([](RuntimeController& c) { return c.Stats().programs; }), 0);
}

TEST_F(ProgramSessionTest, WhereNoErrorCanBeKeptItsNumberStillSaysWhy) {
  Start({}, {.arrays = 2});
  for (uint64_t array : {5, 6, 7}) EXPECT_THAT(Put(array, 99).message(), HasSubstr("no function 99"));
  EXPECT_THAT(Call(Fetch(6)).message(), HasSubstr("no function 99"));
  const v1::Response refused = Call(Fetch(7));
  EXPECT_EQ(refused.code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(refused.message(), HasSubstr("no array 7; not every array could be made: error array: session a client"));
}

}  // namespace
}  // namespace gangway

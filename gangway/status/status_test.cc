#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gangway/controller/runtime_controller.h"
#include "gangway/status/client.h"
#include "gangway/status/json.h"
#include "gangway/status/metrics.h"
#include "gangway/status/server.h"
#include "gangway/status/trace.h"
#include "nlohmann/json.hpp"

namespace gangway::status {
namespace {

using controller::LaunchRecord;
using controller::Observation;
using nlohmann::json;
using ::testing::HasSubstr;

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

LaunchRecord LaunchOf(uint64_t number, double submitted, double dispatched, double over, double took) {
  LaunchRecord launch;
  launch.number = number;
  launch.program = "train";
  launch.session = "alice";
  launch.islands =
      std::make_shared<const std::vector<controller::IslandPart>>(std::vector<controller::IslandPart>{{0, {0, 1}}});
  launch.submitted = At(submitted);
  launch.dispatched = At(dispatched);
  launch.over = At(over);
  launch.took = absl::Seconds(took);
  return launch;
}

Observation TwoWorkers() {
  Observation seen;
  seen.when = At(10);
  seen.launches = 7;
  seen.workers = {{"host0", 0, 0, 4, true, At(9), 1024, 2, 1, 4096}, {"host1", 0, 4, 4, false, At(3), 0, 0, 0}};
  seen.sessions = {{"alice", "red", 1, 0, 3, 5, absl::Seconds(2)}, {"bob", "red", 1, 0, 4, 2, absl::Seconds(1)}};
  return seen;
}

TEST(Metrics, NameWorkersAndSumTenants) {
  const std::string text = MetricsText(TwoWorkers());
  EXPECT_THAT(text, HasSubstr("# TYPE gangway_launches_total counter\ngangway_launches_total 7"));
  EXPECT_THAT(text, HasSubstr("gangway_worker_up{worker=\"host0\"} 1"));
  EXPECT_THAT(text, HasSubstr("gangway_worker_up{worker=\"host1\"} 0"));
  EXPECT_THAT(text, HasSubstr("gangway_store_bytes{worker=\"host0\"} 1024"));
  EXPECT_THAT(text, HasSubstr("gangway_sent_bytes_total{worker=\"host0\"} 4096"));
  EXPECT_THAT(text, HasSubstr("gangway_tenant_sessions{tenant=\"red\"} 2"));
  EXPECT_THAT(text, HasSubstr("gangway_tenant_waiting{tenant=\"red\"} 7"));
}

TEST(Json, HoldsWhatIsSeen) {
  Observation seen = TwoWorkers();
  seen.recent = {LaunchOf(7, 1, 2, 3, 0.5)};
  seen.recent[0].error = "worker host1 is lost";
  const json out = json::parse(StatusJson(seen));
  EXPECT_EQ(out["totals"]["launches"], 7);
  EXPECT_EQ(out["workers"][1]["alive"], false);
  EXPECT_EQ(out["sessions"][0]["waiting"], 3);
  EXPECT_EQ(out["recent"][0]["dispatched"], 2.0);
  EXPECT_EQ(out["recent"][0]["error"], "worker host1 is lost");
}

TEST(Json, ALaunchThatNeverWentOutHasNoTimeOfIt) {
  Observation seen;
  seen.recent = {LaunchOf(1, 1, 1, 3, 0)};
  seen.recent[0].dispatched = absl::InfinitePast();
  EXPECT_FALSE(json::parse(StatusJson(seen))["recent"][0].contains("dispatched"));
}

TEST(Json, NamesThatAreNoTextDoNotHideTheRest) {
  Observation seen;
  seen.sessions = {{"\xff\xfe", "", 1, 0, 0, 0, absl::ZeroDuration()}};
  EXPECT_EQ(json::parse(StatusJson(seen))["sessions"].size(), 1u);
}

std::vector<json> EventsOf(const std::string& trace, int process, const std::string& phase) {
  std::vector<json> found;
  const json whole = json::parse(trace);
  for (const json& event : whole["traceEvents"]) {
    if (event["pid"] == process && event["ph"] == phase) found.push_back(event);
  }
  return found;
}

TEST(Trace, ALaunchIsOnItsClientItsSchedulerAndItsDevices) {
  const std::string trace = TraceJson({LaunchOf(1, 1, 2, 5, 0.5)}, {}, absl::InfinitePast());
  EXPECT_EQ(EventsOf(trace, 1, "b")[0]["ts"], 1e6);
  EXPECT_EQ(EventsOf(trace, 1, "e")[0]["ts"], 5e6);
  EXPECT_EQ(EventsOf(trace, 2, "e")[0]["ts"], 2e6);
  const std::vector<json> devices = EventsOf(trace, 3, "X");
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0]["ts"], 2e6);
  EXPECT_EQ(devices[0]["dur"], 0.5e6);
}

LaunchRecord OverTwoIslands(LaunchRecord launch) {
  launch.islands = std::make_shared<const std::vector<controller::IslandPart>>(
      std::vector<controller::IslandPart>{{1, {2}}, {4, {0, 7}}});
  return launch;
}

TEST(Trace, ALaunchOverIslandsIsInAllOfThem) {
  const std::string trace = TraceJson({OverTwoIslands(LaunchOf(1, 1, 2, 5, 0.5))}, {}, absl::InfinitePast());
  const std::vector<json> waits = EventsOf(trace, 2, "e");
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0]["tid"], 1);
  EXPECT_EQ(waits[1]["tid"], 4);
  EXPECT_NE(waits[0]["id"], waits[1]["id"]) << "rows of one id are drawn as one";
  std::vector<int> devices;
  for (const json& event : EventsOf(trace, 3, "X")) devices.push_back(event["tid"]);
  EXPECT_EQ(devices, (std::vector<int>{2, 0, 7}));
}

TEST(Json, ALaunchOverIslandsNamesThemAll) {
  Observation seen;
  seen.recent = {OverTwoIslands(LaunchOf(1, 1, 2, 3, 0.5))};
  const json launch = json::parse(StatusJson(seen))["recent"][0];
  EXPECT_EQ(launch["islands"], json({1, 4}));
  EXPECT_EQ(launch["devices"], json({2, 0, 7}));
}

TEST(Trace, LaunchesOfADeviceDoNotOverlap) {
  const std::string trace = TraceJson({LaunchOf(1, 1, 2, 5, 2), LaunchOf(2, 1, 3, 6, 1)}, {}, absl::InfinitePast());
  EXPECT_EQ(EventsOf(trace, 3, "X")[2]["ts"], 4e6) << "dispatched at 3, but the one before took until 4";
}

TEST(Trace, WhatEndedBeforeIsLeftOut) {
  EXPECT_TRUE(EventsOf(TraceJson({LaunchOf(1, 1, 2, 5, 2)}, {}, At(6)), 3, "X").empty());
}

TEST(Trace, TransfersAreCountersOfTheirWorkers) {
  const std::string trace = TraceJson({}, {{"w0", At(1), 0, 0}, {"w1", At(1), 5, 0}, {"w0", At(3), 4096, 2048}}, At(0));
  const std::vector<json> counters = EventsOf(trace, 4, "C");
  ASSERT_EQ(counters.size(), 1u);
  EXPECT_EQ(counters[0]["name"], "bytes/s of w0");
  EXPECT_EQ(counters[0]["args"]["sent"], 2048);
  EXPECT_EQ(counters[0]["args"]["received"], 1024);
}

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() : controller_(Options()), server_(Serve(controller_, "127.0.0.1:0")) {}
  ~ServerTest() override {
    server_->reset();
    absl::Notification stopped;
    controller_.loop().Post([&] {
      controller_.Stop();
      stopped.Notify();
    });
    stopped.WaitForNotification();
  }

  static controller::ControllerOptions Options() {
    controller::ControllerOptions options;
    options.compile = [](const std::string&, const compile::CompileOptions&) {
      return absl::StatusOr<compile::CompiledProgram>(absl::UnimplementedError("nothing is compiled here"));
    };
    return options;
  }

  absl::StatusOr<std::string> Ask(const std::string& path) { return Get((*server_)->address(), path); }

  controller::RuntimeController controller_;
  absl::StatusOr<std::unique_ptr<Server>> server_;
};

TEST_F(ServerTest, ServesThePageAndItsDocuments) {
  ASSERT_TRUE(server_.ok()) << server_.status();
  EXPECT_THAT(*Ask("/"), HasSubstr("<title>Gangway</title>"));
  EXPECT_EQ(json::parse(*Ask("/status.json?after=3"))["totals"]["sessions"], 0);
  EXPECT_THAT(*Ask("/metrics"), HasSubstr("gangway_sessions 0"));
  EXPECT_TRUE(json::parse(*Ask("/trace.json?seconds=5")).contains("traceEvents"));
}

TEST_F(ServerTest, OddQuestionsAreAnsweredOrRefused) {
  for (const char* path : {"/status.json?after=-1", "/status.json?after=nan", "/trace.json?seconds=1e300"}) {
    EXPECT_TRUE(Ask(path).ok()) << path;
  }
  EXPECT_THAT(std::string(Ask("/etc/passwd").status().message()), HasSubstr("answered 404"));
}

TEST_F(ServerTest, WhatIsNotThereCannotBeExplained) {
  EXPECT_THAT(std::string(Ask("/explain?program=train").status().message()), HasSubstr("answered 404"));
  ExplainFunction explain = [](const controller::CompileRequest&, const Parameters&) {
    return absl::StatusOr<Explained>(Explained{"nobody wants it", "text/plain", ""});
  };
  auto explains = Serve(controller_, "127.0.0.1:0", explain);
  ASSERT_TRUE(explains.ok()) << explains.status();
  const absl::Status refused =
      GetExplanation((*explains)->address(), "train", {{"format", "text"}}, absl::Seconds(5)).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("answered 404: no program train is on this cluster"));
}

TEST_F(ServerTest, OnlyThisMachineIsServed) {
  EXPECT_EQ(Serve(controller_, "0.0.0.0:0").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Serve(controller_, "127.0.0.1").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ServerTest, AnAddressInUseIsAnError) {
  EXPECT_THAT(std::string(Serve(controller_, (*server_)->address()).status().message()), HasSubstr("cannot listen"));
}

TEST(Client, NobodyThereIsOneLine) {
  EXPECT_THAT(std::string(Get("127.0.0.1:1", "/").status().message()), HasSubstr("no status page at 127.0.0.1:1"));
}

}  // namespace
}  // namespace gangway::status

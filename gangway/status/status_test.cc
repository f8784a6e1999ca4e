#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gangway/controller/launch_journal.h"
#include "gangway/controller/runtime_controller.h"
#include "gangway/status/client.h"
#include "gangway/status/json.h"
#include "gangway/status/metrics.h"
#include "gangway/status/recording.h"
#include "gangway/status/server.h"
#include "gangway/status/trace.h"
#include "httplib.h"
#include "nlohmann/json.hpp"

namespace gangway::status {
namespace {

using controller::LaunchRecord;
using controller::Observation;
using nlohmann::json;
using ::testing::HasSubstr;

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

controller::Name NameOf(const char* name) { return std::make_shared<const std::string>(name); }

LaunchRecord LaunchOf(uint64_t number, double submitted, double dispatched, double over, double took) {
  LaunchRecord launch;
  launch.number = number;
  launch.program = NameOf("train");
  launch.client = std::make_shared<const controller::ClientName>(controller::ClientName{"alice", "red"});
  launch.islands =
      std::make_shared<const std::vector<controller::IslandPart>>(std::vector<controller::IslandPart>{{0, {0, 1}}});
  launch.submitted = At(submitted);
  launch.dispatched = At(dispatched);
  launch.over = At(over);
  launch.took = absl::Seconds(took);
  return launch;
}

// Numbered from 1.
controller::LaunchList Listed(std::vector<LaunchRecord> launches) {
  controller::LaunchJournal journal(launches.size());
  for (LaunchRecord& launch : launches) journal.Add(std::move(launch));
  return journal.After(0);
}

std::string TraceOf(const std::vector<LaunchRecord>& launches,
                    const std::vector<controller::TransferSample>& transfers = {},
                    absl::Time from = absl::InfinitePast()) {
  Trace trace;
  AddTo(trace, {absl::UnixEpoch(), launches.size(), Listed(launches), transfers}, from);
  return trace.Finish();
}

Observation TwoWorkers() {
  Observation seen;
  seen.when = At(10);
  seen.launches = 7;
  seen.device_time = absl::Seconds(2.5);
  seen.workers = {{"host0", 0, 0, 4, true, At(9), 1024, 2, 1, 4096}, {"host1", 0, 4, 4, false, At(3), 0, 0, 0}};
  seen.sessions = {{"alice", "red", 1, 0, 3, 5, absl::Seconds(2)}, {"bob", "red", 1, 0, 4, 2, absl::Seconds(1)}};
  return seen;
}

TEST(Metrics, NameWorkersAndSumTenants) {
  const std::string text = MetricsText(TwoWorkers());
  EXPECT_THAT(text, HasSubstr("# TYPE gangway_launches_total counter\ngangway_launches_total 7"));
  EXPECT_THAT(text, HasSubstr("gangway_device_seconds_total 2.5"));
  EXPECT_THAT(text, HasSubstr("gangway_worker_up{worker=\"host0\"} 1"));
  EXPECT_THAT(text, HasSubstr("gangway_worker_up{worker=\"host1\"} 0"));
  EXPECT_THAT(text, HasSubstr("gangway_store_bytes{worker=\"host0\"} 1024"));
  EXPECT_THAT(text, HasSubstr("gangway_sent_bytes_total{worker=\"host0\"} 4096"));
  EXPECT_THAT(text, HasSubstr("gangway_tenant_sessions{tenant=\"red\"} 2"));
  EXPECT_THAT(text, HasSubstr("gangway_tenant_waiting{tenant=\"red\"} 7"));
}

TEST(Json, HoldsWhatIsSeen) {
  LaunchRecord failed = LaunchOf(1, 1, 2, 3, 0.5);
  failed.error = "worker host1 is lost";
  const json out =
      json::parse(StatusJson(TwoWorkers(), {{3, NameOf("train"), 8, 7, absl::Seconds(0.5)}}, Listed({failed})));
  EXPECT_EQ(out["totals"]["launches"], 7);
  EXPECT_EQ(out["totals"]["device_seconds"], 2.5);
  EXPECT_EQ(out["workers"][1]["alive"], false);
  EXPECT_EQ(out["sessions"][0]["waiting"], 3);
  EXPECT_EQ(out["programs"], json::parse(R"([{"number":3,"name":"train","devices":8,"launches":7,"seconds":0.5}])"));
  EXPECT_EQ(out["recent"][0]["program"], "train");
  EXPECT_EQ(out["recent"][0]["session"], "alice");
  EXPECT_EQ(out["recent"][0]["dispatched"], 2.0);
  EXPECT_EQ(out["recent"][0]["error"], "worker host1 is lost");
}

TEST(Json, ALaunchThatNeverWentOutHasNoTimeOfIt) {
  LaunchRecord held = LaunchOf(1, 1, 1, 3, 0);
  held.dispatched = absl::InfinitePast();
  EXPECT_FALSE(json::parse(StatusJson({}, {}, Listed({held})))["recent"][0].contains("dispatched"));
}

TEST(Json, NamesThatAreNoTextDoNotHideTheRest) {
  Observation seen;
  seen.sessions = {{"\xff\xfe", "", 1, 0, 0, 0, absl::ZeroDuration()}};
  EXPECT_EQ(json::parse(StatusJson(seen, {}, {}))["sessions"].size(), 1u);
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
  const std::string trace = TraceOf({LaunchOf(1, 1, 2, 5, 0.5)});
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
  const std::string trace = TraceOf({OverTwoIslands(LaunchOf(1, 1, 2, 5, 0.5))});
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
  const controller::LaunchList launches = Listed({OverTwoIslands(LaunchOf(1, 1, 2, 3, 0.5))});
  const json launch = json::parse(StatusJson({}, {}, launches))["recent"][0];
  EXPECT_EQ(launch["islands"], json({1, 4}));
  EXPECT_EQ(launch["devices"], json({2, 0, 7}));
}

TEST(Trace, LaunchesOfADeviceDoNotOverlap) {
  const std::string trace = TraceOf({LaunchOf(1, 1, 2, 5, 2), LaunchOf(2, 1, 3, 6, 1)});
  EXPECT_EQ(EventsOf(trace, 3, "X")[2]["ts"], 4e6) << "dispatched at 3, but the one before took until 4";
}

TEST(Trace, WhatEndedBeforeIsLeftOut) {
  EXPECT_TRUE(EventsOf(TraceOf({LaunchOf(1, 1, 2, 5, 2)}, {}, At(6)), 3, "X").empty());
}

TEST(Trace, TransfersAreCountersOfTheirWorkers) {
  const std::string trace = TraceOf({}, {{"w0", At(1), 0, 0}, {"w1", At(1), 5, 0}, {"w0", At(3), 4096, 2048}});
  const std::vector<json> counters = EventsOf(trace, 4, "C");
  ASSERT_EQ(counters.size(), 1u);
  EXPECT_EQ(counters[0]["name"], "bytes/s of w0");
  EXPECT_EQ(counters[0]["args"]["sent"], 2048);
  EXPECT_EQ(counters[0]["args"]["received"], 1024);
}

// The numbers of launches on clients' rows.
std::vector<int> LaunchesOf(const std::string& trace) {
  std::vector<int> numbers;
  for (const json& event : EventsOf(trace, 1, "b")) numbers.push_back(event["args"]["launch"]);
  return numbers;
}

TEST(Recording, HasEachLaunchOnceAndEndsWhenItIsLongEnough) {
  std::atomic<int> all = 0;
  controller::LaunchJournal journal(100);
  for (int i = 1; i <= 3; ++i) journal.Add(LaunchOf(i, 0, 0, 0, 0));
  Recording recording(all, {At(10), 3, journal.After(0), {}}, absl::Seconds(2));
  std::string document;
  for (int turn = 1; turn <= 3; ++turn) {
    EXPECT_FALSE(recording.over());
    journal.Add(LaunchOf(0, 10, 10, 10 + turn, 0));
    const uint64_t count = journal.launches();
    const std::string part =
        recording.Add({At(10 + turn), count, journal.After(recording.seen().first), {}}, /*last=*/false);
    EXPECT_FALSE(part.empty());
    document += part;
    if (recording.over()) break;
  }
  EXPECT_TRUE(recording.over());
  EXPECT_EQ(LaunchesOf(document), (std::vector<int>{4, 5}));
  EXPECT_EQ(EventsOf(document, 3, "M").size(), 1 + 2u) << "rows have their names once";
}

TEST(Recording, SaysSoWhereNothingHappensAndWhatIsMissing) {
  std::atomic<int> all = 0;
  controller::LaunchJournal journal(1);
  Recording recording(all, {At(0), 0, {}, {}}, absl::Seconds(5));
  std::string document = recording.Add({At(1), 0, {}, {}}, false);
  const std::string nothing = recording.Add({At(2), 0, {}, {}}, false);
  EXPECT_EQ(nothing, "\n");
  for (int i = 0; i < 3; ++i) journal.Add(LaunchOf(0, 2, 2, 2, 0));
  document += nothing + recording.Add({At(3), 3, journal.After(0), {}}, /*last=*/true);
  EXPECT_EQ(LaunchesOf(document), std::vector<int>{3});
  EXPECT_EQ(EventsOf(document, 1, "i")[0]["name"], "2 launches are missing: more than --history keeps");
}

TEST(Recording, ThereMayBeSome) {
  std::atomic<int> all = 0;
  std::vector<std::unique_ptr<Recording>> recordings;
  const auto record = [&] { return std::make_unique<Recording>(all, History{}, absl::Seconds(1)); };
  while (recordings.empty() || recordings.back()->admitted()) recordings.push_back(record());
  EXPECT_GT(recordings.size(), 2u);
  EXPECT_FALSE(record()->admitted());
  recordings.pop_back();
  EXPECT_FALSE(record()->admitted());
  recordings.pop_back();
  EXPECT_TRUE(record()->admitted());
}

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() : controller_(Options()), server_(Serve(controller_, "127.0.0.1:0")) {}
  ~ServerTest() override {
    server_->reset();
    Stop(controller_);
  }

  static void Stop(controller::RuntimeController& controller) {
    absl::Notification stopped;
    controller.loop().Post([&] {
      controller.Stop();
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

TEST_F(ServerTest, AnAddressMayBeTheBrowsers) {
  EXPECT_TRUE(Get(absl::StrCat("http://", (*server_)->address(), "/"), "/metrics").ok());
}

TEST_F(ServerTest, OddQuestionsAreAnsweredOrRefused) {
  for (const char* path : {"/status.json?after=-1", "/status.json?after=nan", "/trace.json?seconds=1e300"}) {
    EXPECT_TRUE(Ask(path).ok()) << path;
  }
  EXPECT_THAT(std::string(Ask("/etc/passwd").status().message()), HasSubstr("answered 404"));
}

TEST_F(ServerTest, RecordsUntilItIsLongEnoughOrWhoeverAskedHasEnough) {
  std::string document;
  const auto take = [&](absl::string_view part) {
    absl::StrAppend(&document, part);
    return true;
  };
  ASSERT_TRUE(RecordTrace((*server_)->address(), absl::Milliseconds(300), take).ok());
  EXPECT_EQ(json::parse(document)["traceEvents"].size(), 4u) << "the rows' names";
  int parts = 0;
  const auto enough = [&](absl::string_view) { return ++parts < 2; };
  EXPECT_TRUE(RecordTrace((*server_)->address(), absl::Hours(1), enough).ok());
  EXPECT_EQ(parts, 2);
}

TEST_F(ServerTest, ARecordingEndsWithTheServer) {
  std::string document;
  bool begun = false;
  absl::Notification first;
  std::thread client([&] {
    const absl::Status recorded = RecordTrace((*server_)->address(), absl::Hours(1), [&](absl::string_view part) {
      absl::StrAppend(&document, part);
      if (!std::exchange(begun, true)) first.Notify();
      return true;
    });
    EXPECT_TRUE(recorded.ok()) << recorded;
  });
  first.WaitForNotification();
  server_->reset();
  client.join();
  EXPECT_TRUE(json::accept(document)) << document;
}

// A page that stays open asks again and again; no connection of its keeps a thread meanwhile.
TEST_F(ServerTest, AConnectionIsForOneQuestion) {
  httplib::Client client(absl::StrCat("http://", (*server_)->address()));
  client.set_keep_alive(true);
  const httplib::Result answer = client.Get("/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->get_header_value("Connection"), "close");
}

TEST_F(ServerTest, WhatIsNotRememberedCannotBeTraced) {
  controller::ControllerOptions options = Options();
  options.journal_capacity = 0;
  controller::RuntimeController forgetful(options);
  {
    auto server = Serve(forgetful, "127.0.0.1:0");
    ASSERT_TRUE(server.ok()) << server.status();
    for (const char* query : {"seconds=5", "record=5"}) {
      const absl::Status refused = Get((*server)->address(), absl::StrCat("/trace.json?", query)).status();
      EXPECT_THAT(std::string(refused.message()), HasSubstr("answered 404: this controller remembers no launches"));
    }
    EXPECT_TRUE(Get((*server)->address(), "/status.json").ok());
  }
  Stop(forgetful);
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
  EXPECT_THAT(std::string(Get("localhost", "/").status().message()), HasSubstr("'localhost' is not host:port"));
  EXPECT_THAT(std::string(Get("127.0.0.1:1", "/").status().message()), HasSubstr("no status page at 127.0.0.1:1"));
}

}  // namespace
}  // namespace gangway::status

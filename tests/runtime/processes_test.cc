// Controller and workers as processes have them: gRPC between them, the PJRT CPU plugin below.
#include <cstring>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gangway/controller/controller_server.h"
#include "gangway/net/grpc/grpc_channel.h"
#include "gangway/worker/worker_main.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/hand_made.h"

namespace gangway {
namespace {

using controller::ArrayId;
using controller::Controller;
using controller::DeviceId;
using testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);

class ProcessesTest : public testing::Test {
 protected:
  void SetUp() override {
    controller::ControllerServerOptions options;
    options.controller.compile = CompileHloText;
    auto server = controller::StartControllerServer(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void TearDown() override {
    for (auto& worker : workers_) worker->stop = true;
    for (auto& worker : workers_) worker->thread.join();
    server_.reset();
  }
  struct WorkerThread {
    std::atomic<bool> stop = false;
    absl::Status outcome;
    std::thread thread;
  };
  WorkerThread& AddWorker(std::string name, int devices) {
    workers_.push_back(std::make_unique<WorkerThread>());
    WorkerThread& worker = *workers_.back();
    worker.thread = std::thread([this, &worker, name, devices] {
      worker::RunWorkerOptions options;
      options.name = name;
      options.plugin = GANGWAY_CPU_PLUGIN;
      options.devices = devices;
      options.controller = server_->worker_address();
      options.stop = &worker.stop;
      worker.outcome = worker::RunWorker(options);
    });
    return worker;
  }
  // Runs `f` on the controller's loop and waits.
  template <typename F>
  auto On(F f) {
    using R = decltype(f(std::declval<Controller&>()));
    std::optional<R> result;
    absl::Notification done;
    server_->controller().loop().Post([&] {
      result.emplace(f(server_->controller()));
      done.Notify();
    });
    done.WaitForNotification();
    return *std::move(result);
  }
  std::vector<DeviceId> Devices(int count) {
    std::vector<DeviceId> devices;
    for (int i = 0; i < count; ++i) devices.push_back(DeviceId(i));
    return devices;
  }
  absl::StatusOr<ArrayId> MakeScalar(controller::SessionId session, int devices, float value) {
    controller::ArraySpec spec;
    spec.dtype = DType::kF32;
    spec.devices = Devices(devices);
    spec.shard_dims = {DimVector{}};
    std::vector<int> all(devices);
    for (int i = 0; i < devices; ++i) all[i] = i;
    auto bytes = std::make_shared<const std::string>(reinterpret_cast<const char*>(&value), sizeof(value));
    return On([&](Controller& c) { return c.MakeArray(session, spec, {{bytes, all}}); });
  }
  absl::StatusOr<float> Value(ArrayId array, int shard) {
    auto bytes = On([&](Controller& c) { return c.Fetch(array, shard); }).Await(absl::Now() + kLong, "fetch");
    if (!bytes.ok()) return bytes.status();
    float value = 0;
    std::memcpy(&value, (*bytes)->data(), sizeof(value));
    return value;
  }
  absl::StatusOr<controller::ProgramId> Compile(controller::SessionId session, std::string text, int devices) {
    controller::CompileRequest request;
    request.artifact = std::move(text);
    request.devices = Devices(devices);
    request.options.num_partitions = devices;
    auto [id, ready] = On([&](Controller& c) { return c.Compile(session, request); });
    auto program = ready.Await(absl::Now() + kLong, "compile");
    if (!program.ok()) return program.status();
    return id;
  }

  std::unique_ptr<controller::ControllerServer> server_;
  std::vector<std::unique_ptr<WorkerThread>> workers_;
};

TEST_F(ProcessesTest, ChainsOfCollectives) {
  AddWorker("w0", 8);
  ASSERT_TRUE(server_->WaitForDevices(8, absl::Now() + kLong).ok());
  auto session = On([](Controller& c) { return c.OpenSession({"test", "", 1}); });
  auto program = Compile(session, AllReduceAddOne(8), 8);
  ASSERT_TRUE(program.ok()) << program.status();
  auto x = MakeScalar(session, 8, 1);
  ASSERT_TRUE(x.ok()) << x.status();
  float expected = 1;
  for (int i = 0; i < 10; ++i) {
    auto result = On([&](Controller& c) { return c.Execute(session, *program, {*x}, {}); });
    ASSERT_TRUE(result.ok()) << result.status();
    On([&](Controller& c) { return c.Release(*x), 0; });
    x = result->outputs[0];
    expected = 8 * expected + 1;
  }
  for (int shard : {0, 7}) {
    auto value = Value(*x, shard);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(*value, expected);
  }
  EXPECT_TRUE(On([&](Controller& c) { return c.Ready(*x); }).Await(absl::Now() + kLong, "ready").ok());
  On([&](Controller& c) { return c.CloseSession(session), 0; });
  controller::Statistics stats;
  for (int i = 0; i < 200; ++i) {
    stats = On([](Controller& c) { return c.Stats(); });
    if (stats.store_bytes == 0 && stats.pending_launches == 0) break;
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(stats.store_bytes + stats.pending_launches + stats.arrays + stats.programs + stats.sessions, 0);
}

TEST_F(ProcessesTest, AWorkerThatLeavesFailsItsArraysOnly) {
  WorkerThread& first = AddWorker("w0", 1);
  ASSERT_TRUE(server_->WaitForDevices(1, absl::Now() + kLong).ok());
  AddWorker("w1", 1);
  ASSERT_TRUE(server_->WaitForDevices(2, absl::Now() + kLong).ok());
  auto session = On([](Controller& c) { return c.OpenSession({"test", "", 1}); });
  auto both = MakeScalar(session, 2, 5);
  ASSERT_TRUE(both.ok());
  auto parts = On([&](Controller& c) { return c.Disassemble(session, *both); });
  ASSERT_TRUE(parts.ok());
  // Over to the other worker and back.
  auto there = On(
      [&](Controller& c) { return c.Copy(session, (*parts)[0], {DeviceId(1)}, {}, controller::CopySemantics::kCopy); });
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ(*Value(*there, 0), 5);
  first.stop = true;
  first.thread.join();
  first.thread = std::thread([] {});
  EXPECT_TRUE(first.outcome.ok()) << first.outcome;
  for (int i = 0; i < 500 && Value((*parts)[0], 0).ok(); ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_THAT(std::string(Value((*parts)[0], 0).status().message()), HasSubstr("worker w0 is lost"));
  EXPECT_EQ(*Value((*parts)[1], 0), 5);
  EXPECT_EQ(*Value(*there, 0), 5);
}

TEST_F(ProcessesTest, TwoWorkersOfOneName) {
  AddWorker("w0", 1);
  ASSERT_TRUE(server_->WaitForDevices(1, absl::Now() + kLong).ok());
  WorkerThread& second = AddWorker("w0", 1);
  second.thread.join();
  second.thread = std::thread([] {});
  EXPECT_THAT(std::string(second.outcome.message()), HasSubstr("a worker named w0 is registered"));
}

TEST_F(ProcessesTest, AWorkerOfAnotherProtocolIsRefusedAndBothAreNamed) {
  auto channel = net::ConnectGrpc(server_->worker_address(), absl::Now() + kLong);
  ASSERT_TRUE(channel.ok()) << channel.status();
  Promise<Unit> closed;
  net::ChannelHandler handler;
  handler.on_messages = [](std::vector<net::Message>) {};
  handler.on_close = [closed](const absl::Status& reason) { closed.Set(reason); };
  (*channel)->Start(std::move(handler));
  net::Hello hello;
  hello.worker = "newer";
  hello.protocol_version = net::kProtocolVersion + 1;
  ASSERT_TRUE((*channel)->Send(hello).ok());
  const absl::Status refused = closed.future().Await(absl::Now() + kLong, "the refusal").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;  // a worker does not try that again
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(absl::StrCat("worker newer speaks protocol ", net::kProtocolVersion + 1, ", the controller ",
                                     net::kProtocolVersion)));
}

TEST_F(ProcessesTest, BadPluginsAndAddresses) {
  worker::RunWorkerOptions options;
  options.name = "w0";
  options.controller = server_->worker_address();
  options.plugin = "/nowhere/plugin.so";
  EXPECT_THAT(std::string(worker::RunWorker(options).message()), HasSubstr("/nowhere/plugin.so"));
  options.plugin = GANGWAY_CPU_PLUGIN;
  options.controller = "127.0.0.1:1";
  options.connect_timeout = absl::Milliseconds(200);
  EXPECT_THAT(std::string(worker::RunWorker(options).message()), HasSubstr("cannot reach 127.0.0.1:1"));
  controller::ControllerServerOptions taken;
  taken.worker_address = server_->worker_address();
  taken.controller.compile = CompileHloText;
  EXPECT_THAT(std::string(controller::StartControllerServer(taken).status().message()), HasSubstr("cannot listen"));
}

}  // namespace
}  // namespace gangway

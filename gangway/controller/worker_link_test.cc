// What passes between the controller and one worker, whose end is in the test's hands.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gangway/base/clock.h"
#include "gangway/controller/runtime_controller.h"
#include "gangway/net/inproc/inproc.h"
#include "gtest/gtest.h"

namespace gangway::controller {
namespace {

// Says hello as a worker of one device.
class HandWorker {
 public:
  HandWorker(RuntimeController& controller, const std::string& name) {
    auto [ours, theirs] = net::MakeInprocPair(name);
    channel_ = std::move(theirs);
    net::ChannelHandler handler;
    handler.on_messages = [this](std::vector<net::Message> messages) {
      for (net::Message& message : messages) received_.push_back(std::move(message));
    };
    handler.on_close = [](const absl::Status&) {};
    channel_->Start(std::move(handler));
    controller.AddWorker(std::move(ours));
    net::Hello hello;
    hello.worker = name;
    hello.devices.push_back({"cpu", {0}, 0});
    Say(std::move(hello));
  }
  void Say(net::Message message) { EXPECT_TRUE(channel_->Send(std::move(message)).ok()); }
  template <typename T>
  std::vector<T> Heard() const {
    std::vector<T> heard;
    for (const net::Message& message : received_) {
      if (auto* one = std::get_if<T>(&message)) heard.push_back(*one);
    }
    return heard;
  }

 private:
  std::unique_ptr<net::Channel> channel_;
  std::vector<net::Message> received_;
};

class WorkerLinkTest : public testing::Test {
 protected:
  WorkerLinkTest() {
    ControllerOptions options;
    options.compile = [](const std::string&, const compile::CompileOptions&) {
      return absl::UnimplementedError("no programs here");
    };
    options.clock = &clock_;  // stands still: nobody is silent for too long
    controller_ = std::make_unique<RuntimeController>(std::move(options));
  }
  ~WorkerLinkTest() override {
    On([](RuntimeController& c) { c.Stop(); });
    controller_.reset();
  }
  // On the loop, which is idle, so before this returns.
  template <typename F>
  void On(F f) {
    controller_->loop().Post([&] { f(*controller_); });
  }
  // A scalar for the only device.
  ArrayId Put(SessionId session) {
    ArraySpec spec;
    spec.dtype = DType::kS32;
    spec.devices = {DeviceId(0)};
    spec.shard_dims = {DimVector{}};
    ArrayId id;
    On([&](RuntimeController& c) {
      id = *c.MakeArray(session, spec, {{std::make_shared<const std::string>(4, '\0'), {0}}});
    });
    return id;
  }

  ManualClock clock_;
  std::unique_ptr<RuntimeController> controller_;
};

TEST_F(WorkerLinkTest, AnAnswerGoesToTheWorkerThatCalledAndNotToOneThatCameBack) {
  std::vector<HostCall> calls;
  SessionId session;
  On([&](RuntimeController& c) {
    SessionInfo info;
    info.on_host_call = [&calls](HostCall call) { calls.push_back(std::move(call)); };
    session = c.OpenSession(std::move(info));
  });
  const auto call = [&](HandWorker& worker) {
    Put(session);
    const net::TaskId task = worker.Heard<net::MakeBuffer>().back().task;  // is not over before the worker says so
    worker.Say(net::HostCall{net::RequestId(1), task, 0, 0, net::Payload(std::make_shared<const std::string>("x"))});
  };
  const auto answer = [&](size_t index, std::string text) {
    ASSERT_LT(index, calls.size());
    On([&](RuntimeController&) { calls[index].answer(std::make_shared<const std::string>(text)); });
  };
  auto first = std::make_unique<HandWorker>(*controller_, "w0");
  call(*first);
  first.reset();
  HandWorker second(*controller_, "w0");
  call(second);
  answer(0, "for the first");
  EXPECT_TRUE(second.Heard<net::HostCallAnswer>().empty());
  answer(1, "for the second");
  ASSERT_EQ(second.Heard<net::HostCallAnswer>().size(), 1u);
  EXPECT_EQ(second.Heard<net::HostCallAnswer>()[0].results.view(), "for the second");
}

TEST_F(WorkerLinkTest, FreesOfAnyNumberLeaveInMessagesOfSome) {
  constexpr size_t kArrays = 100'000;
  HandWorker worker(*controller_, "w0");
  SessionId session;
  On([&](RuntimeController& c) { session = c.OpenSession({}); });
  for (size_t i = 0; i < kArrays; ++i) Put(session);
  On([&](RuntimeController& c) { c.CloseSession(session), c.Tick(); });
  size_t freed = 0;
  for (const net::FreeBuffers& free : worker.Heard<net::FreeBuffers>()) {
    EXPECT_LE(free.buffers.size(), 70'000u);
    freed += free.buffers.size();
  }
  EXPECT_EQ(freed, kArrays);
}

}  // namespace
}  // namespace gangway::controller

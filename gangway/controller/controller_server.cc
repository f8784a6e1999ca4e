#include "gangway/controller/controller_server.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gangway/base/status.h"
#include "gangway/net/grpc/grpc_channel.h"

namespace gangway::controller {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(20);

class ServerImpl final : public ControllerServer {
 public:
  explicit ServerImpl(ControllerOptions options)
      : controller_(std::make_unique<RuntimeController>(std::move(options))), ticker_([this] { KeepTicking(); }) {}

  absl::Status Listen(const std::string& address, const net::Tls& tls) {
    auto accept = [this](std::unique_ptr<net::Channel> channel) {
      absl::MutexLock lock(&accept_mutex_);
      if (!closing_) controller_->AddWorker(std::move(channel));
    };
    GW_ASSIGN_OR_RETURN_WITH(server_, net::ServeGrpc(address, accept, tls), "controller");
    return absl::OkStatus();
  }

  ~ServerImpl() override {
    {
      absl::MutexLock lock(&accept_mutex_);
      closing_ = true;
    }
    stop_ticking_.Notify();
    ticker_.join();
    absl::Notification stopped;
    controller_->loop().Post([&] {
      controller_->Stop();
      stopped.Notify();
    });
    stopped.WaitForNotification();
    controller_.reset();  // and with it the channels, before their server
    server_.reset();
  }

  RuntimeController& controller() override { return *controller_; }
  std::string worker_address() const override { return server_ == nullptr ? "" : server_->address(); }

  absl::Status WaitForDevices(int count, absl::Time deadline) override {
    // Shared: the controller may fulfil it after we have given up.
    auto joined = std::make_shared<Promise<Unit>>();
    controller_->loop().Post([this, count, joined] {
      controller_->DevicesReady(count).OnReady([joined](const absl::StatusOr<Unit>& outcome) { joined->Set(outcome); });
    });
    absl::Status status = joined->future().Await(deadline, "devices").status();
    if (status.ok()) return status;
    auto have = std::make_shared<Promise<size_t>>();
    controller_->loop().Post([this, have] { have->Set(controller_->devices().size()); });
    auto devices = have->future().Await(deadline + absl::Seconds(5), "the controller");
    return absl::DeadlineExceededError(
        absl::StrCat("waited for ", count, " devices, ", devices.ok() ? *devices : 0, " have joined"));
  }

 private:
  void KeepTicking() {
    while (!stop_ticking_.WaitForNotificationWithTimeout(kTick)) {
      controller_->loop().Post([this] { controller_->Tick(); });
      controller_->Reap();
    }
  }

  std::unique_ptr<RuntimeController> controller_;
  absl::Mutex accept_mutex_;
  bool closing_ ABSL_GUARDED_BY(accept_mutex_) = false;
  std::unique_ptr<net::Server> server_;
  absl::Notification stop_ticking_;
  std::thread ticker_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ControllerServer>> StartControllerServer(ControllerServerOptions options) {
  auto server = std::make_unique<ServerImpl>(std::move(options.controller));
  if (!options.worker_address.empty()) GW_RETURN_IF_ERROR(server->Listen(options.worker_address, options.worker_tls));
  return std::unique_ptr<ControllerServer>(std::move(server));
}

}  // namespace gangway::controller

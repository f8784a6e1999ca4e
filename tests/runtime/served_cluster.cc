#include "tests/runtime/served_cluster.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gangway/base/check.h"
#include "gangway/worker/worker_main.h"
#include "tests/runtime/hand_made.h"

namespace gangway {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

}  // namespace

ServedCluster::ServedCluster(controller::ControllerOptions options, const program_api::ServiceOptions& service) {
  controller::ControllerServerOptions server_options;
  server_options.controller = std::move(options);
  server_options.controller.compile = CompileHloText;
  auto server = controller::StartControllerServer(std::move(server_options));
  GW_CHECK(server.ok(), std::string(server.status().message()));
  server_ = *std::move(server);
  service_ = program_api::MakeService(server_->controller(), service);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("localhost:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service_.get());
  grpc_ = builder.BuildAndStart();
  address_ = absl::StrCat("localhost:", port);
}

ServedCluster::~ServedCluster() {
  StopServing();
  for (auto& worker : workers_) worker->stop = true;
  for (auto& worker : workers_) worker->thread.join();
  server_.reset();
}

void ServedCluster::StopServing() { grpc_->Shutdown(std::chrono::system_clock::now()); }

void ServedCluster::AddWorkerThread(const std::string& name, int devices) {
  workers_.push_back(std::make_unique<Worker>());
  worker::RunWorkerOptions options;
  options.name = name;
  options.plugin = GANGWAY_CPU_PLUGIN;
  options.devices = devices;
  options.controller = worker_address();
  options.stop = &workers_.back()->stop;
  workers_.back()->thread = std::thread([options] { (void)worker::RunWorker(options); });
}

bool ServedCluster::WaitForDevices(int devices) { return server_->WaitForDevices(devices, absl::Now() + kLong).ok(); }

absl::StatusOr<client::Client> ServedCluster::Connect(const std::string& name) {
  client::ConnectOptions options;
  options.address = address_;
  options.name = name;
  return client::Client::Connect(options);
}

controller::Statistics ServedCluster::Stats() {
  controller::Statistics stats;
  absl::Notification done;
  server_->controller().loop().Post([&] {
    stats = server_->controller().Stats();
    done.Notify();
  });
  done.WaitForNotification();
  return stats;
}

bool ServedCluster::IsEmptySoon() {
  for (int i = 0; i < 1000; ++i) {
    const controller::Statistics stats = Stats();
    if (stats.sessions + stats.arrays + stats.programs + stats.pending_launches + stats.store_bytes == 0) return true;
    absl::SleepFor(absl::Milliseconds(20));
  }
  return false;
}

}  // namespace gangway

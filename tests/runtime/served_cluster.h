// A controller that serves the program API, for tests with real workers and clients: programs are HLO text.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/client/client.h"
#include "gangway/controller/controller_server.h"
#include "gangway/program_api/service.h"

namespace grpc {
class Server;
}  // namespace grpc

namespace gangway {

class ServedCluster {
 public:
  explicit ServedCluster(controller::ControllerOptions options = {}, const program_api::ServiceOptions& service = {});
  ~ServedCluster();

  // A worker of so many CPU devices on a thread of this process.
  void AddWorkerThread(const std::string& name, int devices);
  bool WaitForDevices(int devices);

  const std::string& address() const { return address_; }  // for clients
  std::string worker_address() const { return server_->worker_address(); }
  absl::StatusOr<client::Client> Connect(const std::string& name);
  controller::Statistics Stats();
  // Waits until nothing is left of any client; false when that takes too long.
  bool IsEmptySoon();
  // Clients lose their connection.
  void StopServing();

 private:
  struct Worker {
    std::atomic<bool> stop = false;
    std::thread thread;
  };
  std::unique_ptr<controller::ControllerServer> server_;
  std::shared_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> grpc_;
  std::string address_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace gangway

// A worker process: one plugin, its devices, one controller.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gangway/device/device.h"
#include "gangway/net/tls.h"

namespace gangway::net {
class Channel;
}

namespace gangway::worker {

// How workers of different hosts exchange data; those of one host share memory.
enum class Peers {
  kSealed,  // TLS, where there are certificates; otherwise not
  kOpen,    // UCX, in the clear: RDMA or TCP of a network that nobody else is on
};

struct RunWorkerOptions {
  std::string name = "worker";
  int island = 0;
  int rank = -1;               // joins after those of smaller ranks; -1: when it comes
  std::string plugin;          // path of a PJRT C-API plugin
  int devices = 1;             // how many the plugin is to have, where it lets us choose (CPU)
  int64_t device_memory = 0;   // bytes of each device that clients may use; 0: as many as the device has
  bool deterministic = false;  // see device::PjrtOptions
  std::string files, cache;    // likewise
  std::string controller;      // host:port or unix:/path
  net::Tls tls;                // towards it and peers; none: all are on loopback
  Peers peers = Peers::kSealed;
  std::string listen_peers;  // host:port for sealed peers; "": the host that the controller sees, any port
  absl::Duration connect_timeout = absl::Seconds(30);
  // After a connection that stood has ended, the worker tries for so long to come back; zero: never.
  absl::Duration reconnect = absl::ZeroDuration();
  // When set and true, the worker takes its leave. Looked at several times a second.
  const std::atomic<bool>* stop = nullptr;
  // How long it then gives the controller to finish what runs and to move what the devices hold; zero: it just goes.
  absl::Duration leave_patience = absl::ZeroDuration();
  // Called with one line for every event an operator wants to know.
  std::function<void(const std::string&)> log;
};

// Runs until the controller is gone for good or `stop`; blocks the caller. OK after `stop`; otherwise the reason, one
// line.
absl::Status RunWorker(const RunWorkerOptions& options);

// The same with a client of the caller's and a channel that is connected already, for a worker inside another process.
absl::Status RunWorkerOn(device::Client& client, std::unique_ptr<net::Channel> channel,
                         const RunWorkerOptions& options);

}  // namespace gangway::worker

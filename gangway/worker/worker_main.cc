#include "gangway/worker/worker_main.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gangway/base/status.h"
#include "gangway/base/strand.h"
#include "gangway/collective/gang_keeper.h"
#include "gangway/device/pjrt/client.h"
#include "gangway/net/grpc/grpc_channel.h"
#include "gangway/net/grpc/grpc_fabric.h"
#include "gangway/net/host_card.h"
#include "gangway/net/routed_fabric.h"
#include "gangway/net/tcp/socket.h"
#include "gangway/net/ucx/ucx_fabric.h"
#include "gangway/worker/worker.h"

namespace gangway::worker {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(20);

// Waits until the task has run on the loop.
void RunOn(Executor& loop, const std::function<void()>& task) {
  absl::Notification done;
  loop.Post([&] {
    task();
    done.Notify();
  });
  done.WaitForNotification();
}

bool ShallStop(const RunWorkerOptions& options) { return options.stop != nullptr && *options.stop; }

// Looks at `stop` while it waits.
absl::StatusOr<std::unique_ptr<net::Channel>> Connect(const RunWorkerOptions& options, absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  while (true) {
    auto channel =
        net::ConnectGrpc(options.controller, std::min(deadline, absl::Now() + absl::Seconds(1)), options.tls);
    if (channel.ok() || absl::Now() >= deadline || ShallStop(options)) return channel;
  }
}

// Peers of this host share memory; others are called where there are certificates for it.
absl::StatusOr<std::shared_ptr<net::Fabric>> MakeFabric(const RunWorkerOptions& options) {
  if (options.peers == Peers::kOpen) {
    GW_ASSIGN_OR_RETURN(std::shared_ptr<net::Fabric> open, net::MakeUcxFabric(net::UcxReach::kNetwork));
    return net::MakeRoutedFabric("open", std::move(open), nullptr);
  }
  GW_ASSIGN_OR_RETURN(std::shared_ptr<net::Fabric> near, net::MakeUcxFabric(net::UcxReach::kHost));
  std::shared_ptr<net::Fabric> far;
  if (!options.tls.empty()) {
    std::string listen = options.listen_peers;
    if (listen.empty()) {
      GW_ASSIGN_OR_RETURN(listen, net::OwnHostTowards(options.controller));
      listen = absl::StrCat(absl::StrContains(listen, ':') ? absl::StrCat("[", listen, "]") : listen, ":0");
    }
    GW_ASSIGN_OR_RETURN(far, net::MakeGrpcFabric(listen, options.tls));
  }
  return net::MakeRoutedFabric(net::HostCard(), std::move(near), std::move(far));
}

}  // namespace

absl::Status RunWorkerOn(device::Client& client, std::unique_ptr<net::Channel> channel,
                         const RunWorkerOptions& options) {
  auto loop = std::make_shared<Strand>();
  static const SystemClock clock;  // launches still read it when this connection is over
  // Goes after the gangs, whose collectives it carries.
  GW_ASSIGN_OR_RETURN_WITH(std::shared_ptr<net::Fabric> fabric, MakeFabric(options),
                           absl::StrCat("worker ", options.name));
  collective::GangKeeper gangs;
  auto compiler = MakeThreadExecutor("gw-load");
  WorkerOptions worker_options;
  worker_options.name = options.name;
  worker_options.island = options.island;
  worker_options.rank = options.rank;
  worker_options.client = &client;
  worker_options.device_memory = options.device_memory;
  worker_options.gangs = &gangs;
  worker_options.loop = loop;
  worker_options.fabric = fabric;
  worker_options.compile = compiler.get();
  worker_options.clock = &clock;
  auto worker = std::make_unique<Worker>(worker_options, std::move(channel));
  Future<Unit> closed = worker->closed();
  loop->Post([&] { worker->Start(); });
  absl::Time leave_by = absl::InfiniteFuture();
  while (!closed.IsReady() && absl::Now() < leave_by) {
    absl::SleepFor(kTick);
    loop->Post([&] { worker->Tick(); });
    if (!ShallStop(options) || leave_by < absl::InfiniteFuture()) continue;
    leave_by = absl::Now() + options.leave_patience;
    if (options.leave_patience > absl::ZeroDuration()) loop->Post([&] { worker->Leave(); });
  }
  RunOn(*loop, [&] { worker->Stop(); });
  compiler.reset();  // what it still compiles posts to a worker that has stopped
  worker.reset();
  RunOn(*loop, [] {});
  return ShallStop(options) ? absl::OkStatus() : closed.Await(absl::Now(), "the worker's end").status();
}

absl::Status RunWorker(const RunWorkerOptions& options) {
  device::PjrtOptions pjrt;
  pjrt.plugin_path = options.plugin;
  pjrt.deterministic = options.deterministic;
  pjrt.files = options.files;
  pjrt.cache = options.cache;
  pjrt.create_options.emplace_back("cpu_device_count", int64_t{options.devices});
  GW_ASSIGN_OR_RETURN_WITH(std::unique_ptr<device::Client> client, device::MakePjrtClient(pjrt),
                           absl::StrCat("worker ", options.name));
  absl::Duration patience = options.connect_timeout;
  while (true) {
    auto channel = Connect(options, patience);
    if (ShallStop(options)) return absl::OkStatus();
    if (!channel.ok()) return Annotate(channel.status(), absl::StrCat("worker ", options.name));
    if (options.log) {
      options.log(absl::StrCat("worker ", options.name, ": ", client->devices().size(), " ", client->platform(),
                               " devices for the controller at ", options.controller));
    }
    absl::Status ended = RunWorkerOn(*client, *std::move(channel), options);
    // One that was refused would be again.
    const bool gone = absl::IsUnavailable(ended) || absl::IsDeadlineExceeded(ended);
    if (!gone || options.reconnect <= absl::ZeroDuration()) return ended;
    if (options.log) options.log(std::string(ended.message()));
    patience = options.reconnect;
  }
}

}  // namespace gangway::worker

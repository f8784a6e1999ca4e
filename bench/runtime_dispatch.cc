// Dispatch without a client: how many programs (scalar all-reduce + 1, each feeding the next) controller and worker run
// a second. One JSON line per figure.
//
//   runtime_dispatch PLUGIN inproc|grpc [devices] [launches]
//
// inproc: controller and worker in this process; grpc: the worker in a process of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gangway/controller/controller_server.h"
#include "gangway/device/pjrt/client.h"
#include "gangway/net/inproc/inproc.h"
#include "gangway/worker/worker_main.h"
#include "tests/runtime/hand_made.h"

namespace gangway {
namespace {

using controller::ArrayId;
using controller::Controller;
using controller::DeviceId;

template <typename F>
auto On(controller::ControllerServer& server, F f) {
  using R = decltype(f(std::declval<Controller&>()));
  std::optional<R> result;
  absl::Notification done;
  server.controller().loop().Post([&] {
    result.emplace(f(server.controller()));
    done.Notify();
  });
  done.WaitForNotification();
  return *std::move(result);
}

void Measure(controller::ControllerServer& server, const std::string& mode, int devices, int launches) {
  std::vector<DeviceId> all;
  std::vector<int> indices;
  for (int i = 0; i < devices; ++i) {
    all.push_back(DeviceId(i));
    indices.push_back(i);
  }
  auto session = On(server, [](Controller& c) { return c.OpenSession({"bench", "", 1}); });
  controller::CompileRequest request;
  request.artifact = AllReduceAddOne(devices);
  request.devices = all;
  request.options.num_partitions = devices;
  auto [program, ready] = On(server, [&](Controller& c) { return c.Compile(session, request); });
  auto compiled = ready.Await(absl::Now() + absl::Seconds(60), "compile");
  if (!compiled.ok()) {
    std::fprintf(stderr, "%s\n", compiled.status().ToString().c_str());
    std::exit(1);
  }
  controller::ArraySpec spec;
  spec.dtype = DType::kF32;
  spec.devices = all;
  spec.shard_dims = {DimVector{}};
  ArrayId x = *On(server, [&](Controller& c) {
    return c.MakeArray(session, spec, {{std::make_shared<const std::string>(4, '\0'), indices}});
  });
  auto run = [&](int count) {
    const absl::Time start = absl::Now();
    for (int i = 0; i < count; ++i) {
      x = On(server, [&](Controller& c) {
        ArrayId y = c.Execute(session, program, {x}, {.non_donatable = {}, .notify = false})->outputs[0];
        c.Release(x);
        return y;
      });
    }
    const absl::Time submitted = absl::Now();
    absl::Status status = On(server, [&](Controller& c) { return c.Ready(x); })
                              .Await(absl::Now() + absl::Seconds(120), "the last launch")
                              .status();
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return std::make_pair(submitted - start, absl::Now() - start);
  };
  run(launches / 10 + 1);
  for (int repeat = 0; repeat < 3; ++repeat) {
    auto [submit, total] = run(launches);
    std::printf(
        "{\"bench\": \"runtime_dispatch\", \"mode\": \"%s\", \"devices\": %d, \"launches_per_s\": %.0f, "
        "\"submit_us\": %.1f}\n",
        mode.c_str(), devices, launches / absl::ToDoubleSeconds(total), absl::ToDoubleMicroseconds(submit) / launches);
  }
  // One at a time: the latency of a launch that somebody waits for.
  const absl::Time start = absl::Now();
  for (int i = 0; i < launches / 10; ++i) run(1);
  std::printf("{\"bench\": \"runtime_round_trip\", \"mode\": \"%s\", \"devices\": %d, \"us\": %.1f}\n", mode.c_str(),
              devices, absl::ToDoubleMicroseconds(absl::Now() - start) / (launches / 10));
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s PLUGIN inproc|grpc [devices] [launches]\n", argv[0]);
    return 2;
  }
  worker::RunWorkerOptions worker;
  worker.name = "w0";
  worker.plugin = argv[1];
  const std::string mode = argv[2];
  worker.devices = argc > 3 ? std::atoi(argv[3]) : 8;
  const int launches = argc > 4 ? std::atoi(argv[4]) : 5000;
  if (mode == "worker") {
    worker.controller = argv[5];
    absl::Status status = worker::RunWorker(worker);
    return 0;
  }
  controller::ControllerServerOptions options;
  options.controller.compile = CompileHloText;
  if (mode == "inproc") options.worker_address = "";
  auto server = controller::StartControllerServer(options);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
    return 1;
  }
  std::atomic<bool> stop = false;
  std::thread thread;
  pid_t child = -1;
  if (mode == "inproc") {
    auto [ours, theirs] = net::MakeInprocPair("w0");
    (*server)->controller().AddWorker(std::move(ours));
    worker.stop = &stop;
    thread = std::thread([&worker, channel = std::move(theirs)]() mutable {
      device::PjrtOptions pjrt;
      pjrt.plugin_path = worker.plugin;
      pjrt.create_options.emplace_back("cpu_device_count", int64_t{worker.devices});
      auto client = device::MakePjrtClient(pjrt);
      if (client.ok()) (void)worker::RunWorkerOn(**client, std::move(channel), worker);
    });
  } else {
    const std::string address = (*server)->worker_address();
    child = fork();
    if (child == 0) {
      execl(argv[0], argv[0], argv[1], "worker", std::to_string(worker.devices).c_str(), "0", address.c_str(), nullptr);
      _exit(127);
    }
  }
  absl::Status joined = (*server)->WaitForDevices(worker.devices, absl::Now() + absl::Seconds(60));
  if (joined.ok()) Measure(**server, mode, worker.devices, launches);
  stop = true;
  if (thread.joinable()) thread.join();
  server->reset();
  if (child > 0) waitpid(child, nullptr, 0);
  return joined.ok() ? 0 : 1;
}

}  // namespace
}  // namespace gangway

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // as gangway itself does
  return gangway::Main(argc, argv);
}

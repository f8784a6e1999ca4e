// The runtime on clusters larger than the machine: controller, scheduler and workers of production over modelled
// devices and links, in simulated time. One JSON line per figure; bench/figures.py draws them.
//
//   simulated scale|smallest|pipeline|clients|shares|islands
//
// scale:    processor time of the controller's loop, and of the scheduler alone, for a program over 8 to 512 hosts
// smallest: the smallest computation at which they are hidden (Figure 6)
// pipeline: stages on different hosts, parallel against sequential dispatch (Figure 7)
// clients:  device utilization with 1 to 16 clients (Figure 8)
// shares:   device time of clients of different weights, and the schedulers' order (Figure 9)
// islands:  a training step pipelined over four islands against the same in one (Table 2, Figure 10)
//
// The controller's own turns take as long in simulated time as they took the processor; nothing else here depends on
// the machine.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "tests/runtime/sim_client.h"

namespace gangway {
namespace {

using controller::ArrayId;
using controller::RuntimeController;
using program_api::FunctionRef;
using program_api::GraphRef;

constexpr int kDevicesPerHost = 4;
constexpr net::SimLink kControlLink = {.min_delay = absl::Microseconds(50), .max_delay = absl::Microseconds(60)};

// Of this thread, so that the machine's load does not count.
absl::Duration CpuTime() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return absl::DurationFromTimespec(now);
}

// Runs the controller's turns one after the other and lets simulated time pass for as long as each really took the
// processor.
class ChargedExecutor final : public Executor {
 public:
  explicit ChargedExecutor(SimTimeline& timeline) : timeline_(timeline) {}
  void Post(Task task) override {
    waiting_.push_back(std::move(task));
    if (!std::exchange(scheduled_, true)) Schedule();
  }
  bool InLoop() const override { return in_turn_; }
  absl::Duration busy() const { return busy_; }

 private:
  void Schedule() {
    timeline_.After(free_ - timeline_.clock().Now(), [this] { RunFirst(); });
  }
  void RunFirst() {
    const Task task = std::move(waiting_.front());
    waiting_.pop_front();
    const absl::Duration begin = CpuTime();
    in_turn_ = true;
    task();
    in_turn_ = false;
    const absl::Duration took = CpuTime() - begin;
    busy_ += took;
    free_ = timeline_.clock().Now() + took;
    scheduled_ = !waiting_.empty();
    if (scheduled_) Schedule();
  }

  SimTimeline& timeline_;
  std::deque<Task> waiting_;
  bool scheduled_ = false;  // the first of them
  absl::Time free_ = absl::InfinitePast();
  absl::Duration busy_;
  bool in_turn_ = false;
};

// A cluster of `hosts` hosts in as many islands as asked, all the same.
class Hosts {
 public:
  Hosts(int hosts, int islands = 1, SimClusterOptions options = {}) : cluster_(WithCharge(std::move(options))) {
    for (int h = 0; h < hosts; ++h) {
      cluster_.AddWorker(
          absl::StrCat("host", h),
          {.devices = kDevicesPerHost, .link = kControlLink, .island = h * islands / hosts, .device_memory = 0});
      cluster_.RunFor(absl::Milliseconds(1));  // one after the other: device numbers are known
    }
  }
  SimCluster& cluster() { return cluster_; }
  absl::Duration busy() const { return executor_->busy(); }
  absl::Duration now() { return cluster_.timeline().elapsed(); }

 private:
  SimClusterOptions WithCharge(SimClusterOptions options) {
    options.controller_executor = [this](SimTimeline& timeline) {
      auto executor = std::make_unique<ChargedExecutor>(timeline);
      executor_ = executor.get();
      return executor;
    };
    return options;
  }
  ChargedExecutor* executor_ = nullptr;  // the cluster's
  SimCluster cluster_;
};

// Submits programs one after the other, each on the result of the last, `in_flight` ahead of what is done.
class Stream {
 public:
  // `pause`: what a submission takes the client.
  Stream(SimCluster& cluster, SimClient& client, GraphRef graph, ArrayId input, int in_flight, absl::Duration pause,
         bool sequential = false)
      : cluster_(cluster),
        client_(client),
        graph_(std::move(graph)),
        last_(input),
        in_flight_(in_flight),
        pause_(pause),
        sequential_(sequential) {
    Submit();
  }
  void Stop() { stopped_ = true; }
  int64_t done() const { return done_; }

 private:
  void Submit() {
    if (stopped_) return;
    if (submitted_ - done_ >= in_flight_) {
      waits_ = true;
      return;
    }
    ++submitted_;
    client_.Run(graph_, {last_}, sequential_, [this](const absl::StatusOr<std::vector<ArrayId>>& results) {
      RuntimeController& c = cluster_.controller();
      c.Release(last_);
      last_ = (*results)[0];
      c.Ready(last_).OnReady([this](const auto&) {
        ++done_;
        if (std::exchange(waits_, false)) cluster_.timeline().After(pause_, [this] { Submit(); });
      });
      cluster_.timeline().After(pause_, [this] { Submit(); });
    });
  }

  SimCluster& cluster_;
  SimClient& client_;
  const GraphRef graph_;
  ArrayId last_;
  const int in_flight_;
  const absl::Duration pause_;
  const bool sequential_;
  int64_t submitted_ = 0, done_ = 0;
  bool waits_ = false, stopped_ = false;
};

// Programs a second of a warm stream.
double Rate(SimCluster& cluster, const std::vector<std::unique_ptr<Stream>>& streams, absl::Duration span) {
  cluster.RunFor(span / 4);
  int64_t before = 0, after = 0;
  for (const auto& stream : streams) before += stream->done();
  cluster.RunFor(span);
  for (const auto& stream : streams) after += stream->done();
  for (const auto& stream : streams) stream->Stop();
  cluster.RunFor(span / 4 + absl::Seconds(1));
  return static_cast<double>(after - before) / absl::ToDoubleSeconds(span);
}

void EmitScale(int hosts) {
  Hosts host(hosts);
  const int devices = hosts * kDevicesPerHost;
  SimClient client(host.cluster(), {"bench", "", 1});
  const FunctionRef function = client.Compile("ms=5", 0, devices);
  std::vector<std::unique_ptr<Stream>> streams;
  streams.push_back(std::make_unique<Stream>(host.cluster(), client, SimChain({function}, 1), client.Put(function, 0),
                                             16, absl::ZeroDuration()));
  host.cluster().RunFor(absl::Milliseconds(500));
  const auto counts = host.cluster().controller().dispatch_counts();
  const absl::Duration busy = host.busy();
  host.cluster().RunFor(absl::Seconds(1));
  const auto later = host.cluster().controller().dispatch_counts();
  const double programs = static_cast<double>(later.launches - counts.launches);
  streams[0]->Stop();
  host.cluster().RunFor(absl::Seconds(2));

  sched::GangScheduler scheduler;
  const sched::TenantId tenant = scheduler.AddTenant("bench", 1);
  std::vector<int> numbers(devices);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto all = std::make_shared<const std::vector<int>>(std::move(numbers));
  constexpr int kGangs = 1000;
  const absl::Duration begin = CpuTime();
  for (int g = 0; g < kGangs; ++g) {
    scheduler.Submit({sched::GangId(g), tenant, all, absl::Milliseconds(1)}, absl::UnixEpoch());
    if (g >= 16) scheduler.Finished(sched::GangId(g - 16), absl::UnixEpoch());
  }
  const absl::Duration took = CpuTime() - begin;
  std::printf(
      "{\"bench\": \"simulated_scale\", \"hosts\": %d, \"devices\": %d, \"controller_us\": %.1f, \"scheduler_us\": "
      "%.2f, \"messages_per_program\": %.3f}\n",
      hosts, devices, absl::ToDoubleMicroseconds(host.busy() - busy) / programs,
      absl::ToDoubleMicroseconds(took) / kGangs,
      static_cast<double>(later.launch_messages - counts.launch_messages) / programs);
}

// The device time at which 95 % of it is used.
void EmitSmallest(int hosts) {
  Hosts host(hosts);
  SimClient client(host.cluster(), {"bench", "", 1});
  double smallest = 0;
  for (double ms : {0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0}) {
    const FunctionRef function = client.Compile(absl::StrCat("ms=", ms), 0, hosts * kDevicesPerHost);
    std::vector<std::unique_ptr<Stream>> streams;
    streams.push_back(std::make_unique<Stream>(host.cluster(), client, SimChain({function}, 1), client.Put(function, 0),
                                               64, absl::ZeroDuration()));
    const double rate = Rate(host.cluster(), streams, absl::Milliseconds(200 + 100 * ms));
    const double used = rate * ms / 1000;
    std::printf(
        "{\"bench\": \"simulated_utilization\", \"hosts\": %d, \"ms\": %g, \"programs_per_s\": %.1f, \"used\": "
        "%.4f}\n",
        hosts, ms, rate, used);
    if (used < 0.95) continue;
    smallest = ms;
    break;
  }
  std::printf("{\"bench\": \"simulated_smallest\", \"hosts\": %d, \"ms\": %g}\n", hosts, smallest);
}

// One program of so many stages after the other: computations a second.
void EmitPipeline(int stages, bool sequential) {
  Hosts host(stages);
  SimClient client(host.cluster(), {"bench", "", 1});
  std::vector<FunctionRef> functions;
  for (int s = 0; s < stages; ++s) functions.push_back(client.Compile("ms=0.05", s * kDevicesPerHost, kDevicesPerHost));
  // Back to the first stage, where the next program begins.
  SimProgram program(functions, 1);
  int value = 0;
  for (int s = 0; s < stages; ++s) value = program.Call(s, {value});
  const GraphRef graph = program.Make({program.Call(0, {value})});
  std::vector<std::unique_ptr<Stream>> streams;
  streams.push_back(std::make_unique<Stream>(host.cluster(), client, graph, client.Put(functions[0], 0), 1,
                                             absl::ZeroDuration(), sequential));
  const double rate = Rate(host.cluster(), streams, absl::Seconds(2));
  std::printf(
      "{\"bench\": \"simulated_pipeline\", \"stages\": %d, \"dispatch\": \"%s\", \"computations_per_s\": %.1f}\n",
      stages, sequential ? "sequential" : "parallel", rate * (stages + 1));
}

void EmitClients(int clients, double ms) {
  Hosts host(2, 1, {.scheduler = {.horizon = absl::Milliseconds(20)}});
  std::vector<std::unique_ptr<SimClient>> sessions;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < clients; ++i) {
    sessions.push_back(
        std::make_unique<SimClient>(host.cluster(), controller::SessionInfo{absl::StrCat("client", i), "", 1}));
    const FunctionRef function = sessions[i]->Compile(absl::StrCat("ms=", ms), 0, 2 * kDevicesPerHost);
    // A call from Python through the proxy takes about a quarter of a millisecond.
    streams.push_back(std::make_unique<Stream>(host.cluster(), *sessions[i], SimChain({function}, 1),
                                               sessions[i]->Put(function, 0), 16, absl::Microseconds(250)));
  }
  const double rate = Rate(host.cluster(), streams, absl::Seconds(2));
  std::printf(
      "{\"bench\": \"simulated_clients\", \"clients\": %d, \"ms\": %g, \"programs_per_s\": %.1f, \"used\": "
      "%.4f}\n",
      clients, ms, rate, rate * ms / 1000);
}

void EmitShares(const std::vector<int>& weights) {
  Hosts host(2, 1, {.scheduler = {.horizon = absl::Milliseconds(20), .log_capacity = 1 << 16}});
  std::vector<std::unique_ptr<SimClient>> sessions;
  std::vector<std::unique_ptr<Stream>> streams;
  for (size_t i = 0; i < weights.size(); ++i) {
    sessions.push_back(std::make_unique<SimClient>(
        host.cluster(), controller::SessionInfo{absl::StrCat("client", i), "", static_cast<double>(weights[i])}));
    const FunctionRef function = sessions[i]->Compile("ms=1", 0, 2 * kDevicesPerHost);
    streams.push_back(std::make_unique<Stream>(host.cluster(), *sessions[i], SimChain({function}, 1),
                                               sessions[i]->Put(function, 0), 64, absl::Microseconds(50)));
  }
  host.cluster().RunFor(absl::Seconds(1));
  std::vector<int64_t> done;
  for (const auto& stream : streams) done.push_back(-stream->done());
  const absl::Time begin = host.cluster().timeline().clock().Now();
  host.cluster().RunFor(absl::Seconds(10));
  int64_t total = 0, weight = 0;
  for (size_t i = 0; i < streams.size(); ++i) {
    total += done[i] += streams[i]->done();
    weight += weights[i];
  }
  double worst = 0;
  for (size_t i = 0; i < streams.size(); ++i) {
    const double wanted = static_cast<double>(total) * weights[i] / static_cast<double>(weight);
    worst = std::max(worst, std::abs(static_cast<double>(done[i]) / wanted - 1));
  }
  // The first 60 admissions of the ten seconds: milliseconds and tenant.
  std::vector<std::string> order;
  for (const sched::LogEntry& entry : host.cluster().controller().scheduler(0)->log()) {
    if (entry.when < begin || order.size() >= 60) continue;
    order.push_back(absl::StrCat("[", absl::ToDoubleMilliseconds(entry.when - begin), ", ", entry.tenant.value(), "]"));
  }
  std::printf(
      "{\"bench\": \"simulated_shares\", \"weights\": [%s], \"programs\": [%s], \"used\": %.4f, "
      "\"worst_error\": %.4f, \"order\": [%s]}\n",
      absl::StrJoin(weights, ", ").c_str(), absl::StrJoin(done, ", ").c_str(), static_cast<double>(total) / 10000,
      worst, absl::StrJoin(order, ", ").c_str());
  for (auto& stream : streams) stream->Stop();
  host.cluster().RunFor(absl::Seconds(2));
}

// One step of GPipe: so many microbatches forward through four stages, then backward; microbatches a second.
double TrainingRate(int islands) {
  constexpr int kStages = 4, kMicrobatches = 16, kElements = 1 << 18;  // 1 MiB for each host and edge
  SimClusterOptions options;
  options.inside_island = {absl::Microseconds(2), 5e10};
  options.between_islands = {absl::Microseconds(50), 12.5e9};
  Hosts host(kStages, islands, options);
  SimClient client(host.cluster(), {"train", "", 1});
  std::vector<FunctionRef> functions;
  for (double ms : {5.0, 10.0}) {  // forward, then backward
    for (int s = 0; s < kStages; ++s) {
      functions.push_back(
          client.Compile(absl::StrCat("elements=", kElements, " ms=", ms), s * kDevicesPerHost, kDevicesPerHost));
    }
  }
  SimProgram program(functions, 1);
  std::vector<int> values(kMicrobatches, 0);
  for (int s = 0; s < kStages; ++s) {
    for (int& value : values) value = program.Call(s, {value});
  }
  for (int s = kStages - 1; s >= 0; --s) {
    for (int& value : values) value = program.Call(kStages + s, {value});
  }
  const GraphRef graph = program.Make({values.back()});
  std::vector<std::unique_ptr<Stream>> streams;
  streams.push_back(
      std::make_unique<Stream>(host.cluster(), client, graph, client.Put(functions[0], 0), 2, absl::ZeroDuration()));
  return Rate(host.cluster(), streams, absl::Seconds(100)) * kMicrobatches;
}

void EmitIslands() {
  const double one = TrainingRate(1), four = TrainingRate(4);
  std::printf(
      "{\"bench\": \"simulated_islands\", \"unit\": \"microbatches/s\", \"one_island\": %.2f, "
      "\"four_islands\": %.2f, \"ratio\": %.4f}\n",
      one, four, four / one);
}

int Main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "scale") {
    for (int hosts : {8, 64, 512}) EmitScale(hosts);
  } else if (what == "smallest") {
    for (int hosts : {8, 64, 512}) EmitSmallest(hosts);
  } else if (what == "pipeline") {
    for (int stages : {2, 4, 8, 12, 16}) {
      for (bool sequential : {false, true}) EmitPipeline(stages, sequential);
    }
  } else if (what == "clients") {
    for (double ms : {0.1, 0.3, 1.0, 3.0, 10.0}) {
      for (int clients : {1, 2, 4, 8, 16}) EmitClients(clients, ms);
    }
  } else if (what == "shares") {
    EmitShares({1, 1, 1, 1});
    EmitShares({1, 2, 4, 8});
  } else if (what == "islands") {
    EmitIslands();
  } else {
    std::fprintf(stderr, "usage: %s scale|smallest|pipeline|clients|shares|islands\n", argv[0]);
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace gangway

int main(int argc, char** argv) {
  // All hosts share this process's heap, and glibc has whoever next wants a large piece tidy up what all have freed:
  // the controller would be charged for its workers' memory. Freed pieces are kept for their size instead.
  if (getenv("GLIBC_TUNABLES") == nullptr) {
    setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=60000:glibc.malloc.tcache_max=65536", 1);
    execv("/proc/self/exe", argv);
  }
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // as gangway itself does
  return gangway::Main(argc, argv);
}

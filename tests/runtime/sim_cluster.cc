#include "tests/runtime/sim_cluster.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gangway/device/modelled/modelled_device.h"

namespace gangway {
namespace {

// A datacenter network: 10 to 20 us, 10 GB/s.
constexpr absl::Duration kFabricDelay = absl::Microseconds(10);
constexpr absl::Duration kFabricPerKiB = absl::Nanoseconds(100);

}  // namespace

absl::StatusOr<compile::CompiledProgram> CompileModelled(const std::string& artifact,
                                                         const compile::CompileOptions& options) {
  const std::vector<std::string> parts = absl::StrSplit(artifact, '|');
  compile::CompiledProgram program;
  program.name = "program";
  program.num_partitions = options.num_partitions;
  program.executable = parts[0];
  int params = 1, outputs = 1, donated = -1;
  for (const std::string& part : parts) {
    std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (part == "refuse") return absl::UnimplementedError("instruction %refuse: not for me");
    if (pair.first == "name") program.name = pair.second;
    if (pair.first == "params" && !absl::SimpleAtoi(pair.second, &params)) return absl::InvalidArgumentError(part);
    if (pair.first == "donate" && !absl::SimpleAtoi(pair.second, &donated)) return absl::InvalidArgumentError(part);
  }
  for (absl::string_view word : absl::StrSplit(parts[0], ' ')) {
    if (absl::ConsumePrefix(&word, "outputs=") && !absl::SimpleAtoi(word, &outputs)) {
      return absl::InvalidArgumentError(parts[0]);
    }
  }
  auto mesh = std::make_shared<const Mesh>(*Mesh::Make({{"x", options.num_partitions}}));
  const compile::ValueInfo scalar{Shape::Scalar(DType::kS32), Sharding::Replicated(mesh, 0), "", ""};
  program.parameters.assign(params, scalar);
  program.outputs.assign(outputs, scalar);
  program.donation.assign(params, compile::Donation::kNone);
  if (donated >= 0 && donated < params) program.donation[donated] = compile::Donation::kMayAlias;
  if (parts[0].find("all_reduce") != std::string::npos) program.stats.collectives.push_back({"all-reduce", {}});
  return program;
}

SimCluster::SimCluster(uint64_t seed, sched::SchedulerOptions scheduler)
    : timeline_(seed),
      network_(timeline_),
      fabrics_([this](size_t bytes, std::function<void()> deliver) {
        const double share = std::uniform_real_distribution<>(0, 1)(timeline_.random());
        timeline_.After(kFabricDelay * (1 + share) + static_cast<double>(bytes) / 1024 * kFabricPerKiB,
                        std::move(deliver));
      }),
      loop_(&timeline_.executor()),
      gangs_({.helper_threads = 0, .deadline = absl::Seconds(60), .clock = &timeline_.clock()}) {
  controller::ControllerOptions options;
  options.compile = CompileModelled;
  options.loop = &loop_;
  options.compile_executors = {&timeline_.executor()};
  options.clock = &timeline_.clock();
  options.scheduler = scheduler;
  controller_ = std::make_unique<controller::RuntimeController>(options);
  Tick();
}

SimCluster::~SimCluster() {
  stopping_ = true;
  loop_.Post([this] { controller_->Stop(); });
  for (auto& [name, node] : nodes_) Stop(*node);
  RunFor(absl::Seconds(1));
  controller_.reset();
  for (auto& [name, node] : nodes_) node->worker.reset();
  RunFor(absl::Hours(1));
}

void SimCluster::Tick() {
  if (stopping_) return;
  loop_.Post([this] { controller_->Tick(); });
  for (auto& [name, node] : nodes_) {
    node->loop->Post([&worker = *node->worker] { worker.Tick(); });
  }
  timeline_.After(absl::Milliseconds(20), [this] {
    controller_->Reap();
    Tick();
  });
}

void SimCluster::AddWorker(const std::string& name, int devices, net::SimLink link) {
  if (nodes_.contains(name)) Kill(name);
  auto node = std::make_unique<Node>();
  node->broken.assign(devices, false);
  node->client = device::MakeModelledClient(timeline_, {.devices = devices, .name = name, .broken = &node->broken});
  node->loop = std::make_shared<Strand>(&timeline_.executor());
  auto [ours, theirs] = network_.Connect(name, link);
  worker::WorkerOptions options;
  options.name = name;
  options.client = node->client.get();
  options.fabric = node->fabric = fabrics_.Make();
  options.gangs = &gangs_;
  options.loop = node->loop;
  options.compile = &timeline_.executor();
  options.clock = &timeline_.clock();
  node->worker = std::make_unique<worker::Worker>(options, std::move(theirs));
  node->loop->Post([&worker = *node->worker] { worker.Start(); });
  controller_->AddWorker(std::move(ours));
  nodes_[name] = std::move(node);
}

void SimCluster::Stop(Node& node) {
  node.loop->Post([&worker = *node.worker] { worker.Stop(); });
}

void SimCluster::Kill(const std::string& name) {
  auto it = nodes_.find(name);
  if (it == nodes_.end()) return;
  Stop(*it->second);
  network_.Break(name);
  fabrics_.Cut(it->second->fabric->address());
  dead_.push_back(std::move(it->second));
  nodes_.erase(it);
}

void SimCluster::BreakDevice(const std::string& worker, int device, bool broken) {
  auto it = nodes_.find(worker);
  if (it != nodes_.end() && device < static_cast<int>(it->second->broken.size())) it->second->broken[device] = broken;
}

int64_t SimCluster::StoreBuffers() const {
  int64_t buffers = 0;
  for (const auto& [name, node] : nodes_) buffers += node->worker->store().buffers();
  return buffers;
}

}  // namespace gangway

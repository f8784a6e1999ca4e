#include "tests/runtime/sim_cluster.h"

#include <cstring>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gangway/device/modelled/modelled_device.h"

namespace gangway {
absl::StatusOr<compile::CompiledProgram> CompileModelled(const std::string& artifact,
                                                         const compile::CompileOptions& options) {
  const std::vector<std::string> parts = absl::StrSplit(artifact, '|');
  compile::CompiledProgram program;
  program.name = "program";
  program.num_partitions = options.num_partitions;
  program.executable = parts[0];
  int params = 1, outputs = 1, donated = -1, elements = -1;
  bool split = false;
  for (const std::string& part : parts) {
    std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (part == "refuse") return absl::UnimplementedError("instruction %refuse: not for me");
    if (part == "split") split = true;
    if (pair.first == "name") program.name = pair.second;
    if (pair.first == "params" && !absl::SimpleAtoi(pair.second, &params)) return absl::InvalidArgumentError(part);
    if (pair.first == "donate" && !absl::SimpleAtoi(pair.second, &donated)) return absl::InvalidArgumentError(part);
  }
  for (absl::string_view word : absl::StrSplit(parts[0], ' ')) {
    const bool read = absl::ConsumePrefix(&word, "outputs=")    ? absl::SimpleAtoi(word, &outputs)
                      : absl::ConsumePrefix(&word, "elements=") ? absl::SimpleAtoi(word, &elements)
                                                                : true;
    if (!read) return absl::InvalidArgumentError(parts[0]);
  }
  auto mesh = std::make_shared<const Mesh>(*Mesh::Make({{"x", options.num_partitions}}));
  const Shape shape(DType::kS32, elements < 0 ? DimVector{} : DimVector{elements});
  compile::ValueInfo value{shape, Sharding::Replicated(mesh, shape.rank()), "", {}};
  if (split) value.sharding.dims[0].axes = {FullAxis(*mesh, 0)};
  program.parameters.assign(params, value);
  program.outputs.assign(outputs, value);
  program.donation.assign(params, compile::Donation::kNone);
  if (donated >= 0 && donated < params) program.donation[donated] = compile::Donation::kMayAlias;
  if (parts[0].find("all_reduce") != std::string::npos) program.stats.collectives.push_back({"all-reduce", {}});
  return program;
}

SimCluster::SimCluster(SimClusterOptions options_given)
    : options_(std::move(options_given)),
      timeline_(options_.seed),
      network_(timeline_),
      fabrics_([this](const auto& freight, std::function<void()> deliver) { Carry(freight, std::move(deliver)); }),
      controller_executor_(options_.controller_executor ? options_.controller_executor(timeline_) : nullptr),
      loop_(controller_executor_ ? controller_executor_.get() : &timeline_.executor()),
      gangs_({.helper_threads = 0, .deadline = absl::Seconds(60), .clock = &timeline_.clock()}) {
  controller::ControllerOptions options;
  options.compile = [this](const std::string& artifact, const compile::CompileOptions& of) {
    ++compiled_;
    return CompileModelled(artifact, of);
  };
  options.loop = &loop_;
  options.compile_executors = {&timeline_.executor()};
  options.clock = &timeline_.clock();
  options.scheduler = options_.scheduler;
  options.tenants = options_.tenants;
  options.session = options_.session;
  options.log = options_.log;
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
  if (!held_up_) loop_.Post([this] { controller_->Tick(); });
  for (auto& [name, node] : nodes_) {
    node->loop->Post([&worker = *node->worker] { worker.Tick(); });
  }
  timeline_.After(absl::Milliseconds(20), [this] {
    controller_->Reap();
    Tick();
  });
}

void SimCluster::AddWorker(const std::string& name, const SimWorker& of) {
  if (nodes_.contains(name)) Kill(name);
  auto node = std::make_unique<Node>();
  node->broken.assign(of.devices, false);
  node->client = device::MakeModelledClient(timeline_, {.devices = of.devices, .name = name, .broken = &node->broken});
  node->loop = std::make_shared<Strand>(&timeline_.executor());
  auto [ours, theirs] = network_.Connect(name, of.link);
  worker::WorkerOptions options;
  options.name = name;
  options.island = of.island;
  options.rank = of.rank;
  options.device_memory = of.device_memory;
  options.client = node->client.get();
  options.fabric = node->fabric = fabrics_.Make();
  nics_[node->fabric->address()].island = of.island;
  options.gangs = &gangs_;
  options.loop = node->loop;
  options.compile = &timeline_.executor();
  options.clock = &timeline_.clock();
  node->worker = std::make_unique<worker::Worker>(options, std::move(theirs));
  node->loop->Post([&worker = *node->worker] { worker.Start(); });
  controller_->AddWorker(std::move(ours));
  nodes_[name] = std::move(node);
}

void SimCluster::Carry(const net::InprocFabrics::Freight& freight, std::function<void()> deliver) {
  Nic& from = nics_[freight.from];
  const bool inside = from.island == nics_[freight.to].island;
  const SimFabricLink& link = inside ? options_.inside_island : options_.between_islands;
  const absl::Time now = timeline_.clock().Now();
  from.free = std::max(now, from.free) + absl::Seconds(static_cast<double>(freight.bytes) / link.bytes_per_second);
  const double share = std::uniform_real_distribution<>(0, 1)(timeline_.random());
  timeline_.After(from.free - now + link.delay * (1 + share), std::move(deliver));
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

void SimCluster::Leave(const std::string& name) {
  auto it = nodes_.find(name);
  if (it == nodes_.end()) return;
  it->second->loop->Post([&worker = *it->second->worker] { worker.Leave(); });
}

bool SimCluster::IsConnected(const std::string& name) const {
  auto it = nodes_.find(name);
  return it != nodes_.end() && !it->second->worker->closed().IsReady();
}

int64_t SimCluster::StoreBuffers(const std::string& name) const { return nodes_.at(name)->worker->store().buffers(); }

void SimCluster::BreakDevice(const std::string& worker, int device, bool broken) {
  auto it = nodes_.find(worker);
  if (it != nodes_.end() && device < static_cast<int>(it->second->broken.size())) it->second->broken[device] = broken;
}

absl::StatusOr<controller::ArrayId> SimCluster::Put(controller::SessionId session, const Shape& shape,
                                                    std::vector<controller::DeviceId> devices, int32_t value) {
  controller::ArraySpec spec;
  spec.dtype = shape.dtype();
  spec.dims = shape.dims();
  spec.shard_dims = {spec.dims};
  spec.devices = std::move(devices);
  std::vector<int> all(spec.devices.size());
  std::iota(all.begin(), all.end(), 0);
  std::string bytes(shape.ByteSize(), '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  auto shared = std::make_shared<const std::string>(std::move(bytes));
  return On([&](controller::RuntimeController& c) { return c.MakeArray(session, spec, {{shared, all}}); });
}

absl::StatusOr<int32_t> SimCluster::Value(controller::ArrayId array, int shard, absl::Duration patience) {
  const auto bytes = On([&](controller::RuntimeController& c) { return c.Fetch(array, shard); });
  RunFor(patience);
  if (!bytes.IsReady()) return absl::DeadlineExceededError("still waiting");
  const auto outcome = bytes.Await(absl::Now(), "");
  if (!outcome.ok()) return outcome.status();
  int32_t value = 0;
  std::memcpy(&value, (*outcome)->data(), sizeof value);
  return value;
}

int64_t SimCluster::StoreBuffers() const {
  int64_t buffers = 0;
  for (const auto& [name, node] : nodes_) buffers += node->worker->store().buffers();
  return buffers;
}

}  // namespace gangway

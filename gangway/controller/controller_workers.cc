// Workers: coming, going, and what they say.
#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "gangway/base/check.h"
#include "gangway/base/status.h"
#include "gangway/controller/runtime_controller.h"

namespace gangway::controller {
namespace {

constexpr size_t kMaxDevicesPerWorker = 4096;
constexpr int kMaxIsland = 4096;
constexpr size_t kMostFrees = 1 << 16;     // in one message: a session that closes may have had any number of arrays
constexpr size_t kTransferSamples = 8192;  // minutes of a few workers

// FAILED_PRECONDITION for a worker of another protocol, INVALID_ARGUMENT for what no worker offers.
absl::Status CheckHello(const net::Hello& hello) {
  if (hello.protocol_version != net::kProtocolVersion) {
    return absl::FailedPreconditionError(absl::StrCat("worker ", hello.worker, " speaks protocol ",
                                                      hello.protocol_version, ", the controller ",
                                                      net::kProtocolVersion));
  }
  if (hello.devices.size() > kMaxDevicesPerWorker || hello.island < 0 || hello.island > kMaxIsland) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", hello.worker, " offers ", hello.devices.size(), " devices in island ", hello.island));
  }
  return absl::OkStatus();
}

}  // namespace

RuntimeController::RuntimeController(ControllerOptions options)
    : options_(std::move(options)),
      own_loop_(options_.loop == nullptr ? std::make_unique<Strand>() : nullptr),
      loop_(options_.loop == nullptr ? own_loop_.get() : options_.loop),
      clock_(options_.clock == nullptr ? static_cast<const Clock&>(system_clock_) : *options_.clock),
      journal_(options_.journal_capacity),
      transfers_(journal_.keeps() ? kTransferSamples : 0),
      self_(std::make_shared<RuntimeController*>(this)) {
  GW_CHECK(options_.compile != nullptr);
  for (const Tenant& tenant : options_.tenants.tenants()) {
    tenant_uses_[tenant.name] = std::make_shared<TenantUse>(TenantUse{.tenant = tenant});
  }
  if (options_.compile_executors.empty()) {
    for (int i = 0; i < std::max(1, options_.compile_threads); ++i) {
      own_compilers_.push_back(MakeThreadExecutor(absl::StrCat("gw-compile", i)));
    }
  }
  memory_.OnRelease([this] {
    if (memory_queue_.empty() || std::exchange(retry_posted_, true)) return;
    loop_->Post([this, weak = std::weak_ptr<RuntimeController*>(self_)] {
      if (weak.lock() != nullptr) RetryMemory();
    });
  });
}

RuntimeController::~RuntimeController() {
  // A channel's handlers hold the link that holds the channel.
  for (const auto& link : links_) link->channel.reset();
  for (const auto& link : strangers_) link->channel.reset();
  Reap();
}

void RuntimeController::Stop() {
  if (std::exchange(stopped_, true)) return;
  self_.reset();
  const absl::Status stops = absl::UnavailableError("the controller stops");
  for (const auto& link : links_) link->channel != nullptr ? link->channel->Close(stops) : void();
  for (const auto& link : strangers_) link->channel->Close(stops);
}

void RuntimeController::Log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

void RuntimeController::AddWorker(std::unique_ptr<net::Channel> channel) {
  auto link = std::make_shared<WorkerLink>();
  link->channel = std::move(channel);
  link->name = absl::StrCat("a new worker at ", link->channel->peer());
  loop_->Post([this, weak = std::weak_ptr<RuntimeController*>(self_), link] {
    if (weak.lock() == nullptr) return;
    link->last_heard = clock_.Now();
    strangers_.push_back(link);
    net::ChannelHandler handler;
    handler.on_messages = [weak, &loop = *loop_, link](std::vector<net::Message> messages) {
      auto box = std::make_shared<std::vector<net::Message>>(std::move(messages));
      loop.Post([weak, link, box] {
        auto self = weak.lock();
        if (self == nullptr) return;
        for (net::Message& message : *box) (*self)->Handle(link, std::move(message));
      });
    };
    handler.on_close = [weak, &loop = *loop_, link](const absl::Status& reason) {
      loop.Post([weak, link, reason] {
        if (auto self = weak.lock()) (*self)->Lose(link, reason);
      });
    };
    link->channel->Start(std::move(handler));
  });
}

void RuntimeController::Handle(const std::shared_ptr<WorkerLink>& link, net::Message message) {
  if (link->lost) return;
  link->last_heard = clock_.Now();
  if (auto* hello = std::get_if<net::Hello>(&message)) return OnHello(link, std::move(*hello));
  if (auto* beat = std::get_if<net::Heartbeat>(&message)) {  // also while workers of smaller ranks are to join first
    transfers_.Add({link->name, link->last_heard, beat->sent_bytes, beat->received_bytes});
    link->beat = std::move(*beat);
    return;
  }
  if (link->id.value() < 0) {
    return Lose(link, absl::FailedPreconditionError(absl::StrCat(net::MessageName(message), " before hello")));
  }
  if (auto* done = std::get_if<net::TasksDone>(&message)) return OnTasksDone(*link, *done);
  if (auto* fetched = std::get_if<net::Fetched>(&message)) return OnFetched(std::move(*fetched));
  if (std::holds_alternative<net::Leaving>(message)) return OnLeaving(*link);
  if (auto* reached = std::get_if<net::Reached>(&message)) return OnFetched({reached->request, absl::OkStatus(), {}});
  if (auto* loaded = std::get_if<net::ProgramLoaded>(&message)) return OnProgramLoaded(*link, *loaded);
  if (auto* call = std::get_if<net::HostCall>(&message)) return OnHostCall(*link, *call);
  Lose(link, absl::InvalidArgumentError(absl::StrCat("a worker does not send ", net::MessageName(message))));
}

void RuntimeController::OnHello(const std::shared_ptr<WorkerLink>& link, net::Hello hello) {
  if (link->id.value() >= 0) return Lose(link, absl::InvalidArgumentError("a second hello"));
  if (absl::Status fit = CheckHello(hello); !fit.ok()) return Lose(link, fit);
  if (const int rank = hello.rank; rank > static_cast<int>(links_.size()) && !early_.contains(rank)) {
    early_.emplace(rank, std::pair(link, std::move(hello)));
    return;
  }
  if (absl::Status joined = Join(link, hello); !joined.ok()) return Lose(link, joined);
  Log(absl::StrCat("worker ", link->name, " joined with ", hello.devices.size(), " ", hello.platform, " devices"));
  SendTo(link->id,
         net::Welcome{cluster_.worker(link->id).devices[0].value(), net::PeerId(link->id.value()),
                      static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.heartbeat))},
         nullptr);
  LoadAgain(link->id);
  ResolveDeviceWaiters();
  LetEarlyJoin();
}

absl::Status RuntimeController::Join(const std::shared_ptr<WorkerLink>& link, const net::Hello& hello) {
  resource::WorkerOffer offer{hello.worker, hello.island, {}};
  for (const auto& device : hello.devices) offer.devices.push_back({device.kind, device.coords});
  GW_ASSIGN_OR_RETURN(link->id, cluster_.Register(offer));
  strangers_.erase(std::find(strangers_.begin(), strangers_.end(), link));
  link->name = hello.worker;
  link->fabric = hello.fabric;
  const bool is_back = link->id.value() < static_cast<int>(links_.size());
  is_back ? TakeSeatsAgain(link, hello) : TakeNewSeats(link, hello);
  return absl::OkStatus();
}

void RuntimeController::TakeSeatsAgain(const std::shared_ptr<WorkerLink>& link, const net::Hello& hello) {
  links_[link->id.value()] = link;
  const std::vector<DeviceId>& seats = cluster_.worker(link->id).devices;
  for (size_t i = 0; i < hello.devices.size(); ++i) memory_.Reset(seats[i], hello.devices[i].memory_bytes);
}

void RuntimeController::TakeNewSeats(const std::shared_ptr<WorkerLink>& link, const net::Hello& hello) {
  links_.push_back(link);
  for (const auto& device : hello.devices) memory_.AddDevice(device.memory_bytes);
  for (size_t i = devices_.size(); i < cluster_.devices().size(); ++i) {
    const resource::Device& device = cluster_.devices()[i];
    devices_.push_back({device.id, device.kind, hello.worker, device.island,
                        std::vector<int>(device.coords.begin(), device.coords.end())});
  }
}

// A worker that is back knows no program any more.
void RuntimeController::LoadAgain(WorkerId worker) {
  for (auto& [id, program] : programs_) {
    if (program->deployment == nullptr || !program->error.ok()) continue;
    for (const resource::Share& share : program->deployment->placement) {
      if (share.worker == worker) Load(*program, *program->deployment, worker);
    }
  }
}

// The one whose turn it is now, if it waits; the others come after it.
void RuntimeController::LetEarlyJoin() {
  auto next = early_.find(static_cast<int>(links_.size()));
  if (next == early_.end()) return;
  auto [link, hello] = std::move(next->second);
  early_.erase(next);
  if (!link->lost) OnHello(link, std::move(hello));
}

Future<Unit> RuntimeController::DevicesReady(int count) {
  GW_CHECK(loop_->InLoop());
  Promise<Unit> promise;
  device_waiters_.emplace_back(count, promise);
  ResolveDeviceWaiters();
  return promise.future();
}

void RuntimeController::ResolveDeviceWaiters() {
  const int alive = cluster_.alive_devices();
  for (size_t i = 0; i < device_waiters_.size();) {
    if (device_waiters_[i].first > alive) {
      ++i;
      continue;
    }
    Promise<Unit> promise = device_waiters_[i].second;
    device_waiters_.erase(device_waiters_.begin() + i);
    promise.Set(Unit{});
  }
}

void RuntimeController::OnTasksDone(WorkerLink& link, const net::TasksDone& report) {
  Together([&] {  // the launches for which there is room now
    for (const net::TaskDone& done : report.tasks) {
      auto it = tasks_.find(done.task);
      if (it == tasks_.end()) continue;
      std::shared_ptr<TaskRecord> task = it->second;
      PartDone(task, link.id, done.status, absl::Microseconds(done.micros));
    }
  });
}

void RuntimeController::OnFetched(net::Fetched fetched) {
  auto it = requests_.find(fetched.request);
  if (it == requests_.end()) return;
  auto answer = std::move(it->second.answer);
  if (it->second.asker != nullptr) --it->second.asker->questions;
  requests_.erase(it);
  answer(std::move(fetched));
}

void RuntimeController::OnHostCall(const WorkerLink& link, const net::HostCall& call) {
  // A worker that came back meanwhile counts its calls from the beginning.
  auto answer = [this, weak = std::weak_ptr<RuntimeController*>(self_), caller = links_[link.id.value()],
                 id = call.call](const absl::StatusOr<Bytes>& results) {
    if (weak.lock() == nullptr || caller->lost) return;
    SendTo(caller->id,
           net::HostCallAnswer{id, results.status(), results.ok() ? net::Payload(*results) : net::Payload()}, nullptr);
  };
  auto task = tasks_.find(call.task);
  SessionRecord* session = task == tasks_.end() ? nullptr : FindSession(task->second->session);
  if (session == nullptr || session->info.on_host_call == nullptr) {
    return answer(absl::CancelledError("a host callback of a program whose client is gone"));
  }
  const std::vector<DeviceId>& devices = cluster_.worker(link.id).devices;
  if (call.device < 0 || call.device >= static_cast<int>(devices.size())) {
    return answer(absl::InvalidArgumentError(absl::StrCat("a host callback of a device ", call.device)));
  }
  session->info.on_host_call(
      {task->second->program, devices[call.device], call.callback, call.operands.AsString(), std::move(answer)});
}

void RuntimeController::SendTo(WorkerId worker, net::Message message, const std::shared_ptr<TaskRecord>& task) {
  WorkerLink& link = *links_[worker.value()];
  absl::Status sent;
  const net::RequestId request = RequestOf(message);
  if (link.lost) {
    sent = absl::UnavailableError(absl::StrCat("worker ", link.name, " is lost"));
  } else {
    FlushFrees(link);
    link.gathers_launches |= std::holds_alternative<net::Launch>(message);
    sent = link.channel->SendLater(std::move(message));
    if (together_ == 0) {
      Leave(link);
    } else if (!std::exchange(link.gathers, true)) {
      gathered_.push_back(links_[worker.value()]);
    }
  }
  if (sent.ok()) return;
  // In a turn of its own: callers are in the middle of something.
  sent = Annotate(sent, absl::StrCat("worker ", link.name));
  loop_->Post([this, weak = std::weak_ptr<RuntimeController*>(self_), task, worker, sent, request] {
    if (weak.lock() == nullptr) return;
    if (task != nullptr) PartDone(task, worker, sent);
    if (request.value() != 0) OnFetched({request, sent, {}});
  });
}

void RuntimeController::Leave(WorkerLink& link) {
  link.gathers = false;
  if (link.lost) return;
  if (std::exchange(link.gathers_launches, false)) ++counts_.launch_messages;
  link.channel->Flush();
}

void RuntimeController::Together(absl::FunctionRef<void()> calls) {
  GW_CHECK(loop_->InLoop());
  ++together_;
  calls();
  if (--together_ > 0) return;
  for (const auto& link : std::exchange(gathered_, {})) Leave(*link);
}

void RuntimeController::Introduce(WorkerId a, WorkerId b) {
  if (a == b) return;
  for (auto [who, whom] : {std::pair(a, b), std::pair(b, a)}) {
    const WorkerLink& peer = *links_[whom.value()];
    // One that is lost is introduced when it comes back, from where it is then.
    if (peer.lost || links_[who.value()]->lost || !links_[who.value()]->peers.insert(whom).second) continue;
    SendTo(who, net::Peer{net::PeerId(whom.value()), peer.name, peer.fabric}, nullptr);
  }
}

absl::Status RuntimeController::CheckFabric(const Placement& placement) const {
  for (const resource::Share& share : placement) {
    const WorkerLink& link = *links_[share.worker.value()];
    if (link.fabric.empty()) {
      return absl::UnimplementedError(absl::StrCat("worker ", link.name, " has no data plane to other workers"));
    }
  }
  return absl::OkStatus();
}

void RuntimeController::FlushFrees(WorkerLink& link) {
  while (link.unfreed.size() > kMostFrees) {
    net::FreeBuffers some;
    const auto first = link.unfreed.end() - kMostFrees;
    some.buffers.assign(first, link.unfreed.end());
    link.unfreed.erase(first, link.unfreed.end());
    (void)link.channel->SendLater(std::move(some));
  }
  if (link.unfreed.empty()) return;
  (void)link.channel->SendLater(net::FreeBuffers{std::exchange(link.unfreed, {})});
}

void RuntimeController::Tick() {
  GW_CHECK(loop_->InLoop());
  if (stopped_) return;
  const absl::Time now = clock_.Now();
  // While our own loop was held up nobody could be heard: what they said waits behind this turn.
  const absl::Duration since = now - last_tick_;
  const absl::Duration held_up = since > options_.heartbeat / 2 ? since : absl::ZeroDuration();
  last_tick_ = now;
  auto all = links_;
  all.insert(all.end(), strangers_.begin(), strangers_.end());
  for (const auto& link : all) {
    if (link->lost) continue;
    link->last_heard = std::min(now, link->last_heard + held_up);
    if (now - link->last_heard > 2 * options_.heartbeat) {
      Lose(link,
           absl::DeadlineExceededError(absl::StrCat("silent for ", absl::FormatDuration(now - link->last_heard))));
      continue;
    }
    FlushFrees(*link);
    link->channel->Flush();
    if (link->leaves_since < absl::InfiniteFuture()) LetLeave(link);
  }
  GiveUpOnMemory();
}

void RuntimeController::Reap() {
  std::vector<std::unique_ptr<net::Channel>> closed;
  {
    absl::MutexLock lock(&closed_mutex_);
    closed.swap(closed_);
  }
}

void RuntimeController::Lose(const std::shared_ptr<WorkerLink>& link, const absl::Status& reason) {
  if (std::exchange(link->lost, true)) return;
  const absl::Status lost = absl::UnavailableError(absl::StrCat("worker ", link->name, " is lost: ", reason.message()));
  Log(std::string(lost.message()));
  link->channel->Close(absl::Status(
      reason.code(), absl::StrCat("the controller gave up on worker ", link->name, ": ", reason.message())));
  {
    absl::MutexLock lock(&closed_mutex_);
    closed_.push_back(std::move(link->channel));
  }
  if (link->id.value() < 0) {
    std::erase_if(early_, [&](const auto& entry) { return entry.second.first == link; });
    strangers_.erase(std::remove(strangers_.begin(), strangers_.end(), link), strangers_.end());
    return;
  }
  cluster_.MarkLost(link->id);
  for (const auto& other : links_) {
    if (other->peers.erase(link->id) == 0 || other->lost) continue;
    SendTo(other->id, net::PeerLost{net::PeerId(link->id.value()), lost}, nullptr);
  }
  FailWhatItOwned(link->id, lost);
}

// Exactly what needs the worker: arrays with shards there, tasks with parts there, questions asked of it, programs it
// was still loading.
void RuntimeController::FailWhatItOwned(WorkerId worker, const absl::Status& status) {
  for (auto& [id, array] : arrays_) {
    if (!array->error.ok() || array->deleted) continue;
    for (const resource::Share& share : array->layout->placement) {
      if (share.worker == worker) array->error = status;
    }
  }
  std::vector<std::shared_ptr<TaskRecord>> open;
  for (auto& [id, task] : tasks_) {
    if (task->progress.IsOpen(dataflow::NodeId(0), worker)) open.push_back(task);
  }
  std::sort(open.begin(), open.end(), [](const auto& a, const auto& b) { return a->id < b->id; });
  for (const auto& task : open) PartDone(task, worker, status);
  std::vector<net::RequestId> asked;
  for (auto& [id, request] : requests_) {
    if (request.worker == worker) asked.push_back(id);
  }
  std::sort(asked.begin(), asked.end());
  for (net::RequestId id : asked) OnFetched({id, status, {}});
  std::vector<ProgramRecord*> loading;
  bool relocates = false;
  for (auto& [id, program] : programs_) {
    // Also where it has loaded already: when it comes back it knows nothing of it.
    if (program->next != nullptr) {
      relocates |= program->next->loaded.erase(worker) + program->next->loading.erase(worker) > 0;
    }
    if (program->deployment == nullptr) continue;
    program->deployment->loaded.erase(worker);
    if (program->deployment->loading.erase(worker) > 0 && program->program == nullptr) loading.push_back(program.get());
  }
  if (relocates) FailRelocation(status);
  for (ProgramRecord* program : loading) FinishProgram(*program, status);
}

}  // namespace gangway::controller

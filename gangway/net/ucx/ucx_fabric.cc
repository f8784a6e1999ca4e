#include "gangway/net/ucx/ucx_fabric.h"

#include <poll.h>
#include <sched.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gangway/base/status.h"
#include "gangway/net/ucx/ucx_end.h"

namespace gangway::net {
namespace {

constexpr int kIdleMs = 1000;  // a look at the peers' health at least so often
// While a parcel is waited for the network is looked at for so long before the thread sleeps: it often comes sooner
// than a sleeping thread wakes up. Whoever else wants the core gets it.
constexpr absl::Duration kLookOut = absl::Microseconds(50);
// Who leaves with what it looked out for comes back at once in a program of small collectives: waking the fabric's own
// thread in between would cost more than all the rest.
constexpr absl::Duration kLease = absl::Microseconds(100);
constexpr absl::Duration kPatience = absl::Seconds(2);  // for endpoints to close

// UCX leaves shared memory out between peers of which one may die, unless told that it may be used; what stays on the
// host would go over TCP. Only its environment reaches the transports; what is set there stays. POSIX memory goes with
// its processes, that of System V would outlive those that are killed.
void AllowSharedMemory() { setenv("UCX_POSIX_ERROR_HANDLING", "y", /*overwrite=*/0); }

// A context's settings, released at the end of the scope.
class Settings {
 public:
  ~Settings() {
    if (config_ != nullptr) ucp_config_release(config_);
  }
  absl::Status Read(UcxReach reach) {
    GW_RETURN_IF_ERROR(ToStatus(ucp_config_read(nullptr, nullptr, &config_), "settings of the data plane"));
    if (reach == UcxReach::kNetwork) return absl::OkStatus();
    return ToStatus(ucp_config_modify(config_, "TLS", "posix,self"), "settings of the data plane");
  }
  const ucp_config_t* get() const { return config_; }

 private:
  ucp_config_t* config_ = nullptr;
};

}  // namespace

absl::Status ToStatus(ucs_status_t status, absl::string_view what) {
  if (status == UCS_OK) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(what, ": UCX says \"", ucs_status_string(status), "\""));
}

absl::Status UcxFabric::Start(UcxReach reach) {
  AllowSharedMemory();
  Settings settings;
  GW_RETURN_IF_ERROR(settings.Read(reach));
  ucp_params_t parameters = {};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  GW_RETURN_IF_ERROR(ToStatus(ucp_init(&parameters, settings.get(), &context_), "starting the data plane"));
  ucp_worker_params_t of_worker = {};
  of_worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  of_worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  GW_RETURN_IF_ERROR(ToStatus(ucp_worker_create(context_, &of_worker, &worker_), "starting the data plane"));
  for (const auto& [id, callback] :
       {std::pair(kParcel, &ParcelCallback), std::pair(kOffer, &OfferCallback), std::pair(kTaken, &TakenCallback)}) {
    ucp_am_handler_param_t handler = {};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = id;
    handler.cb = callback;
    handler.arg = this;
    GW_RETURN_IF_ERROR(ToStatus(ucp_worker_set_am_recv_handler(worker_, &handler), "data plane"));
  }
  ucp_address_t* address = nullptr;
  size_t length = 0;
  GW_RETURN_IF_ERROR(ToStatus(ucp_worker_get_address(worker_, &address, &length), "address of the data plane"));
  address_ = MemoryCard();
  address_.append(reinterpret_cast<const char*>(address), length);
  ucp_worker_release_address(worker_, address);
  GW_RETURN_IF_ERROR(ToStatus(ucp_worker_get_efd(worker_, &event_fd_), "events of the data plane"));
  thread_ = std::thread([this] { Progress(); });
  pthread_setname_np(thread_.native_handle(), "gw-fabric");
  return absl::OkStatus();
}

UcxFabric::~UcxFabric() {
  if (thread_.joinable()) {
    Calls calls;
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
      const absl::Status gone = absl::CancelledError("the data plane stops");
      End(mailbox_.EndAll(), gone);
      DropAll(gone);
      calls = TakeCalls();
      ucp_worker_signal(worker_);
      handed_back_.Signal();
    }
    CallAll(std::move(calls));
    thread_.join();
  }
  const bool closed = AwaitClosed(absl::Now() + kPatience);
  Calls calls;
  {
    absl::MutexLock lock(&mutex_);
    EndLost(absl::InfiniteFuture());
    calls = TakeCalls();
  }
  CallAll(std::move(calls));
  // UCX aborts when its worker goes while an endpoint is being closed, or a parcel is still on its way over one it made
  // itself: rather, worker and context stay.
  if (closed) {
    if (worker_ != nullptr) ucp_worker_destroy(worker_);
    if (context_ != nullptr) ucp_cleanup(context_);
  }
  for (Operation* operation : given_up_) delete operation;
}

bool UcxFabric::AwaitClosed(absl::Time deadline) {
  while (true) {
    absl::MutexLock lock(&mutex_);
    ForgetClosed();
    if (closing_.empty() && under_way_.empty()) return given_up_.empty();
    if (absl::Now() > deadline) return false;
    ucp_worker_progress(worker_);
  }
}

void UcxFabric::ForgetClosed() {
  std::erase_if(closing_, [](ucs_status_ptr_t request) {
    if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
    ucp_request_free(request);
    return true;
  });
}

std::unique_ptr<UcxFabric::Peer> UcxFabric::MakePeer(PeerId id, std::string name, std::string address) {
  auto peer = std::make_unique<Peer>();
  peer->fabric = this;
  peer->id = id;
  peer->name = std::move(name);
  peer->address = std::move(address);
  peer->memory = PeerMemory::Of(absl::string_view(peer->address).substr(0, kMemoryCardBytes));
  return peer;
}

void UcxFabric::Connect(PeerId id, std::string name, std::string address) {
  Change([&] {
    if (auto it = peers_.find(id); it != peers_.end()) {
      if (it->second->address == address) return;
      Drop(id, absl::UnavailableError(absl::StrCat("worker ", it->second->name, " came back somewhere else")));
    }
    peers_[id] = MakePeer(id, std::move(name), std::move(address));
    mailbox_.Connected(id);
  });
}

std::vector<PeerId> UcxFabric::Peers() const {
  std::vector<PeerId> peers;
  for (const auto& [id, peer] : peers_) peers.push_back(id);
  return peers;
}

void UcxFabric::Drop(PeerId id, const absl::Status& why) {
  Close(id, why);
  End(mailbox_.Disconnected(id, why), why);
}

void UcxFabric::Break(PeerId id, const absl::Status& why) {
  const Peer& old = *peers_.at(id);
  std::unique_ptr<Peer> peer = MakePeer(id, old.name, old.address);
  Close(id, why);
  End(mailbox_.Broke(id, why), why);
  peers_[id] = std::move(peer);
}

void UcxFabric::Close(PeerId id, const absl::Status& why) {
  if (auto it = peers_.find(id); it != peers_.end()) {
    it->second->guard.Withdraw();  // before what it was offered is used for something else
    if (it->second->endpoint != nullptr) {
      ucp_request_param_t force = {};
      force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      force.flags = UCP_EP_CLOSE_FLAG_FORCE;
      ucs_status_ptr_t request = ucp_ep_close_nbx(it->second->endpoint, &force);
      if (UCS_PTR_IS_PTR(request)) closing_.push_back(request);
      it->second->endpoint = nullptr;
    }
    former_peers_.push_back(std::move(it->second));
    peers_.erase(it);
  }
  for (Operation* operation : under_way_) {
    if (operation->peer != id || !operation->lost.ok()) continue;
    operation->lost = why;
    operation->end_by = absl::Now() + kPatience;
    ++lost_;
  }
  if (lost_ > 0) ucp_worker_signal(worker_);
  absl::erase_if(offered_, [&](auto& entry) {
    if (entry.second.peer != id) return false;
    Call(std::move(entry.second.done), why);
    return true;
  });
  std::erase_if(readings_, [&](Reading& reading) {
    if (reading.from != id) return false;
    Call(std::move(reading.wanted.done), why);
    return true;
  });
  if (reading_from_ == id) reading_lost_ = why;
}

absl::Status UcxFabric::Open(Peer& peer) {
  if (peer.endpoint != nullptr) return absl::OkStatus();
  ucp_ep_params_t parameters = {};
  parameters.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  if (peer.address.size() <= kMemoryCardBytes) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", peer.name, " has no address of the data plane"));
  }
  parameters.address = reinterpret_cast<const ucp_address_t*>(peer.address.data() + kMemoryCardBytes);
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler = {&BrokenCallback, &peer};
  return ToStatus(ucp_ep_create(worker_, &parameters, &peer.endpoint),
                  absl::StrCat("connecting to worker ", peer.name));
}

void UcxFabric::BrokenCallback(void* user, ucp_ep_h, ucs_status_t status) {
  auto* peer = static_cast<Peer*>(user);
  auto it = peer->fabric->peers_.find(peer->id);
  if (it == peer->fabric->peers_.end() || it->second.get() != peer) return;  // dropped meanwhile
  peer->fabric->Break(peer->id, ToStatus(status, absl::StrCat("the connection to worker ", peer->name, " broke")));
}

void UcxFabric::EndLost(absl::Time now) {
  if (lost_ == 0) return;
  std::vector<Operation*> late;
  for (Operation* operation : under_way_) {
    if (!operation->lost.ok() && operation->end_by <= now) late.push_back(operation);
  }
  for (Operation* operation : late) {
    under_way_.erase(operation);
    given_up_.insert(operation);
    --lost_;
    Call(std::exchange(operation->done, nullptr), operation->lost);
  }
}

void UcxFabric::Progress() {
  absl::Time sleep_after = absl::InfinitePast();
  while (true) {
    Calls calls;
    bool idle = false, moved = false;
    {
      absl::MutexLock lock(&mutex_);
      while (LookedAfter()) handed_back_.WaitWithTimeout(&mutex_, kLease);
      if (stopping_) return;
      while (outbox_.calls.empty() && ucp_worker_progress(worker_) > 0) moved = true;
      ForgetClosed();
      EndLost(absl::Now());
      calls = TakeCalls();
      if (readings_.empty() && calls.empty() && !moved && (!Awaits() || absl::Now() > sleep_after)) {
        idle = ucp_worker_arm(worker_) == UCS_OK;
      }
    }
    if (ReadSome()) moved = true;
    if (moved || !calls.empty() || idle) sleep_after = absl::Now() + kLookOut;
    CallAll(std::move(calls));
    if (!idle) {
      sched_yield();
      continue;
    }
    pollfd event = {event_fd_, POLLIN, 0};
    poll(&event, 1, kIdleMs);
  }
}

bool UcxFabric::LookedAfter() const { return !stopping_ && (lookout_ || absl::Now() < leased_until_); }

void UcxFabric::LookOut(absl::FunctionRef<bool()> enough) {
  {
    absl::MutexLock lock(&mutex_);
    if (lookout_ || stopping_ || !Awaits()) return;
    lookout_ = true;
  }
  absl::Time now = absl::Now(), until = now + kLookOut;
  for (bool looks = true; looks;) {
    Calls calls;
    bool moved = false;
    const bool leaves = enough();
    {
      absl::MutexLock lock(&mutex_);
      while (outbox_.calls.empty() && ucp_worker_progress(worker_) > 0) moved = true;
      if (lost_ > 0) EndLost(absl::Now());
      calls = TakeCalls();
      now = absl::Now();
      looks = lookout_ = !leaves && Awaits() && !stopping_ && now < until;
      if (!looks) HandBack(now < until && readings_.empty() ? now + kLease : now);
    }
    CallAll(std::move(calls));
    if (looks && ReadSome()) moved = true;
    if (moved) until = absl::Now() + kLookOut;
    if (looks && !moved) sched_yield();
  }
}

void UcxFabric::HandBack(absl::Time then) {
  leased_until_ = then;
  if (!LookedAfter()) handed_back_.Signal();
}

absl::StatusOr<std::shared_ptr<Fabric>> MakeUcxFabric(UcxReach reach) {
  // What ends on the fabric's own thread may hold the last reference to it.
  const auto end = [](UcxFabric* fabric) {
    if (!fabric->IsOwnThread()) return delete fabric;
    std::thread([fabric] { delete fabric; }).detach();
  };
  std::shared_ptr<UcxFabric> fabric(new UcxFabric, end);
  GW_RETURN_IF_ERROR(fabric->Start(reach));
  return std::shared_ptr<Fabric>(std::move(fabric));
}

}  // namespace gangway::net

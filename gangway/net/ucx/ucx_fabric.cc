#include "gangway/net/ucx/ucx_fabric.h"

#include <poll.h>
#include <sched.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gangway/base/status.h"
#include "gangway/net/introduced_fabric.h"
#include "gangway/net/mailbox.h"
#include "gangway/net/ucx/peer_memory.h"

namespace gangway::net {
namespace {

// Active messages: a parcel, or where it lies in the sender's memory; how the latter ended.
constexpr unsigned kParcel = 1, kOffer = 2, kTaken = 3;
// Parcels of so many bytes and more are offered to peers that can read them where they are.
constexpr size_t kOffered = 256 << 10;
// Between so many bytes read, other parcels have their turn.
constexpr size_t kReadAtOnce = 1 << 20;
constexpr int kIdleMs = 1000;  // a look at the peers' health at least so often
// While a parcel is waited for the network is looked at for so long before the thread sleeps: it often comes sooner
// than a sleeping thread wakes up. Whoever else wants the core gets it.
constexpr absl::Duration kLookOut = absl::Microseconds(50);
constexpr absl::Duration kPatience = absl::Seconds(2);  // for endpoints to close

absl::Status ToStatus(ucs_status_t status, absl::string_view what) {
  if (status == UCS_OK) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(what, ": UCX says \"", ucs_status_string(status), "\""));
}

// Before the data of every parcel. Both ends run on machines of one byte order.
struct Header {
  int32_t from = -1;
  uint32_t unused = 0;
  ParcelLabel label;
};

// Where a parcel lies in its sender's memory (peer_memory.h).
struct Offer {
  Header header;
  uint64_t number = 0;  // the sender's, for the answer
  uint64_t address = 0, size = 0;
  uint64_t guard_address = 0, guard = 0;
};

// The answer to an offer: what was there was read, or is not wanted; or it could not be read, and is to be sent.
struct Taken {
  int32_t from = -1;
  uint32_t send = 0;
  uint64_t number = 0;
};

// A parcel that arrived: eager data, in memory that UCX lets us keep or in a copy of ours, or a promise to send it
// (rendezvous), or the offer to read it.
struct Held {
  void* data = nullptr;  // UCX's; to be released
  size_t size = 0;
  bool promise = false;
  std::string copy;  // when there is no data
  std::optional<Offer> offer;

  const void* bytes() const { return data != nullptr ? data : copy.data(); }
};

// `done`s to be called once the lock is released.
using Calls = std::vector<std::pair<Fabric::Done, absl::Status>>;

void CallAll(Calls calls) {
  for (auto& [done, status] : calls) done(status);
}

// UCX's objects belong to whoever holds the mutex; one thread waits for the network and moves it. Rendezvous keeps
// large parcels where they are until somebody receives them, so early parcels take no memory here.
class UcxFabric final : public IntroducedFabric {
 public:
  absl::Status Start();
  ~UcxFabric() override;

  std::string address() const override { return address_; }
  void Connect(PeerId peer, std::string name, std::string address) override;
  void Disconnect(PeerId peer, const absl::Status& why) override;
  void DisconnectAll(const absl::Status& why) override;
  void Send(PeerId to, const ParcelLabel& label, const void* data, size_t size, Done done) override;
  void Receive(PeerId from, const ParcelLabel& label, void* data, size_t size, Done done) override;
  void Abandon(uint64_t subject, const absl::Status& why) override;

 private:
  struct Peer {
    UcxFabric* fabric = nullptr;
    PeerId id;
    std::string name;
    std::string address;
    ucp_ep_h endpoint = nullptr;       // made with the first parcel
    std::optional<PeerMemory> memory;  // when it can be read, and then ours by it
    MemoryGuard guard;                 // over what it may read here
  };
  // A parcel that its receiver was told to read.
  struct Offered {
    PeerId peer;
    ParcelLabel label;
    const void* data = nullptr;
    size_t size = 0;
    Done done;
  };
  // An offer that is being taken: `read` bytes are there.
  struct Reading {
    PeerId from;
    Offer offer;
    Wanted wanted;
    size_t read = 0;
  };
  // A message without data, in memory of its own until UCX has sent it.
  struct Note {
    alignas(8) char bytes[sizeof(Offer)];
  };
  // One send or receive that UCX has begun.
  struct Operation {
    UcxFabric* fabric = nullptr;
    PeerId peer;
    Header header;  // must stay while UCX sends it
    Done done;
  };
  using Box = Mailbox<Held>;

  absl::Status Open(Peer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Begins to move a parcel's data to where it is wanted.
  void Fill(PeerId from, const ParcelLabel& label, Wanted wanted, const Held& held)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Data that is there, or the error that it has another size.
  void CopyTo(Wanted wanted, const ParcelLabel& label, const void* data, size_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Data that was promised, of the size wanted.
  void Pull(PeerId from, Wanted wanted, void* promise) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Dispose(const Held& held) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(Box::Ended ended, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends a parcel's data, or fails: the error is returned and `done` left alone.
  absl::Status SendData(Peer& peer, const ParcelLabel& label, const void* data, size_t size, Done& done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status SendOffer(Peer& peer, const ParcelLabel& label, const void* data, size_t size, Done& done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename T>
  absl::Status SendNote(Peer& peer, unsigned kind, const T& note) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnTaken(const Taken& taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answer(PeerId to, uint64_t offer, bool send) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Some of the first offer that waits to be taken, without the lock; what came of it.
  bool ReadSome() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndReading(Reading reading, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(Operation* operation, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(PeerId peer, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ucs_status_t OnParcel(const Header& header, void* data, size_t size, uint64_t attributes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnOffer(const Offer& offer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Calls TakeCalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return std::exchange(calls_, {}); }
  void ForgetClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True when UCX has come to an end with everything.
  bool AwaitClosed(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  void Progress();

  // UCX calls these while somebody who holds the mutex calls it.
  static ucs_status_t ParcelCallback(void* self, const void* header, size_t header_size, void* data, size_t size,
                                     const ucp_am_recv_param_t* parameters) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  static ucs_status_t OfferCallback(void* self, const void* header, size_t header_size, void* data, size_t size,
                                    const ucp_am_recv_param_t* parameters) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  static ucs_status_t TakenCallback(void* self, const void* header, size_t header_size, void* data, size_t size,
                                    const ucp_am_recv_param_t* parameters) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  static void NotedCallback(void* request, ucs_status_t status, void* note);
  static void SentCallback(void* request, ucs_status_t status, void* operation) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  static void ReceivedCallback(void* request, ucs_status_t status, size_t,
                               void* operation) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  static void BrokenCallback(void* peer, ucp_ep_h endpoint, ucs_status_t status) ABSL_NO_THREAD_SAFETY_ANALYSIS;

  std::string address_;
  int event_fd_ = -1;
  absl::Mutex mutex_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<PeerId, std::unique_ptr<Peer>> peers_ ABSL_GUARDED_BY(mutex_);
  // Their endpoints' callbacks may still name them.
  std::vector<std::unique_ptr<Peer>> former_peers_ ABSL_GUARDED_BY(mutex_);
  Box mailbox_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Operation*> under_way_ ABSL_GUARDED_BY(mutex_);
  // Operations of peers that are gone; UCX may still call back for them.
  absl::flat_hash_set<Operation*> given_up_ ABSL_GUARDED_BY(mutex_);
  std::vector<ucs_status_ptr_t> closing_ ABSL_GUARDED_BY(mutex_);  // endpoints that UCX has not closed yet
  absl::flat_hash_map<uint64_t, Offered> offered_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_offer_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Reading> readings_ ABSL_GUARDED_BY(mutex_);
  // The peer that is read from while nothing is locked, and its loss meanwhile.
  PeerId reading_from_ ABSL_GUARDED_BY(mutex_){-1};
  absl::Status reading_lost_ ABSL_GUARDED_BY(mutex_);
  Calls calls_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// UCX leaves shared memory out between peers of which one may die, unless told that it may be used; what stays on the
// host would go over TCP. Only its environment reaches the transports; what is set there stays. POSIX memory goes with
// its processes, that of System V would outlive those that are killed.
void AllowSharedMemory() { setenv("UCX_POSIX_ERROR_HANDLING", "y", /*overwrite=*/0); }

absl::Status UcxFabric::Start() {
  AllowSharedMemory();
  ucp_params_t parameters = {};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  GW_RETURN_IF_ERROR(ToStatus(ucp_init(&parameters, nullptr, &context_), "starting the data plane"));
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
      std::vector<PeerId> peers;
      for (const auto& [id, peer] : peers_) peers.push_back(id);
      for (PeerId id : peers) Drop(id, gone);
      calls = TakeCalls();
      ucp_worker_signal(worker_);
    }
    CallAll(std::move(calls));
    thread_.join();
  }
  // UCX aborts when its worker goes while an endpoint is being closed, or a parcel is still on its way over one it made
  // itself: rather, worker and context stay.
  if (AwaitClosed(absl::Now() + kPatience)) {
    if (worker_ != nullptr) ucp_worker_destroy(worker_);
    if (context_ != nullptr) ucp_cleanup(context_);
  }
  for (Operation* operation : given_up_) delete operation;
}

bool UcxFabric::AwaitClosed(absl::Time deadline) {
  while (true) {
    absl::MutexLock lock(&mutex_);
    ForgetClosed();
    if (closing_.empty()) return given_up_.empty();
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

void UcxFabric::Connect(PeerId id, std::string name, std::string address) {
  Calls calls;
  {
    absl::MutexLock lock(&mutex_);
    if (auto it = peers_.find(id); it != peers_.end()) {
      if (it->second->address == address) return;
      Drop(id, absl::UnavailableError(absl::StrCat("worker ", it->second->name, " came back somewhere else")));
    }
    auto peer = std::make_unique<Peer>();
    peer->fabric = this;
    peer->id = id;
    peer->name = std::move(name);
    peer->address = std::move(address);
    peer->memory = PeerMemory::Of(absl::string_view(peer->address).substr(0, kMemoryCardBytes));
    peers_[id] = std::move(peer);
    mailbox_.Connected(id);
    calls = TakeCalls();
  }
  CallAll(std::move(calls));
}

void UcxFabric::Disconnect(PeerId peer, const absl::Status& why) {
  Calls calls;
  {
    absl::MutexLock lock(&mutex_);
    Drop(peer, why);
    calls = TakeCalls();
  }
  CallAll(std::move(calls));
}

void UcxFabric::DisconnectAll(const absl::Status& why) {
  Calls calls;
  {
    absl::MutexLock lock(&mutex_);
    while (!peers_.empty()) Drop(peers_.begin()->first, why);
    calls = TakeCalls();
  }
  CallAll(std::move(calls));
}

void UcxFabric::Drop(PeerId id, const absl::Status& why) {
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
  End(mailbox_.Disconnected(id, why), why);
  // What it had begun will not come to an end by itself in every transport.
  std::vector<Operation*> lost;
  for (Operation* operation : under_way_) {
    if (operation->peer == id) lost.push_back(operation);
  }
  for (Operation* operation : lost) {
    under_way_.erase(operation);
    given_up_.insert(operation);
    calls_.emplace_back(std::exchange(operation->done, nullptr), why);
  }
  absl::erase_if(offered_, [&](auto& entry) {
    if (entry.second.peer != id) return false;
    calls_.emplace_back(std::move(entry.second.done), why);
    return true;
  });
  std::erase_if(readings_, [&](Reading& reading) {
    if (reading.from != id) return false;
    calls_.emplace_back(std::move(reading.wanted.done), why);
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

void UcxFabric::Send(PeerId to, const ParcelLabel& label, const void* data, size_t size, Done done) {
  CountSent(size);
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    auto it = peers_.find(to);
    if (stopping_) {
      status = absl::CancelledError("the data plane stops");
    } else if (it == peers_.end()) {
      status = mailbox_.WhyGone(to);
    } else if (size >= kOffered && it->second->memory.has_value()) {
      status = SendOffer(*it->second, label, data, size, done);
    } else {
      status = SendData(*it->second, label, data, size, done);
    }
  }
  if (done != nullptr) done(status);
}

absl::Status UcxFabric::SendData(Peer& peer, const ParcelLabel& label, const void* data, size_t size, Done& done) {
  GW_RETURN_IF_ERROR(Open(peer));
  auto operation = std::make_unique<Operation>(Operation{this, peer.id, {self().value(), 0, label}, nullptr});
  ucp_request_param_t parameters = {};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.send = &SentCallback;
  parameters.user_data = operation.get();
  ucs_status_ptr_t request =
      ucp_am_send_nbx(peer.endpoint, kParcel, &operation->header, sizeof(Header), data, size, &parameters);
  if (!UCS_PTR_IS_PTR(request)) {
    return ToStatus(UCS_PTR_STATUS(request), absl::StrCat("sending to worker ", peer.name));
  }
  operation->done = std::exchange(done, nullptr);
  under_way_.insert(operation.release());
  ucp_worker_signal(worker_);  // there is something to move
  return absl::OkStatus();
}

absl::Status UcxFabric::SendOffer(Peer& peer, const ParcelLabel& label, const void* data, size_t size, Done& done) {
  const uint64_t number = ++last_offer_;
  GW_RETURN_IF_ERROR(SendNote(peer, kOffer,
                              Offer{{self().value(), 0, label},
                                    number,
                                    reinterpret_cast<uint64_t>(data),
                                    size,
                                    peer.guard.address(),
                                    peer.guard.word()}));
  offered_[number] = {peer.id, label, data, size, std::exchange(done, nullptr)};
  return absl::OkStatus();
}

template <typename T>
absl::Status UcxFabric::SendNote(Peer& peer, unsigned kind, const T& content) {
  static_assert(sizeof(T) <= sizeof(Note));
  GW_RETURN_IF_ERROR(Open(peer));
  auto note = std::make_unique<Note>();
  std::memcpy(note->bytes, static_cast<const void*>(&content), sizeof content);
  ucp_request_param_t parameters = {};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.send = &NotedCallback;
  parameters.user_data = note.get();
  ucs_status_ptr_t request = ucp_am_send_nbx(peer.endpoint, kind, note->bytes, sizeof content, nullptr, 0, &parameters);
  if (UCS_PTR_IS_PTR(request)) {
    (void)note.release();  // the callback's
    ucp_worker_signal(worker_);
    return absl::OkStatus();
  }
  return ToStatus(UCS_PTR_STATUS(request), absl::StrCat("sending to worker ", peer.name));
}

// A peer that is gone hears of it otherwise.
void UcxFabric::Answer(PeerId to, uint64_t offer, bool send) {
  auto it = peers_.find(to);
  if (it != peers_.end()) (void)SendNote(*it->second, kTaken, Taken{self().value(), send, offer});
}

void UcxFabric::Receive(PeerId from, const ParcelLabel& label, void* data, size_t size, Done done) {
  CountReceived(size);
  Wanted wanted{data, size, std::move(done)};
  Calls calls;
  {
    absl::MutexLock lock(&mutex_);
    auto early = mailbox_.Receive(from, label, wanted);
    if (!early.ok()) {
      calls_.emplace_back(std::move(wanted.done), early.status());
    } else if (early->has_value()) {
      Fill(from, label, std::move(wanted), **early);
    }
    calls = TakeCalls();
  }
  CallAll(std::move(calls));
}

void UcxFabric::Abandon(uint64_t subject, const absl::Status& why) {
  Calls calls;
  {
    absl::MutexLock lock(&mutex_);
    End(mailbox_.Abandon(subject, why), why);
    calls = TakeCalls();
  }
  CallAll(std::move(calls));
}

void UcxFabric::End(Box::Ended ended, const absl::Status& why) {
  for (Done& done : ended.receives) calls_.emplace_back(std::move(done), why);
  for (const Held& held : ended.parcels) Dispose(held);
}

void UcxFabric::Dispose(const Held& held) {
  if (held.offer.has_value()) Answer(PeerId(held.offer->header.from), held.offer->number, /*send=*/false);
  if (held.data != nullptr) ucp_am_data_release(worker_, held.data);
}

void UcxFabric::Fill(PeerId from, const ParcelLabel& label, Wanted wanted, const Held& held) {
  if (held.offer.has_value() && held.size == wanted.size) {
    readings_.push_back({from, *held.offer, std::move(wanted)});
    ucp_worker_signal(worker_);
    return;
  }
  if (!held.promise || held.size != wanted.size) {
    CopyTo(std::move(wanted), label, held.bytes(), held.size);
    return Dispose(held);
  }
  Pull(from, std::move(wanted), held.data);
}

void UcxFabric::CopyTo(Wanted wanted, const ParcelLabel& label, const void* data, size_t size) {
  absl::Status status;
  if (size != wanted.size) {
    status = absl::InvalidArgumentError(
        absl::StrCat("parcel ", label.ToString(), " has ", size, " bytes, not ", wanted.size));
  } else if (size > 0) {
    std::memcpy(wanted.data, data, size);
  }
  calls_.emplace_back(std::move(wanted.done), status);
}

void UcxFabric::Pull(PeerId from, Wanted wanted, void* promise) {
  auto* operation = new Operation{this, from, {}, std::move(wanted.done)};
  under_way_.insert(operation);
  ucp_request_param_t parameters = {};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.recv_am = &ReceivedCallback;
  parameters.user_data = operation;
  ucs_status_ptr_t request = ucp_am_recv_data_nbx(worker_, promise, wanted.data, wanted.size, &parameters);
  if (UCS_PTR_IS_PTR(request)) {
    ucp_worker_signal(worker_);
  } else {
    Finish(operation, ToStatus(UCS_PTR_STATUS(request), "receiving"));
  }
}

void UcxFabric::Finish(Operation* operation, const absl::Status& status) {
  given_up_.erase(operation);
  if (under_way_.erase(operation) > 0) calls_.emplace_back(std::move(operation->done), status);
  delete operation;
}

// What UCX hands over is ours only once we have said that we keep it, by UCS_INPROGRESS: nothing of it is released
// here. UCS_OK declines a promise, which frees its sender.
ucs_status_t UcxFabric::OnParcel(const Header& header, void* data, size_t size, uint64_t attributes) {
  const bool promise = (attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  const bool keeps = promise || (attributes & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
  Held held{keeps ? data : nullptr, size, promise, {}, std::nullopt};
  if (!keeps) held.copy.assign(static_cast<const char*>(data), size);
  const PeerId from(header.from);
  bool dropped = false;
  std::optional<Wanted> wanted = mailbox_.Arrive(from, header.label, held, &dropped);
  if (dropped) return UCS_OK;
  if (!wanted.has_value()) return keeps ? UCS_INPROGRESS : UCS_OK;
  if (promise && size == wanted->size) {
    Pull(from, *std::move(wanted), data);
    return UCS_INPROGRESS;
  }
  CopyTo(*std::move(wanted), header.label, data, size);
  return UCS_OK;
}

void UcxFabric::OnOffer(const Offer& offer) {
  Held held;
  held.size = offer.size;
  held.offer = offer;
  const PeerId from(offer.header.from);
  bool dropped = false;
  std::optional<Wanted> wanted = mailbox_.Arrive(from, offer.header.label, held, &dropped);
  if (dropped) return Dispose(held);
  if (wanted.has_value()) Fill(from, offer.header.label, *std::move(wanted), held);
}

void UcxFabric::OnTaken(const Taken& taken) {
  auto it = offered_.find(taken.number);
  if (it == offered_.end() || it->second.peer != PeerId(taken.from)) return;
  Offered offered = std::move(it->second);
  offered_.erase(it);
  absl::Status status;
  if (taken.send != 0) {
    Peer& peer = *peers_.at(offered.peer);
    peer.memory.reset();  // it will not be able to read the next ones either
    status = SendData(peer, offered.label, offered.data, offered.size, offered.done);
  }
  if (offered.done != nullptr) calls_.emplace_back(std::move(offered.done), status);
}

bool UcxFabric::ReadSome() {
  Reading reading;
  std::optional<PeerMemory> memory;
  {
    absl::MutexLock lock(&mutex_);
    if (readings_.empty()) return false;
    reading = std::move(readings_.front());
    readings_.pop_front();
    memory = peers_.at(reading.from)->memory;
    reading_from_ = reading.from;
    reading_lost_ = absl::OkStatus();
  }
  const Offer& offer = reading.offer;
  const size_t size = std::min(kReadAtOnce, offer.size - reading.read);
  const absl::Status status = memory.has_value() ? memory->Read(offer.address + reading.read,
                                                                static_cast<char*>(reading.wanted.data) + reading.read,
                                                                size, offer.guard_address, offer.guard)
                                                 : absl::PermissionDeniedError("its memory cannot be read");
  Calls calls;
  {
    absl::MutexLock lock(&mutex_);
    reading_from_ = PeerId(-1);
    reading.read += size;
    if (!reading_lost_.ok()) {
      calls_.emplace_back(std::move(reading.wanted.done), reading_lost_);
    } else if (status.ok() && reading.read < offer.size) {
      readings_.push_front(std::move(reading));
    } else {
      EndReading(std::move(reading), status);
    }
    calls = TakeCalls();
  }
  CallAll(std::move(calls));
  return true;
}

void UcxFabric::EndReading(Reading reading, const absl::Status& status) {
  const Header& header = reading.offer.header;
  if (!absl::IsPermissionDenied(status)) {
    Answer(reading.from, reading.offer.number, /*send=*/false);
    return calls_.emplace_back(std::move(reading.wanted.done), status), void();
  }
  // It is waited for again: the data will come by the usual way.
  auto early = mailbox_.Receive(reading.from, header.label, reading.wanted);
  Answer(reading.from, reading.offer.number, /*send=*/early.ok());
  if (!early.ok()) calls_.emplace_back(std::move(reading.wanted.done), early.status());
}

ucs_status_t UcxFabric::OfferCallback(void* self, const void* header, size_t header_size, void*, size_t,
                                      const ucp_am_recv_param_t*) {
  Offer offer;
  if (header_size != sizeof offer) return UCS_OK;  // no worker of ours
  std::memcpy(static_cast<void*>(&offer), header, sizeof offer);
  static_cast<UcxFabric*>(self)->OnOffer(offer);
  return UCS_OK;
}

ucs_status_t UcxFabric::TakenCallback(void* self, const void* header, size_t header_size, void*, size_t,
                                      const ucp_am_recv_param_t*) {
  Taken taken;
  if (header_size != sizeof taken) return UCS_OK;
  std::memcpy(&taken, header, sizeof taken);
  static_cast<UcxFabric*>(self)->OnTaken(taken);
  return UCS_OK;
}

void UcxFabric::NotedCallback(void* request, ucs_status_t, void* note) {
  delete static_cast<Note*>(note);
  ucp_request_free(request);
}

ucs_status_t UcxFabric::ParcelCallback(void* self, const void* header, size_t header_size, void* data, size_t size,
                                       const ucp_am_recv_param_t* parameters) {
  if (header_size != sizeof(Header)) return UCS_OK;  // no worker of ours
  Header parsed;
  std::memcpy(static_cast<void*>(&parsed), header, sizeof parsed);
  return static_cast<UcxFabric*>(self)->OnParcel(parsed, data, size, parameters->recv_attr);
}

void UcxFabric::SentCallback(void* request, ucs_status_t status, void* user) {
  auto* operation = static_cast<Operation*>(user);
  operation->fabric->Finish(operation, ToStatus(status, "sending"));
  ucp_request_free(request);
}

void UcxFabric::ReceivedCallback(void* request, ucs_status_t status, size_t, void* user) {
  auto* operation = static_cast<Operation*>(user);
  operation->fabric->Finish(operation, ToStatus(status, "receiving"));
  ucp_request_free(request);
}

void UcxFabric::BrokenCallback(void* user, ucp_ep_h endpoint, ucs_status_t status) {
  auto* peer = static_cast<Peer*>(user);
  auto it = peer->fabric->peers_.find(peer->id);
  if (it == peer->fabric->peers_.end() || it->second.get() != peer) return;  // dropped meanwhile
  peer->fabric->Drop(peer->id, ToStatus(status, absl::StrCat("the connection to worker ", peer->name, " broke")));
}

void UcxFabric::Progress() {
  absl::Time sleep_after = absl::InfinitePast();
  while (true) {
    Calls calls;
    bool idle = false, moved = false;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      while (calls_.empty() && ucp_worker_progress(worker_) > 0) moved = true;
      ForgetClosed();
      calls = TakeCalls();
      const bool awaits = !under_way_.empty() || !offered_.empty() || mailbox_.awaited() > 0;
      if (readings_.empty() && calls.empty() && !moved && (!awaits || absl::Now() > sleep_after)) {
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

}  // namespace

absl::StatusOr<std::shared_ptr<Fabric>> MakeUcxFabric() {
  auto fabric = std::make_shared<UcxFabric>();
  GW_RETURN_IF_ERROR(fabric->Start());
  return std::shared_ptr<Fabric>(std::move(fabric));
}

}  // namespace gangway::net

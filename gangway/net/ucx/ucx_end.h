// One end of the fabric over UCX. Internal to net/ucx: ucx_fabric.cc has its life and its peers, ucx_parcels.cc what is
// sent and received, ucx_offers.cc what is read from where it lies.
#pragma once

#include <ucp/api/ucp.h>

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
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gangway/net/mailbox_fabric.h"
#include "gangway/net/ucx/peer_memory.h"
#include "gangway/net/ucx/ucx_fabric.h"

namespace gangway::net {

// Active messages: a parcel, or where it lies in the sender's memory; how the latter ended.
inline constexpr unsigned kParcel = 1, kOffer = 2, kTaken = 3;

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

// One of these from the bytes of an active message; nothing when it is no worker of ours that sent it.
template <typename T>
std::optional<T> Parsed(const void* bytes, size_t size) {
  if (size != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(static_cast<void*>(&value), bytes, sizeof value);
  return value;
}

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

// OK, or UNAVAILABLE with UCX's words for it.
absl::Status ToStatus(ucs_status_t status, absl::string_view what);

struct UcxOutbox {
  Calls calls;
};

// UCX's objects belong to whoever holds the mutex; one thread waits for the network and moves it, while nobody else
// does so (LookOut). Rendezvous keeps large parcels where they are until somebody receives them, so early parcels take
// no memory here.
class UcxFabric final : public MailboxFabric<Held, UcxOutbox> {
 public:
  absl::Status Start(UcxReach reach);
  ~UcxFabric() override;
  // Whether the caller is the thread that the destructor waits for.
  bool IsOwnThread() const { return std::this_thread::get_id() == thread_.get_id(); }

  std::string address() const override { return address_; }
  void Connect(PeerId peer, std::string name, std::string address) override;
  void Send(PeerId to, const ParcelLabel& label, const void* data, size_t size, Done done) override;
  void LookOut(absl::FunctionRef<bool()> enough) override;

 private:
  struct Peer {
    UcxFabric* fabric = nullptr;
    PeerId id;
    std::string name;
    std::string address;
    ucp_ep_h endpoint = nullptr;       // made with the first parcel, of either direction
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
    // Why it ends, once its peer is dropped. UCX may use its memory until it calls back, which it does once the
    // endpoint is closed; where it does not by then, it will not.
    absl::Status lost = absl::OkStatus();
    absl::Time end_by = absl::InfiniteFuture();
  };

  std::unique_ptr<Peer> MakePeer(PeerId id, std::string name, std::string address);
  absl::Status Open(Peer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fill(PeerId from, const ParcelLabel& label, Wanted wanted, const Held& held) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Data that is there, or the error that it has another size.
  void CopyTo(Wanted wanted, const ParcelLabel& label, const void* data, size_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Data that was promised, of the size wanted.
  void Pull(PeerId from, Wanted wanted, void* promise) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Dispose(const Held& held) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(UcxOutbox outbox) override ABSL_LOCKS_EXCLUDED(mutex_) { CallAll(std::move(outbox.calls)); }
  // Sends a parcel's data, or fails: the error is returned and `done` left alone.
  absl::Status SendData(Peer& peer, const ParcelLabel& label, const void* data, size_t size, Done& done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status SendOffer(Peer& peer, const ParcelLabel& label, const void* data, size_t size, Done& done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename T>
  absl::Status SendNote(Peer& peer, unsigned kind, const T& note) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnTaken(const Taken& taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answer(PeerId to, uint64_t offer, bool send) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads some of the first offer that waits, while nothing is locked; false when none does, or another thread reads.
  bool ReadSome() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndReading(Reading reading, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(Operation* operation, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends those of lost peers that UCX has not ended by `now`.
  void EndLost(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(PeerId peer, const absl::Status& why) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<PeerId> Peers() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Its connection is gone; a later subject makes another.
  void Break(PeerId peer, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends what is under way with it and forgets it.
  void Close(PeerId peer, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ucs_status_t OnParcel(const Header& header, void* data, size_t size, uint64_t attributes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnOffer(const Offer& offer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Calls TakeCalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return std::exchange(outbox_.calls, {}); }
  // Whether something is on its way.
  bool Awaits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !under_way_.empty() || !offered_.empty() || !readings_.empty() || mailbox_.awaited() > 0;
  }
  // Whether the fabric's own thread is to leave the network alone.
  bool LookedAfter() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // At `then` the latest the fabric's own thread looks after it again.
  void HandBack(absl::Time then) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  bool lookout_ ABSL_GUARDED_BY(mutex_) = false;  // a thread of somebody else moves the network meanwhile
  absl::Time leased_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // one did, and is expected back by then
  absl::CondVar handed_back_;                                               // neither holds any longer
  absl::flat_hash_map<PeerId, std::unique_ptr<Peer>> peers_ ABSL_GUARDED_BY(mutex_);
  // Their endpoints' callbacks may still name them.
  std::vector<std::unique_ptr<Peer>> former_peers_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Operation*> under_way_ ABSL_GUARDED_BY(mutex_);
  size_t lost_ ABSL_GUARDED_BY(mutex_) = 0;  // of these
  // Operations of peers that are gone; UCX may still call back for them.
  absl::flat_hash_set<Operation*> given_up_ ABSL_GUARDED_BY(mutex_);
  std::vector<ucs_status_ptr_t> closing_ ABSL_GUARDED_BY(mutex_);  // endpoints that UCX has not closed yet
  absl::flat_hash_map<uint64_t, Offered> offered_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_offer_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Reading> readings_ ABSL_GUARDED_BY(mutex_);
  // The peer that is read from while nothing is locked, and its loss meanwhile.
  PeerId reading_from_ ABSL_GUARDED_BY(mutex_){-1};
  absl::Status reading_lost_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace gangway::net

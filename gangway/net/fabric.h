// The data plane: bytes straight from worker to worker, beside the channels to the controller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/strong_id.h"

namespace gangway::net {

using PeerId = StrongId<struct PeerIdTag, int32_t>;  // a worker, by its number in the cluster

// What a parcel is: the same at both ends, and used once in each direction between two workers.
struct ParcelLabel {
  uint64_t subject = 0;  // the task it belongs to, later ones have higher numbers; Abandon names it
  uint64_t key = 0;      // which of its operations
  uint64_t round = 0;    // how often that was done before
  uint64_t part = 0;     // which piece of it

  friend auto operator<=>(const ParcelLabel&, const ParcelLabel&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ParcelLabel& label) {
    return H::combine(std::move(h), label.subject, label.key, label.round, label.part);
  }
  std::string ToString() const { return absl::StrCat(subject, "/", key, "/", round, "/", part); }
};

// One worker's end. Asynchronous and thread-safe: `done` is called once, on any thread, possibly before the call
// returns, with nothing locked; the memory stays valid until then. A parcel may arrive before somebody receives it.
//
// Every operation ends: with the peer's disconnection, with its subject's end, or with the fabric's.
class Fabric {
 public:
  using Done = std::function<void(const absl::Status&)>;

  virtual ~Fabric() = default;

  // What others need to reach this end; opaque bytes.
  virtual std::string address() const = 0;
  // The number under which others know this end; before the first Send.
  virtual void Introduce(PeerId self) = 0;
  virtual PeerId self() const = 0;

  // A peer and where it is; again when it came back somewhere else. `name` is for messages.
  virtual void Connect(PeerId peer, std::string name, std::string address) = 0;
  // All operations with it, and later ones until it is connected again, fail with `why`; what it sent is dropped.
  virtual void Disconnect(PeerId peer, const absl::Status& why) = 0;
  // So with every peer: this end begins anew. Peers for whom it was lost have closed what it still holds open.
  virtual void DisconnectAll(const absl::Status& why) = 0;

  // Errors: UNAVAILABLE naming the peer when it is unknown or gone.
  virtual void Send(PeerId to, const ParcelLabel& label, const void* data, size_t size, Done done) = 0;
  // The parcel must have exactly `size` bytes; INVALID_ARGUMENT otherwise.
  virtual void Receive(PeerId from, const ParcelLabel& label, void* data, size_t size, Done done) = 0;

  // For a thread that would sleep until a parcel comes: it moves what there is to move, and calls `done`s, until
  // `enough`, until nothing is awaited, or until nothing came for a while. A parcel often comes sooner than a sleeping
  // thread wakes up. Returns at once where a fabric has no use for the thread.
  virtual void LookOut(absl::FunctionRef<bool()> /*enough*/) {}

  // Receives of the subject that have not begun fail with `why`, now and later; parcels of it are dropped.
  virtual void Abandon(uint64_t subject, const absl::Status& why) = 0;

  // Of the parcels that Send and Receive were called for.
  virtual int64_t sent_bytes() const = 0;
  virtual int64_t received_bytes() const = 0;
};

}  // namespace gangway::net

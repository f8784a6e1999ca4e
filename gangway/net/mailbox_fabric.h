// What every fabric does with its mailbox, whatever carries the parcels.
#pragma once

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "gangway/net/introduced_fabric.h"
#include "gangway/net/mailbox.h"

namespace gangway::net {

// A backend's state belongs to `mutex_`. What is to be done with nothing locked is put into the outbox meanwhile:
// `Early` is how the backend holds a parcel that came first, `Outbox` has at least `Calls calls`.
template <typename Early, typename Outbox>
class MailboxFabric : public IntroducedFabric {
 public:
  void Receive(PeerId from, const ParcelLabel& label, void* data, size_t size, Fabric::Done done) final {
    CountReceived(size);
    Wanted wanted{data, size, std::move(done)};
    Change([&] {
      auto early = mailbox_.Receive(from, label, wanted);
      if (!early.ok()) return Call(std::move(wanted.done), early.status());
      if (early->has_value()) Fill(from, label, std::move(wanted), **early);
    });
  }
  void Abandon(uint64_t subject, const absl::Status& why) final {
    Change([&] { End(mailbox_.Abandon(subject, why), why); });
  }
  void Disconnect(PeerId peer, const absl::Status& why) final {
    Change([&] { Drop(peer, why); });
  }
  void DisconnectAll(const absl::Status& why) final {
    Change([&] { DropAll(why); });
  }

 protected:
  // Moves a parcel that is there to where it is wanted, or begins to.
  virtual void Fill(PeerId from, const ParcelLabel& label, Wanted wanted, const Early& early)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Nobody wants it.
  virtual void Dispose(const Early& early) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // The peer is forgotten: what is under way with it ends, and so does what the mailbox holds of it (Disconnected).
  virtual void Drop(PeerId peer, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual std::vector<PeerId> Peers() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual void Deliver(Outbox outbox) ABSL_LOCKS_EXCLUDED(mutex_) = 0;

  // Changes the state, then delivers what that left to be done.
  template <typename Function>
  void Change(Function change) ABSL_LOCKS_EXCLUDED(mutex_) {
    Outbox outbox;
    {
      absl::MutexLock lock(&mutex_);
      change();
      outbox = std::exchange(outbox_, {});
    }
    Deliver(std::move(outbox));
  }
  void Call(Fabric::Done done, absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    outbox_.calls.emplace_back(std::move(done), std::move(status));
  }
  void End(typename Mailbox<Early>::Ended ended, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (Fabric::Done& done : ended.receives) Call(std::move(done), why);
    for (const Early& early : ended.parcels) Dispose(early);
  }
  void DropAll(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (PeerId peer : Peers()) Drop(peer, why);
  }
  // The first thing a Send asks; `connected`: the peer is known.
  absl::Status MaySend(PeerId to, uint64_t subject, bool connected) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    mailbox_.Note(subject);
    if (stopping_) return absl::CancelledError("the data plane stops");
    if (!connected) return mailbox_.WhyUnknown(to);
    const absl::Status* why = mailbox_.WhyGone(to, subject);
    return why != nullptr ? *why : absl::OkStatus();
  }

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Mailbox<Early> mailbox_ ABSL_GUARDED_BY(mutex_);
  Outbox outbox_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gangway::net

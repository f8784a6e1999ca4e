#include "gangway/net/inproc/inproc_fabric.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "gangway/net/mailbox_fabric.h"

namespace gangway::net {

struct InprocFabrics::Hub {
  explicit Hub(Carry carry) : carry(std::move(carry)) {}

  const Carry carry;
  absl::Mutex mutex;
  int64_t made ABSL_GUARDED_BY(mutex) = 0;
  absl::flat_hash_map<std::string, std::weak_ptr<End>> ends ABSL_GUARDED_BY(mutex);  // by address
};

struct InprocOutbox {
  Calls calls;
};

class InprocFabrics::End final : public MailboxFabric<std::string, InprocOutbox> {
 public:
  End(std::shared_ptr<Hub> hub, std::string address) : hub_(std::move(hub)), address_(std::move(address)) {}
  ~End() override {
    Change([&] { MailboxFabric::End(mailbox_.EndAll(), absl::CancelledError("the fabric is gone")); });
  }

  std::string address() const override { return address_; }

  void Connect(PeerId peer, std::string name, std::string address) override {
    absl::MutexLock lock(&mutex_);
    peers_[peer] = {std::move(name), std::move(address)};
    mailbox_.Connected(peer);
  }

  void Send(PeerId to, const ParcelLabel& label, const void* data, size_t size, Done done) override {
    CountSent(size);
    std::string address;
    absl::Status gone;
    {
      absl::MutexLock lock(&mutex_);
      auto it = peers_.find(to);
      gone = MaySend(to, label.subject, it != peers_.end());
      if (gone.ok()) address = it->second.address;
    }
    if (!gone.ok()) return done(gone);
    auto bytes = std::make_shared<std::string>(static_cast<const char*>(data), size);
    auto deliver = [hub = hub_, from = address_, address, self = self(), label, bytes] {
      std::shared_ptr<End> end;
      {
        absl::MutexLock lock(&hub->mutex);
        if (!hub->ends.contains(from)) return;
        if (auto it = hub->ends.find(address); it != hub->ends.end()) end = it->second.lock();
      }
      if (end != nullptr) end->Arrive(self, label, std::move(*bytes));
    };
    if (hub_->carry) {
      hub_->carry({address_, address, size}, std::move(deliver));
    } else {
      deliver();
    }
    done(absl::OkStatus());
  }

 private:
  struct Peer {
    std::string name;
    std::string address;
  };

  void Arrive(PeerId from, const ParcelLabel& label, std::string bytes) {
    Change([&] {
      bool dropped = false;
      std::optional<Wanted> wanted = mailbox_.Arrive(from, label, bytes, &dropped);
      if (wanted.has_value()) Fill(from, label, *std::move(wanted), bytes);
    });
  }
  void Fill(PeerId, const ParcelLabel& label, Wanted wanted, const std::string& bytes) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (bytes.size() != wanted.size) {
      return Call(std::move(wanted.done),
                  absl::InvalidArgumentError(
                      absl::StrCat("parcel ", label.ToString(), " has ", bytes.size(), " bytes, not ", wanted.size)));
    }
    if (!bytes.empty()) std::memcpy(wanted.data, bytes.data(), bytes.size());
    Call(std::move(wanted.done), absl::OkStatus());
  }
  void Dispose(const std::string&) override {}
  void Deliver(InprocOutbox outbox) override { CallAll(std::move(outbox.calls)); }
  void Drop(PeerId peer, const absl::Status& why) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    peers_.erase(peer);
    MailboxFabric::End(mailbox_.Disconnected(peer, why), why);
  }
  std::vector<PeerId> Peers() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<PeerId> peers;
    for (const auto& [id, peer] : peers_) peers.push_back(id);
    return peers;
  }

  const std::shared_ptr<Hub> hub_;
  const std::string address_;
  absl::flat_hash_map<PeerId, Peer> peers_ ABSL_GUARDED_BY(mutex_);
};

InprocFabrics::InprocFabrics(Carry carry) : hub_(std::make_shared<Hub>(std::move(carry))) {}

std::shared_ptr<Fabric> InprocFabrics::Make() {
  absl::MutexLock lock(&hub_->mutex);
  std::string address = absl::StrCat("inproc:", hub_->made++);
  auto end = std::make_shared<End>(hub_, address);
  hub_->ends[address] = end;
  return end;
}

void InprocFabrics::Cut(const std::string& address) {
  absl::MutexLock lock(&hub_->mutex);
  hub_->ends.erase(address);
}

}  // namespace gangway::net

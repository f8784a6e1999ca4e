#include "gangway/net/inproc/inproc_fabric.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "gangway/net/introduced_fabric.h"
#include "gangway/net/mailbox.h"

namespace gangway::net {

struct InprocFabrics::Hub {
  explicit Hub(Carry carry) : carry(std::move(carry)) {}

  const Carry carry;
  absl::Mutex mutex;
  int64_t made ABSL_GUARDED_BY(mutex) = 0;
  absl::flat_hash_map<std::string, std::weak_ptr<End>> ends ABSL_GUARDED_BY(mutex);  // by address
};

class InprocFabrics::End final : public IntroducedFabric {
 public:
  End(std::shared_ptr<Hub> hub, std::string address) : hub_(std::move(hub)), address_(std::move(address)) {}
  ~End() override {
    Mailbox<std::string>::Ended ended;
    {
      absl::MutexLock lock(&mutex_);
      ended = mailbox_.EndAll();
    }
    Fail(ended, absl::CancelledError("the fabric is gone"));
  }

  std::string address() const override { return address_; }

  void Connect(PeerId peer, std::string name, std::string address) override {
    absl::MutexLock lock(&mutex_);
    peers_[peer] = {std::move(name), std::move(address)};
    mailbox_.Connected(peer);
  }
  void Disconnect(PeerId peer, const absl::Status& why) override {
    Mailbox<std::string>::Ended ended;
    {
      absl::MutexLock lock(&mutex_);
      peers_.erase(peer);
      ended = mailbox_.Disconnected(peer, why);
    }
    Fail(ended, why);
  }
  void DisconnectAll(const absl::Status& why) override {
    std::vector<PeerId> all;
    {
      absl::MutexLock lock(&mutex_);
      for (const auto& [id, peer] : peers_) all.push_back(id);
    }
    for (PeerId id : all) Disconnect(id, why);
  }

  void Send(PeerId to, const ParcelLabel& label, const void* data, size_t size, Done done) override {
    CountSent(size);
    std::string address;
    absl::Status gone;
    {
      absl::MutexLock lock(&mutex_);
      if (auto it = peers_.find(to); it != peers_.end()) {
        address = it->second.address;
      } else {
        gone = mailbox_.WhyUnknown(to);
      }
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

  void Receive(PeerId from, const ParcelLabel& label, void* data, size_t size, Done done) override {
    CountReceived(size);
    Wanted wanted{data, size, std::move(done)};
    absl::StatusOr<std::optional<std::string>> early;
    {
      absl::MutexLock lock(&mutex_);
      early = mailbox_.Receive(from, label, wanted);
    }
    if (!early.ok()) return wanted.done(early.status());
    if (early->has_value()) Fill(wanted, label, **early);
  }

  void Abandon(uint64_t subject, const absl::Status& why) override {
    Mailbox<std::string>::Ended ended;
    {
      absl::MutexLock lock(&mutex_);
      ended = mailbox_.Abandon(subject, why);
    }
    Fail(ended, why);
  }

 private:
  struct Peer {
    std::string name;
    std::string address;
  };

  void Arrive(PeerId from, const ParcelLabel& label, std::string bytes) {
    std::optional<Wanted> wanted;
    {
      bool dropped = false;
      absl::MutexLock lock(&mutex_);
      wanted = mailbox_.Arrive(from, label, bytes, &dropped);
    }
    if (wanted.has_value()) Fill(*wanted, label, bytes);
  }
  static void Fill(const Wanted& wanted, const ParcelLabel& label, const std::string& bytes) {
    if (bytes.size() != wanted.size) {
      return wanted.done(absl::InvalidArgumentError(
          absl::StrCat("parcel ", label.ToString(), " has ", bytes.size(), " bytes, not ", wanted.size)));
    }
    if (!bytes.empty()) std::memcpy(wanted.data, bytes.data(), bytes.size());
    wanted.done(absl::OkStatus());
  }
  static void Fail(const Mailbox<std::string>::Ended& ended, const absl::Status& why) {
    for (const Done& done : ended.receives) done(why);
  }

  const std::shared_ptr<Hub> hub_;
  const std::string address_;
  absl::Mutex mutex_;
  absl::flat_hash_map<PeerId, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  Mailbox<std::string> mailbox_ ABSL_GUARDED_BY(mutex_);
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

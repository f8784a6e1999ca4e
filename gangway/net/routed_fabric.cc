#include "gangway/net/routed_fabric.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"

namespace gangway::net {
namespace {

// Texts one behind the other, each behind its length.
std::string Packed(const std::vector<std::string>& texts) {
  std::string packed = "routed:";
  for (const std::string& text : texts) absl::StrAppend(&packed, text.size(), ":", text);
  return packed;
}

std::optional<std::vector<std::string>> Unpacked(absl::string_view packed) {
  if (!absl::ConsumePrefix(&packed, "routed:")) return std::nullopt;
  std::vector<std::string> texts;
  while (!packed.empty()) {
    const size_t colon = packed.find(':');
    size_t size = 0;
    if (colon == absl::string_view::npos || !absl::SimpleAtoi(packed.substr(0, colon), &size)) return std::nullopt;
    packed.remove_prefix(colon + 1);
    if (size > packed.size()) return std::nullopt;
    texts.emplace_back(packed.substr(0, size));
    packed.remove_prefix(size);
  }
  return texts;
}

class RoutedFabric final : public Fabric {
 public:
  RoutedFabric(std::string host, std::shared_ptr<Fabric> near, std::shared_ptr<Fabric> far)
      : host_(std::move(host)), near_(std::move(near)), far_(std::move(far)) {}

  std::string address() const override {
    return Packed({host_, near_->address(), far_ != nullptr ? far_->address() : ""});
  }
  void Introduce(PeerId self) override {
    near_->Introduce(self);
    if (far_ != nullptr) far_->Introduce(self);
  }
  PeerId self() const override { return near_->self(); }

  void Connect(PeerId peer, std::string name, std::string address) override;
  void Disconnect(PeerId peer, const absl::Status& why) override {
    {
      absl::MutexLock lock(&mutex_);
      routes_.erase(peer);
    }
    near_->Disconnect(peer, why);
    if (far_ != nullptr) far_->Disconnect(peer, why);
  }
  void DisconnectAll(const absl::Status& why) override {
    {
      absl::MutexLock lock(&mutex_);
      routes_.clear();
    }
    near_->DisconnectAll(why);
    if (far_ != nullptr) far_->DisconnectAll(why);
  }
  void Send(PeerId to, const ParcelLabel& label, const void* data, size_t size, Done done) override {
    absl::StatusOr<Fabric*> route = RouteTo(to);
    if (!route.ok()) return done(route.status());
    (*route)->Send(to, label, data, size, std::move(done));
  }
  void Receive(PeerId from, const ParcelLabel& label, void* data, size_t size, Done done) override {
    absl::StatusOr<Fabric*> route = RouteTo(from);
    if (!route.ok()) return done(route.status());
    (*route)->Receive(from, label, data, size, std::move(done));
  }
  void LookOut(absl::FunctionRef<bool()> enough) override { near_->LookOut(enough); }
  void Abandon(uint64_t subject, const absl::Status& why) override {
    near_->Abandon(subject, why);
    if (far_ != nullptr) far_->Abandon(subject, why);
  }
  int64_t sent_bytes() const override { return near_->sent_bytes() + (far_ != nullptr ? far_->sent_bytes() : 0); }
  int64_t received_bytes() const override {
    return near_->received_bytes() + (far_ != nullptr ? far_->received_bytes() : 0);
  }

 private:
  // Those that are not known are the near fabric's, which has the words for them.
  absl::StatusOr<Fabric*> RouteTo(PeerId peer) const {
    absl::MutexLock lock(&mutex_);
    auto it = routes_.find(peer);
    return it == routes_.end() ? near_.get() : it->second;
  }

  const std::string host_;
  const std::shared_ptr<Fabric> near_, far_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<PeerId, absl::StatusOr<Fabric*>> routes_ ABSL_GUARDED_BY(mutex_);
};

void RoutedFabric::Connect(PeerId peer, std::string name, std::string address) {
  const std::optional<std::vector<std::string>> parts = Unpacked(address);
  const bool understood = parts.has_value() && parts->size() == 3;
  const bool is_near = understood && (*parts)[0] == host_;
  absl::StatusOr<Fabric*> route = is_near ? near_.get() : far_.get();
  if (!understood) {
    route = absl::InvalidArgumentError(absl::StrCat("worker ", name, " has no address of the data plane"));
  } else if (!is_near && (far_ == nullptr || (*parts)[2].empty())) {
    route = absl::FailedPreconditionError(absl::StrCat(
        "worker ", name, " shares no memory with this one: both need certificates (--tls-cert), or both --peers=open"));
  }
  {
    absl::MutexLock lock(&mutex_);
    routes_.insert_or_assign(peer, route);
  }
  if (route.ok()) (*route)->Connect(peer, std::move(name), is_near ? (*parts)[1] : (*parts)[2]);
}

}  // namespace

std::shared_ptr<Fabric> MakeRoutedFabric(std::string host, std::shared_ptr<Fabric> near, std::shared_ptr<Fabric> far) {
  return std::make_shared<RoutedFabric>(std::move(host), std::move(near), std::move(far));
}

}  // namespace gangway::net

#include "gangway/net/inproc/inproc.h"

#include <optional>

#include "absl/synchronization/notification.h"
#include "gangway/base/status.h"
#include "gangway/base/strand.h"

namespace gangway::net {
namespace {

// One end: what arrives there. Owned by its strand, so that deliveries from several threads stay in order.
struct End {
  Strand strand;
  std::optional<ChannelHandler> handler;  // set by Start, reset by the destructor
  std::vector<Message> early;             // arrived before Start
  std::optional<absl::Status> reason;     // why it is closed
  std::atomic<bool> closed = false;

  void Deliver(Message message) {
    if (reason.has_value()) return;
    if (!handler.has_value()) {
      early.push_back(std::move(message));
      return;
    }
    std::vector<Message> one;
    one.push_back(std::move(message));
    handler->on_messages(std::move(one));
  }

  void Close(const absl::Status& status) {
    if (reason.has_value()) return;
    reason = status;
    closed = true;
    if (handler.has_value()) handler->on_close(status);
  }

  void Start(ChannelHandler h) {
    handler = std::move(h);
    if (!early.empty()) handler->on_messages(std::exchange(early, {}));
    if (reason.has_value()) handler->on_close(*reason);
  }
};

class InprocChannel final : public Channel {
 public:
  // Shared: each end delivers into the other and neither outlives it by rule.
  InprocChannel(std::string name, std::shared_ptr<End> own, std::shared_ptr<End> other)
      : name_(std::move(name)), own_(std::move(own)), other_(std::move(other)) {}

  ~InprocChannel() override {
    Close(absl::UnavailableError(absl::StrCat(name_, ": the other end is gone")));
    absl::Notification gone;
    own_->strand.Post([this, &gone] {
      own_->handler.reset();
      gone.Notify();
    });
    gone.WaitForNotification();
  }

  void Start(ChannelHandler handler) override {
    own_->strand.Post([own = own_, handler = std::move(handler)]() mutable { own->Start(std::move(handler)); });
  }

  absl::Status Send(Message message) override {
    if (own_->closed || other_->closed) return absl::UnavailableError(absl::StrCat(name_, ": channel is closed"));
    // A task is copyable, a message may be large: hand it over by pointer.
    auto box = std::make_shared<Message>(std::move(message));
    other_->strand.Post([other = other_.get(), box] { other->Deliver(std::move(*box)); });
    return absl::OkStatus();
  }
  absl::Status SendLater(Message message) override { return Send(std::move(message)); }
  void Flush() override {}

  void Close(absl::Status reason) override {
    if (reason.ok()) reason = absl::UnavailableError(absl::StrCat(name_, ": closed"));
    other_->strand.Post([other = other_, reason] { other->Close(reason); });
    own_->strand.Post([own = own_, reason] { own->Close(reason); });
  }

  std::string peer() const override { return name_; }

 private:
  const std::string name_;
  const std::shared_ptr<End> own_;
  const std::shared_ptr<End> other_;
};

}  // namespace

std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> MakeInprocPair(std::string name) {
  auto a = std::make_shared<End>();
  auto b = std::make_shared<End>();
  return {std::make_unique<InprocChannel>(name, a, b), std::make_unique<InprocChannel>(name, b, a)};
}

}  // namespace gangway::net

#include "gangway/net/inproc/inproc.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

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

  void Deliver(std::vector<Message> messages) {
    if (reason.has_value()) return;
    if (handler.has_value()) return handler->on_messages(std::move(messages));
    std::move(messages.begin(), messages.end(), std::back_inserter(early));
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
    absl::Status taken = SendLater(std::move(message));
    Flush();
    return taken;
  }
  absl::Status SendLater(Message message) override {
    if (own_->closed || other_->closed) return absl::UnavailableError(absl::StrCat(name_, ": channel is closed"));
    waiting_.push_back(std::move(message));
    return absl::OkStatus();
  }
  void Flush() override {
    if (waiting_.empty()) return;
    // A task is copyable, messages may be large: hand them over by pointer.
    auto box = std::make_shared<std::vector<Message>>(std::exchange(waiting_, {}));
    other_->strand.Post([other = other_.get(), box] { other->Deliver(std::move(*box)); });
  }

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
  std::vector<Message> waiting_;  // for the next Flush
};

}  // namespace

std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> MakeInprocPair(std::string name) {
  auto a = std::make_shared<End>();
  auto b = std::make_shared<End>();
  return {std::make_unique<InprocChannel>(name, a, b), std::make_unique<InprocChannel>(name, b, a)};
}

}  // namespace gangway::net

#include "gangway/net/sim/sim_network.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gangway::net {

struct SimNetwork::Wire {
  struct End {
    std::optional<ChannelHandler> handler;
    std::vector<Message> early;
    std::optional<absl::Status> reason;  // why this end is closed
    bool told = false;
    absl::Time last_arrival = absl::InfinitePast();  // of what is on its way here
  };
  std::string name;
  SimLink link;
  End ends[2];
  bool silent = false;

  void Close(int end, const absl::Status& why) {
    End& e = ends[end];
    if (!e.reason.has_value()) e.reason = why;
    if (!e.handler.has_value() || std::exchange(e.told, true)) return;
    e.handler->on_close(*e.reason);
  }
};

class SimChannel final : public Channel {
 public:
  SimChannel(SimNetwork& network, std::shared_ptr<SimNetwork::Wire> wire, int end)
      : network_(network), wire_(std::move(wire)), end_(end) {}

  ~SimChannel() override {
    Close(absl::UnavailableError("the other end is gone"));
    wire_->ends[end_].handler.reset();
  }

  void Start(ChannelHandler handler) override {
    auto& own = wire_->ends[end_];
    own.handler = std::move(handler);
    if (!own.early.empty()) own.handler->on_messages(std::exchange(own.early, {}));
    if (own.reason.has_value()) wire_->Close(end_, *own.reason);
  }

  absl::Status Send(Message message) override {
    absl::Status taken = SendLater(std::move(message));
    Flush();
    return taken;
  }
  absl::Status SendLater(Message message) override {
    if (wire_->ends[end_].reason.has_value()) return absl::UnavailableError("connection is closed");
    auto& random = network_.timeline_.random();
    if (std::uniform_real_distribution<>(0, 1)(random) < wire_->link.break_probability) {
      network_.Break(wire_->name);
      return absl::UnavailableError("connection broke");
    }
    waiting_.push_back(std::move(message));
    return absl::OkStatus();
  }
  void Flush() override {
    if (waiting_.empty() || wire_->silent) return waiting_.clear();
    auto box = std::make_shared<std::vector<Message>>(std::exchange(waiting_, {}));
    Deliver([&network = network_, box, name = wire_->name](SimNetwork::Wire& wire, SimNetwork::Wire::End& other) {
      if (other.reason.has_value()) return;
      if (network.spy_) network.spy_(name, *box);
      if (other.handler.has_value()) return other.handler->on_messages(std::move(*box));
      std::move(box->begin(), box->end(), std::back_inserter(other.early));
    });
  }

  void Close(absl::Status reason) override {
    if (wire_->ends[end_].reason.has_value()) return;
    Deliver([reason, other = 1 - end_](SimNetwork::Wire& wire, SimNetwork::Wire::End&) { wire.Close(other, reason); });
    wire_->ends[end_].reason = reason;
    // Its own handler hears of it in a turn of its own.
    network_.timeline_.executor().Post([wire = wire_, end = end_, reason] { wire->Close(end, reason); });
  }

  std::string peer() const override { return wire_->name; }

 private:
  // After the link's delay, never before what was sent earlier.
  void Deliver(std::function<void(SimNetwork::Wire&, SimNetwork::Wire::End&)> action) {
    SimTimeline& timeline = network_.timeline_;
    const double share = std::uniform_real_distribution<>(0, 1)(timeline.random());
    absl::Time arrival =
        timeline.clock().Now() + wire_->link.min_delay + share * (wire_->link.max_delay - wire_->link.min_delay);
    auto& other = wire_->ends[1 - end_];
    arrival = std::max(arrival, other.last_arrival);
    other.last_arrival = arrival;
    timeline.After(arrival - timeline.clock().Now(), [wire = wire_, end = 1 - end_, action = std::move(action)] {
      if (!wire->silent) action(*wire, wire->ends[end]);
    });
  }

  SimNetwork& network_;
  const std::shared_ptr<SimNetwork::Wire> wire_;  // shared with the other end and what is on its way
  const int end_;
  std::vector<Message> waiting_;  // for the next Flush
};

std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> SimNetwork::Connect(std::string name, SimLink link) {
  auto wire = std::make_shared<Wire>();
  wire->name = std::move(name);
  wire->link = link;
  wires_.push_back(wire);
  return {std::make_unique<SimChannel>(*this, wire, 0), std::make_unique<SimChannel>(*this, wire, 1)};
}

void SimNetwork::Break(const std::string& name) {
  for (auto& weak : wires_) {
    auto wire = weak.lock();
    if (wire == nullptr || wire->name != name) continue;
    for (int end = 0; end < 2; ++end) {
      const absl::Status why = absl::UnavailableError(absl::StrCat("connection ", name, " broke"));
      if (!wire->ends[end].reason.has_value()) wire->ends[end].reason = why;
      timeline_.executor().Post([wire, end, why] { wire->Close(end, why); });
    }
  }
}

void SimNetwork::Silence(const std::string& name) {
  for (auto& weak : wires_) {
    auto wire = weak.lock();
    if (wire != nullptr && wire->name == name) wire->silent = true;
  }
}

}  // namespace gangway::net

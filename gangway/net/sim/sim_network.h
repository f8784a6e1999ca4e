// A network in simulated time: messages are late, connections break, all drawn from one seed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gangway/base/sim_timeline.h"
#include "gangway/net/channel.h"

namespace gangway::net {

struct SimLink {
  absl::Duration min_delay = absl::Microseconds(20);
  absl::Duration max_delay = absl::Microseconds(200);
  double break_probability = 0;  // per message: the connection breaks instead of delivering it
};

// Makes connections over a timeline, which must outlive them. Order within a direction is kept, as TCP does.
class SimNetwork {
 public:
  explicit SimNetwork(SimTimeline& timeline) : timeline_(timeline) {}

  // Two ends of a connection; `name` is what each says of its peer.
  std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> Connect(std::string name, SimLink link = {});
  // Breaks a connection: both ends hear of it, messages on their way are lost.
  void Break(const std::string& name);
  // From now on nothing gets through, and nobody hears of it.
  void Silence(const std::string& name);
  // Called for every delivery, before its handler: what was sent together arrives together.
  void OnDeliver(std::function<void(const std::string& name, const std::vector<Message>&)> spy) {
    spy_ = std::move(spy);
  }

 private:
  friend class SimChannel;
  struct Wire;
  SimTimeline& timeline_;
  std::vector<std::weak_ptr<Wire>> wires_;
  std::function<void(const std::string&, const std::vector<Message>&)> spy_;
};

}  // namespace gangway::net

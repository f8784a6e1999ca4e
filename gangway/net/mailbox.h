// Which parcel meets which receive: the bookkeeping every fabric shares.
#pragma once

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gangway/net/fabric.h"

namespace gangway::net {

// A receive that waits for its parcel.
struct Wanted {
  void* data = nullptr;
  size_t size = 0;
  Fabric::Done done;
};

// Parcels that came early and receives that came first, by peer and label. Pure state, not thread-safe: the fabric
// locks around it and calls `done`s afterwards. `Early` is how a backend holds a parcel; whoever gets one back disposes
// of it.
template <typename Early>
class Mailbox {
 public:
  struct Ended {
    std::vector<Fabric::Done> receives;  // to be failed
    std::vector<Early> parcels;          // to be disposed of
  };

  // A receive. The parcel, when it is there already; an error, when it will never come (`wanted` is left alone then).
  // Otherwise it waits.
  absl::StatusOr<std::optional<Early>> Receive(PeerId from, const ParcelLabel& label, Wanted& wanted) {
    Note(label.subject);
    if (const absl::Status* why = WhyGone(from, label.subject)) return *why;
    if (const absl::Status* why = Abandoned(label.subject)) return *why;
    Box& box = boxes_[{from, label}];
    if (box.early.has_value()) {
      std::optional<Early> early = std::move(box.early);
      boxes_.erase({from, label});
      return early;
    }
    if (box.wanted.done != nullptr) {
      return absl::InternalError(absl::StrCat("parcel ", label.ToString(), " is received twice"));
    }
    box.wanted = std::move(wanted);
    ++awaited_;
    return std::optional<Early>();
  }

  // A parcel. The receive that waits for it; nullopt when it is kept, or when nobody will ever want it (`early` is left
  // with the caller then, true in `*dropped`).
  std::optional<Wanted> Arrive(PeerId from, const ParcelLabel& label, Early& early, bool* dropped) {
    // A peer that came back may be heard before its return is known here; what it then sends belongs to new subjects.
    *dropped =
        (label.subject <= newest_ && WhyGone(from, label.subject) != nullptr) || Abandoned(label.subject) != nullptr;
    if (*dropped) return std::nullopt;
    Box& box = boxes_[{from, label}];
    if (box.wanted.done != nullptr) {
      std::optional<Wanted> wanted = std::move(box.wanted);
      boxes_.erase({from, label});
      --awaited_;
      return wanted;
    }
    *dropped = box.early.has_value();  // sent twice
    if (!*dropped) box.early = std::move(early);
    return std::nullopt;
  }

  // A subject that this end sends or receives something of.
  void Note(uint64_t subject) { newest_ = std::max(newest_, subject); }
  // Why nothing of the subject goes to a peer or comes from it; null when something may.
  const absl::Status* WhyGone(PeerId peer, uint64_t subject) const {
    auto gone = gone_.find(peer);
    return gone != gone_.end() && subject <= gone->second.until ? &gone->second.why : nullptr;
  }
  // Why nothing can be sent to a peer that is not connected: its disconnection, if there was one.
  absl::Status WhyUnknown(PeerId peer) const {
    if (auto gone = gone_.find(peer); gone != gone_.end()) return gone->second.why;
    return absl::UnavailableError(absl::StrCat("peer ", peer.value(), " was never introduced"));
  }
  void Connected(PeerId peer) { gone_.erase(peer); }
  Ended Disconnected(PeerId peer, const absl::Status& why) {
    return Gone(peer, {why, std::numeric_limits<uint64_t>::max()});
  }
  // Its connection broke: what was begun is over, later subjects may try again.
  Ended Broke(PeerId peer, const absl::Status& why) { return Gone(peer, {why, newest_}); }
  Ended Abandon(uint64_t subject, const absl::Status& why) {
    if (abandoned_.try_emplace(subject, why).second) {
      abandoned_order_.push_back(subject);
      if (abandoned_order_.size() > kRemembered) {
        abandoned_.erase(abandoned_order_.front());
        abandoned_order_.pop_front();
      }
    }
    return EndIf([subject](const Place& place) { return place.second.subject == subject; });
  }
  Ended EndAll() {
    return EndIf([](const Place&) { return true; });
  }

  size_t size() const { return boxes_.size(); }
  // Receives that wait for their parcels.
  size_t awaited() const { return awaited_; }

 private:
  // Parcels of a subject that failed may be on their way for a while; this many failures back they are known.
  static constexpr size_t kRemembered = 1024;

  using Place = std::pair<PeerId, ParcelLabel>;
  struct Box {  // one of both
    Wanted wanted;
    std::optional<Early> early;
  };

  const absl::Status* Abandoned(uint64_t subject) const {
    if (abandoned_.empty()) return nullptr;
    auto it = abandoned_.find(subject);
    return it == abandoned_.end() ? nullptr : &it->second;
  }
  struct Loss {
    absl::Status why;
    uint64_t until = 0;  // subjects up to here are lost
  };
  Ended Gone(PeerId peer, Loss loss) {
    gone_.insert_or_assign(peer, std::move(loss));
    return EndIf([peer](const Place& place) { return place.first == peer; });
  }
  template <typename Condition>
  Ended EndIf(Condition condition) {
    Ended ended;
    absl::erase_if(boxes_, [&](auto& entry) {
      if (!condition(entry.first)) return false;
      if (entry.second.wanted.done != nullptr) {
        ended.receives.push_back(std::move(entry.second.wanted.done));
        --awaited_;
      }
      if (entry.second.early.has_value()) ended.parcels.push_back(*std::move(entry.second.early));
      return true;
    });
    return ended;
  }

  absl::flat_hash_map<Place, Box> boxes_;
  size_t awaited_ = 0;
  absl::flat_hash_map<PeerId, Loss> gone_;
  uint64_t newest_ = 0;                                    // of which this end sent or received anything
  absl::flat_hash_map<uint64_t, absl::Status> abandoned_;  // usually empty
  std::deque<uint64_t> abandoned_order_;
};

}  // namespace gangway::net

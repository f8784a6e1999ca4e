#include "gangway/partition/arrangement.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/mesh/geometry.h"

namespace gangway::partition {
namespace {

using Transfers = std::vector<Transfer>;

// The transfers that bring receiver `k` the elements first .. last-1 of the result, which begin at `from` of a split
// source.
void AddFromShards(int source, const StretchSource& of, int64_t shards, int64_t receiver, int64_t from, int64_t to,
                   int64_t length, Transfers* transfers) {
  const int64_t tile = ShardExtent(of.extent, shards);
  while (length > 0) {
    const int64_t sender = of.mirrored ? (of.extent - 1 - from) / tile : from / tile;
    // Where the sender's shard begins and ends in the order of reading.
    const int64_t begin = of.mirrored ? of.extent - (sender + 1) * tile : sender * tile;
    const int64_t count = std::min(length, begin + tile - from);
    transfers->push_back({source, sender, receiver, from - begin, to, count});
    from += count;
    to += count;
    length -= count;
  }
}

Transfers TransfersOf(const ArrangementPlan& plan, const std::vector<Stretch>& stretches) {
  Transfers transfers;
  const int64_t tile = plan.Tile();
  for (const Stretch& stretch : stretches) {
    if (stretch.begin >= stretch.end) continue;
    const StretchSource& source = plan.sources[stretch.source];
    for (int64_t k = stretch.begin / tile; k <= (stretch.end - 1) / tile; ++k) {
      const int64_t begin = std::max(stretch.begin, k * tile), end = std::min(stretch.end, (k + 1) * tile);
      const int64_t from = stretch.from + begin - stretch.begin, to = begin - k * tile;
      switch (source.kind) {
        case StretchSource::Kind::kSplit:
          AddFromShards(stretch.source, source, plan.shards, k, from, to, end - begin, &transfers);
          break;
        case StretchSource::Kind::kWhole:
          transfers.push_back({stretch.source, k, k, from, to, end - begin});
          break;
        case StretchSource::Kind::kMade:
          transfers.push_back({stretch.source, k, k, to, to, end - begin});
          break;
      }
    }
  }
  return transfers;
}

TransferRound RoundOf(Transfers transfers) {
  TransferRound round;
  for (const Transfer& transfer : transfers) round.length = std::max(round.length, transfer.length);
  round.transfers = std::move(transfers);
  return round;
}

int64_t TotalLength(const std::vector<TransferRound>& rounds) {
  int64_t total = 0;
  for (const TransferRound& round : rounds) total += round.length;
  return total;
}

// One round for every distance between sender and receiver: right for neighbours, whose pieces are alike.
std::vector<TransferRound> ByDistance(const Transfers& transfers) {
  std::map<std::tuple<int, int64_t, int>, Transfers> classes;
  std::map<std::tuple<int, int64_t, int64_t>, int> seen;
  for (const Transfer& t : transfers) {
    const int64_t distance = t.sender - t.receiver;
    classes[{t.source, distance, seen[{t.source, distance, t.receiver}]++}].push_back(t);
  }
  std::vector<TransferRound> rounds;
  for (auto& [key, members] : classes) rounds.push_back(RoundOf(std::move(members)));
  return rounds;
}

// What some device has to send or to receive in any case.
int64_t LeastLength(const Transfers& transfers, int64_t shards) {
  std::vector<int64_t> sent(shards, 0), received(shards, 0);
  int64_t most = 0;
  for (const Transfer& t : transfers) {
    most = std::max({most, sent[t.sender] += t.length, received[t.receiver] += t.length});
  }
  return most;
}

// As few rounds as any device has transfers (König's theorem: a bipartite graph can be coloured with as many colours as
// its largest degree). Where a sender's and a receiver's free colours differ, a path of these two colours is swapped.
class Coloring {
 public:
  explicit Coloring(Transfers transfers) : transfers_(std::move(transfers)) {
    std::stable_sort(transfers_.begin(), transfers_.end(),
                     [](const Transfer& a, const Transfer& b) { return a.length > b.length; });
  }

  std::vector<TransferRound> Run() {
    for (size_t i = 0; i < transfers_.size(); ++i) Color(static_cast<int>(i));
    std::map<int, Transfers> classes;
    for (size_t i = 0; i < transfers_.size(); ++i) classes[colors_[i]].push_back(transfers_[i]);
    std::vector<TransferRound> rounds;
    for (auto& [color, members] : classes) rounds.push_back(RoundOf(std::move(members)));
    return rounds;
  }

 private:
  using End = std::pair<bool, int64_t>;  // receiver or not, shard

  End Sender(int t) const { return {false, transfers_[t].sender}; }
  End Receiver(int t) const { return {true, transfers_[t].receiver}; }
  bool IsFree(const End& end, int color) const {
    auto it = at_.find(end);
    return it == at_.end() || !it->second.contains(color);
  }
  int FirstFree(const End& end) const {
    int color = 0;
    while (!IsFree(end, color)) ++color;
    return color;
  }
  void Put(int t, int color) {
    colors_[t] = color;
    at_[Sender(t)][color] = t;
    at_[Receiver(t)][color] = t;
  }

  void Color(int t) {
    colors_.resize(transfers_.size());
    const int at_sender = FirstFree(Sender(t)), at_receiver = FirstFree(Receiver(t));
    for (int color = 0; color <= std::max(at_sender, at_receiver); ++color) {
      if (IsFree(Sender(t), color) && IsFree(Receiver(t), color)) return Put(t, color);
    }
    Swap(Receiver(t), at_sender, at_receiver);
    Put(t, at_sender);
  }

  // Makes `taken` free at `end`, where `free` is, along the path of both colours that starts there.
  void Swap(End end, int taken, int free) {
    std::vector<int> path;
    for (int color = taken; !IsFree(end, color); color = color == taken ? free : taken) {
      const int t = at_[end][color];
      path.push_back(t);
      end = end == Sender(t) ? Receiver(t) : Sender(t);
    }
    for (int t : path) {
      at_[Sender(t)].erase(colors_[t]);
      at_[Receiver(t)].erase(colors_[t]);
    }
    for (int t : path) Put(t, colors_[t] == taken ? free : taken);
  }

  Transfers transfers_;
  std::vector<int> colors_;
  std::map<End, std::map<int, int>> at_;  // which transfer has a colour
};

// Local ones cost nothing but copies: those that write the same place on every shard together, the others as they fit.
std::vector<TransferRound> LocalRounds(const Transfers& transfers) {
  std::map<std::tuple<int, int64_t, int64_t>, Transfers> alike;
  for (const Transfer& t : transfers) alike[{t.source, t.to, t.length}].push_back(t);
  std::vector<Transfers> uniform, mixed;
  for (const auto& [key, members] : alike) {
    if (members.size() > 1) {
      uniform.push_back(members);
      continue;
    }
    const Transfer& single = members[0];
    auto fits = std::find_if(mixed.begin(), mixed.end(), [&](const Transfers& others) {
      return others[0].source == single.source &&
             std::none_of(others.begin(), others.end(),
                          [&](const Transfer& other) { return other.receiver == single.receiver; });
    });
    if (fits == mixed.end()) fits = mixed.insert(mixed.end(), Transfers{});
    fits->push_back(single);
  }
  std::vector<TransferRound> rounds;
  for (Transfers& members : uniform) rounds.push_back(RoundOf(std::move(members)));
  for (Transfers& members : mixed) rounds.push_back(RoundOf(std::move(members)));
  std::stable_sort(rounds.begin(), rounds.end(),
                   [](const TransferRound& a, const TransferRound& b) { return a.length > b.length; });
  return rounds;
}

}  // namespace

int64_t ArrangementPlan::Tile() const { return std::max<int64_t>(1, ShardExtent(extent, shards)); }
int64_t ArrangementPlan::Rows() const { return TotalLength(remote); }

std::string ArrangementPlan::ToString() const {
  std::string text;
  for (const auto* rounds : {&local, &remote}) {
    for (const TransferRound& round : *rounds) {
      absl::StrAppend(&text, rounds == &local ? "local" : "round", " ", round.length, ":");
      for (const Transfer& t : round.transfers) {
        absl::StrAppend(&text, " ", t.source, "@", t.sender, "[", t.from, "+", t.length, "]->", t.receiver, "[", t.to,
                        "]");
      }
      absl::StrAppend(&text, "\n");
    }
  }
  return text;
}

ArrangementPlan PlanArrangement(int64_t extent, int64_t shards, const std::vector<Stretch>& stretches,
                                std::vector<StretchSource> sources) {
  ArrangementPlan plan{extent, shards, std::move(sources), {}, {}};
  Transfers local, remote;
  for (const Transfer& t : TransfersOf(plan, stretches)) (t.sender == t.receiver ? local : remote).push_back(t);
  plan.local = LocalRounds(local);
  plan.remote = ByDistance(remote);
  if (TotalLength(plan.remote) == LeastLength(remote, shards)) return plan;
  std::vector<TransferRound> fewest = Coloring(remote).Run();
  const auto better = [](const auto& a, const auto& b) {
    return std::pair(TotalLength(a), a.size()) < std::pair(TotalLength(b), b.size());
  };
  if (better(fewest, plan.remote)) plan.remote = std::move(fewest);
  return plan;
}

}  // namespace gangway::partition

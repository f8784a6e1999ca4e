// One dimension put together from stretches of others: what slices, pads, concatenations, reversals and rolls do to a
// split dimension. Every shard receives the elements it needs and no others; who sends to whom is scheduled in rounds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gangway::partition {

// Elements begin .. end-1 of the result are, in order, those of the source from `from` on.
struct Stretch {
  int source = 0;
  int64_t begin = 0, end = 0;
  int64_t from = 0;
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

struct StretchSource {
  enum class Kind : uint8_t {
    kSplit,  // in as many shards as the result
    kWhole,  // every device has all of it
    kMade,   // every device can make what it needs, in place: a fill value, a function of arranged values
  };
  Kind kind = Kind::kWhole;
  int64_t extent = 0;
  bool mirrored = false;  // read backwards: element 0 is the last one
};

// `length` elements from position `from` of the sender's shard (mirrored where the source is) to position `to` of the
// receiver's.
struct Transfer {
  int source = 0;
  int64_t sender = 0, receiver = 0;
  int64_t from = 0, to = 0, length = 0;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

// Transfers at once: no two with one sender or one receiver. All send as much as the longest one.
struct TransferRound {
  std::vector<Transfer> transfers;
  int64_t length = 0;
};

struct ArrangementPlan {
  int64_t extent = 0, shards = 1;
  std::vector<StretchSource> sources;
  std::vector<TransferRound> local, remote;  // in the order in which they are written; local ones have one source each

  int64_t Tile() const;
  int64_t Rows() const;  // elements along the dimension that a device receives
  std::string ToString() const;
};

// Stretches do not overlap; elements of the result outside all of them may hold anything. Pure.
ArrangementPlan PlanArrangement(int64_t extent, int64_t shards, const std::vector<Stretch>& stretches,
                                std::vector<StretchSource> sources);

}  // namespace gangway::partition

// How one array gets from one sharding to another: a list of local steps and collectives, found before anything is
// built.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "gangway/mesh/sharding.h"
#include "gangway/partition/digits.h"
#include "gangway/tensor/shape.h"

namespace gangway::partition {

enum class StepKind : uint8_t {
  kSlice,          // local: keep the part of a digit that is the device's own
  kAllGather,      // digits become local
  kAllToAll,       // digits become local while others, local so far, are split by the same axes
  kPermute,        // the same tiles on other devices
  kExchange,       // all-to-all and permute in one: one permute for each piece of the tile
  kReduceScatter,  // partial sums added up, each device keeping a part
  kAllReduce,      // partial sums added up everywhere
  kMakePartial,    // local: all but the first device of the axes hold the identity
  kSpread,         // local: digits become whole, the identity in all other places: parts become partial sums
  kMove,           // the same tiles on the devices another mesh puts them on: one permute
};
absl::string_view StepName(StepKind kind);

// State before and after, in the digits of the stage.
struct ReshardStep {
  StepKind kind;
  Holders before, after;
  uint32_t unreduced_before = 0, unreduced_after = 0;  // bit per atom
  double bytes = 0;                                    // received per device
};

// Steps over one number system. A plan has a second stage where a dimension's two tilings do not nest: the dimension is
// local in between. Between two meshes stands a stage of one kMove, which has no number system.
struct ReshardStage {
  Sharding from, to;
  DigitView view;
  std::vector<ReshardStep> steps;
};

struct ReshardPlan {
  Shape shape;  // global
  std::vector<ReshardStage> stages;
  double bytes = 0;      // received per device, all steps
  int64_t messages = 0;  // collectives in it

  bool empty() const { return stages.empty(); }
  bool HasSteps() const;
  // Bytes plus a charge per collective, the unit plans are compared in.
  double Cost() const;
  std::string ToString() const;  // "all-to-all dim0->dim1 {'x'} 96; all-gather dim0 {'y'} 128"
};

// A collective costs as much as this many bytes even when it moves next to nothing.
inline constexpr double kBytesPerCollective = 2048;

// Any two shardings of one rank. Fails when an axis is used twice in one of them, the manual axes differ or partial
// results would change their reduction.
absl::StatusOr<ReshardPlan> PlanReshard(const Sharding& from, const Sharding& to, const Shape& shape);

// Remembers plans; one per compilation, one thread.
class ReshardPlanner {
 public:
  // Owned by the planner.
  absl::StatusOr<const ReshardPlan*> Plan(const Sharding& from, const Sharding& to, const Shape& shape);
  // Cost of the plan; a large number when there is none.
  double Cost(const Sharding& from, const Sharding& to, const Shape& shape);

 private:
  struct Key {
    Sharding from, to;  // closed
    Shape shape;        // without layout
  };
  // Most questions are asked again: they find their answer without a copy, whatever openness they come with.
  struct Question {
    Question(const Key& key) : Question(key.from, key.to, key.shape) {}  // NOLINT(google-explicit-constructor)
    Question(const Sharding& from, const Sharding& to, const Shape& shape) : from(from), to(to), shape(shape) {}

    const Sharding& from;
    const Sharding& to;
    const Shape& shape;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const Question& question) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Question& a, const Question& b) const;
  };
  absl::flat_hash_map<Key, std::unique_ptr<ReshardPlan>, Hash, Equal> plans_;
};

}  // namespace gangway::partition

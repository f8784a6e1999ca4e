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
#include "gangway/partition/reshard_search.h"
#include "gangway/partition/reshard_step.h"
#include "gangway/tensor/shape.h"

namespace gangway::partition {

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

// Any two shardings of one rank. Fails when an axis is used twice in one of them, the manual axes differ or partial
// results would change their reduction.
absl::StatusOr<ReshardPlan> PlanReshard(const Sharding& from, const Sharding& to, const Shape& shape,
                                        StepSearch& search);
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
  StepSearch search_;
};

}  // namespace gangway::partition

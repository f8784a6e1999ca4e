// One collective instruction of a per-device program, as the runtime knows it: who exchanges with whom, and how.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace gangway::collective {

enum class Kind { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kPermute, kBroadcast };
enum class Reduction { kSum, kProduct, kMin, kMax, kAnd, kOr, kXor };

absl::string_view KindName(Kind kind);
absl::string_view ReductionName(Reduction reduction);
absl::StatusOr<Reduction> ParseReduction(absl::string_view name);  // "sum", "product", "min", "max", "and", "or", "xor"

// Value, immutable once made; shared by all launches of a program. Participants are partition indices of the launch.
struct Op {
  int64_t key = 0;  // unique among the collective instructions of the program
  Kind kind = Kind::kAllReduce;
  Reduction reduction = Reduction::kSum;  // all-reduce, reduce-scatter
  int64_t dimension = 0;                  // all-gather: grows; reduce-scatter: shrinks; all-to-all: is split
  int64_t concat_dimension = 0;           // all-to-all: where the received pieces are joined

  // Those who rendezvous with each other. For a permute: the connected parts of the graph of its pairs.
  std::vector<std::vector<int>> groups;
  std::vector<int> group_of;   // by participant; -1: takes no part, its results are zeros
  std::vector<int> rank_of;    // by participant: index in its group
  std::vector<int> source_of;  // permute, by participant: whose operand it receives; -1: none, zeros

  std::string ToString() const;
};

// Fills the derived tables. `flat_groups` holds groups of `group_size` one after the other, smaller ones filled up with
// kNobody; `participants` is the number of partitions of the launch. INVALID_ARGUMENT when a participant is out of
// range or named twice, or when groups differ in size although the kind's results depend on it.
inline constexpr int64_t kNobody = -1;
absl::StatusOr<Op> MakeGroupOp(Op op, absl::Span<const int64_t> flat_groups, int64_t group_size, int participants);
// `pairs` holds source, target, source, target, ...
absl::StatusOr<Op> MakePermuteOp(Op op, absl::Span<const int64_t> pairs, int participants);

}  // namespace gangway::collective

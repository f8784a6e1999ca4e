#include "gangway/collective/op.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gangway::collective {
namespace {

constexpr absl::string_view kReductionNames[] = {"sum", "product", "min", "max", "and", "or", "xor"};

absl::Status CheckParticipant(const Op& op, int64_t participant, int participants) {
  if (participant >= 0 && participant < participants) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(op.ToString(), ": partition ", participant, " is not one of ", participants));
}

// Members in ascending order of the connected parts of the undirected graph of the pairs.
std::vector<std::vector<int>> ConnectedParts(absl::Span<const int64_t> pairs, int participants) {
  std::vector<int> root(participants);
  std::iota(root.begin(), root.end(), 0);
  auto find = [&root](int x) {
    while (root[x] != x) x = root[x] = root[root[x]];
    return x;
  };
  std::vector<bool> named(participants, false);
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    named[pairs[i]] = named[pairs[i + 1]] = true;
    root[find(static_cast<int>(pairs[i]))] = find(static_cast<int>(pairs[i + 1]));
  }
  std::vector<std::vector<int>> parts;
  std::vector<int> part_of(participants, -1);
  for (int p = 0; p < participants; ++p) {
    if (!named[p]) continue;
    int& part = part_of[find(p)];
    if (part < 0) {
      part = static_cast<int>(parts.size());
      parts.emplace_back();
    }
    parts[part].push_back(p);
  }
  return parts;
}

void IndexGroups(Op& op, int participants) {
  op.group_of.assign(participants, -1);
  op.rank_of.assign(participants, -1);
  for (size_t g = 0; g < op.groups.size(); ++g) {
    for (size_t r = 0; r < op.groups[g].size(); ++r) {
      op.group_of[op.groups[g][r]] = static_cast<int>(g);
      op.rank_of[op.groups[g][r]] = static_cast<int>(r);
    }
  }
}

}  // namespace

absl::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce:
      return "all-reduce";
    case Kind::kAllGather:
      return "all-gather";
    case Kind::kReduceScatter:
      return "reduce-scatter";
    case Kind::kAllToAll:
      return "all-to-all";
    case Kind::kPermute:
      return "collective-permute";
    case Kind::kBroadcast:
      return "collective-broadcast";
  }
  return "unknown collective";
}

absl::string_view ReductionName(Reduction reduction) { return kReductionNames[static_cast<int>(reduction)]; }

absl::StatusOr<Reduction> ParseReduction(absl::string_view name) {
  for (size_t i = 0; i < std::size(kReductionNames); ++i) {
    if (kReductionNames[i] == name) return static_cast<Reduction>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("reduction \"", name, "\" is none of ", absl::StrJoin(kReductionNames, ", ")));
}

std::string Op::ToString() const { return absl::StrCat(KindName(kind), " (key ", key, ")"); }

absl::StatusOr<Op> MakeGroupOp(Op op, absl::Span<const int64_t> flat_groups, int64_t group_size, int participants) {
  if (group_size <= 0 || flat_groups.size() % group_size != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(op.ToString(), ": ", flat_groups.size(), " partitions do not form groups of ", group_size));
  }
  std::vector<bool> named(participants, false);
  op.groups.clear();
  size_t members = 0;
  for (size_t i = 0; i < flat_groups.size(); ++i) {
    if (i % group_size == 0) op.groups.emplace_back();
    if (flat_groups[i] == kNobody) continue;
    if (absl::Status status = CheckParticipant(op, flat_groups[i], participants); !status.ok()) return status;
    if (named[flat_groups[i]]) {
      return absl::InvalidArgumentError(
          absl::StrCat(op.ToString(), ": partition ", flat_groups[i], " is in two places of the groups"));
    }
    named[flat_groups[i]] = true;
    op.groups.back().push_back(static_cast<int>(flat_groups[i]));
    ++members;
  }
  IndexGroups(op, participants);
  if (op.kind != Kind::kBroadcast && members != static_cast<size_t>(participants)) {
    return absl::InvalidArgumentError(
        absl::StrCat(op.ToString(), ": its groups name ", members, " of ", participants, " partitions"));
  }
  if (op.kind != Kind::kBroadcast && op.kind != Kind::kAllReduce && members != flat_groups.size()) {
    return absl::InvalidArgumentError(absl::StrCat(op.ToString(), ": its groups have different sizes"));
  }
  return op;
}

absl::StatusOr<Op> MakePermuteOp(Op op, absl::Span<const int64_t> pairs, int participants) {
  if (pairs.size() % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(op.ToString(), ": a source has no target"));
  }
  op.source_of.assign(participants, -1);
  for (size_t i = 0; i < pairs.size(); i += 2) {
    for (int64_t participant : {pairs[i], pairs[i + 1]}) {
      if (absl::Status status = CheckParticipant(op, participant, participants); !status.ok()) return status;
    }
    int& source = op.source_of[pairs[i + 1]];
    if (source >= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(op.ToString(), ": partition ", pairs[i + 1], " is the target of two sources"));
    }
    source = static_cast<int>(pairs[i]);
  }
  op.groups = ConnectedParts(pairs, participants);
  IndexGroups(op, participants);
  return op;
}

}  // namespace gangway::collective

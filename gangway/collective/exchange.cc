#include "gangway/collective/exchange.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/base/status.h"
#include "gangway/collective/move.h"
#include "gangway/collective/reduce.h"

namespace gangway::collective {
namespace {

using Dims = absl::InlinedVector<int64_t, 6>;

// Bytes of one source in one step of a reduction: with eight sources all of them stay in a core's own cache.
constexpr int64_t kBlockBytes = 16 << 10;
// Below this a second thread costs more than it saves.
constexpr int64_t kParallelBytes = 256 << 10;

std::string Describe(const Array& array) {
  return absl::StrCat(DTypeName(array.dtype), "[", absl::StrJoin(array.dims, ","), "]");
}

// The result's dimensions that `operand` asks for; an error where the op does not fit it.
absl::StatusOr<Dims> ResultDims(const Op& op, const Array& operand, int64_t group_size) {
  Dims dims = operand.dims;
  const int64_t rank = static_cast<int64_t>(dims.size());
  auto need_dimension = [&](int64_t d) {
    if (d >= 0 && d < rank) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(Describe(operand), " has no dimension ", d));
  };
  auto divide = [&](int64_t d) {
    GW_RETURN_IF_ERROR(need_dimension(d));
    if (dims[d] % group_size != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", d, " of ", Describe(operand), " is not a multiple of ", group_size));
    }
    dims[d] /= group_size;
    return absl::OkStatus();
  };
  auto multiply = [&](int64_t d) {
    GW_RETURN_IF_ERROR(need_dimension(d));
    dims[d] *= group_size;
    return absl::OkStatus();
  };
  switch (op.kind) {
    case Kind::kAllReduce:
    case Kind::kPermute:
    case Kind::kBroadcast:
      break;
    case Kind::kAllGather:
      GW_RETURN_IF_ERROR(multiply(op.dimension));
      break;
    case Kind::kReduceScatter:
      GW_RETURN_IF_ERROR(divide(op.dimension));
      break;
    case Kind::kAllToAll:
      GW_RETURN_IF_ERROR(divide(op.dimension));
      GW_RETURN_IF_ERROR(multiply(op.concat_dimension));
      break;
  }
  return dims;
}

bool Reduces(const Op& op) { return op.kind == Kind::kAllReduce || op.kind == Kind::kReduceScatter; }

absl::Status CheckArray(const Op& op, const Array& first, const Array& operand, const Array& result,
                        int64_t group_size) {
  if (operand.dtype != first.dtype || operand.dims != first.dims) {
    return absl::InvalidArgumentError(absl::StrCat("members bring ", Describe(first), " and ", Describe(operand)));
  }
  if (Reduces(op)) GW_RETURN_IF_ERROR(CheckReduction(operand.dtype, op.reduction));
  GW_ASSIGN_OR_RETURN(Dims dims, ResultDims(op, operand, group_size));
  if (result.dtype != operand.dtype || result.dims != dims) {
    return absl::InvalidArgumentError(absl::StrCat("the result of ", Describe(operand), " in a group of ", group_size,
                                                   " should be [", absl::StrJoin(dims, ","), "], not ",
                                                   Describe(result)));
  }
  return absl::OkStatus();
}

// Contiguous elements, the same in every member, reduced block by block into the results named by `targets`.
struct ReduceRun {
  DType dtype;
  Reduction reduction;
  absl::Span<const void* const> sources;
  int64_t from = 0;  // element in every source
  absl::Span<void* const> targets;
  int64_t to = 0;  // element in every target
  int64_t count = 0;
};

void RunPacked(const ReduceRun& run, int64_t offset, int64_t count) {
  absl::InlinedVector<std::array<char, 1024>, 8> unpacked(run.sources.size());
  absl::InlinedVector<const void*, 8> in;
  for (size_t s = 0; s < run.sources.size(); ++s) {
    Unpack(run.dtype, unpacked[s].data(), run.sources[s], run.from + offset, count);
    in.push_back(unpacked[s].data());
  }
  std::array<char, 1024> out;
  Reduce(run.dtype, run.reduction, out.data(), in, count);
  for (void* target : run.targets) Pack(run.dtype, target, run.to + offset, out.data(), count);
}

void RunReduce(const ReduceRun& run) {
  if (StorageBits(run.dtype) < 8) {
    for (int64_t at = 0; at < run.count; at += 1024) RunPacked(run, at, std::min<int64_t>(1024, run.count - at));
    return;
  }
  const int64_t width = ByteWidth(run.dtype);
  const int64_t block = kBlockBytes / width;
  alignas(64) std::array<char, kBlockBytes> out;
  absl::InlinedVector<const void*, 8> in(run.sources.size());
  for (int64_t at = 0; at < run.count; at += block) {
    const int64_t count = std::min(block, run.count - at);
    for (size_t s = 0; s < in.size(); ++s) {
      in[s] = static_cast<const char*>(run.sources[s]) + (run.from + at) * width;
    }
    // Through a local block, because a target may be one of the sources.
    Reduce(run.dtype, run.reduction, out.data(), in, count);
    for (void* target : run.targets) {
      std::memcpy(static_cast<char*>(target) + (run.to + at) * width, out.data(), count * width);
    }
  }
}

absl::InlinedVector<const void*, 8> Sources(absl::Span<const Member> members, size_t array) {
  absl::InlinedVector<const void*, 8> sources;
  for (const Member& member : members) sources.push_back(member.operands[array].data);
  return sources;
}

void AllReduce(const Op& op, absl::Span<const Member> members, size_t array, int piece, int pieces) {
  const Array& first = members[0].operands[array];
  auto sources = Sources(members, array);
  absl::InlinedVector<void*, 8> targets;
  for (const Member& member : members) targets.push_back(member.results[array].data);
  const int64_t count = ElementCount(first);
  // Whole cache lines per piece.
  const int64_t share = ((count + pieces - 1) / pieces + 63) / 64 * 64;
  const int64_t begin = std::min(count, piece * share), end = std::min(count, begin + share);
  RunReduce({first.dtype, op.reduction, sources, begin, targets, begin, end - begin});
}

void ReduceScatter(const Op& op, absl::Span<const Member> members, size_t array, int piece, int pieces) {
  const Array& first = members[0].operands[array];
  auto sources = Sources(members, array);
  const int64_t group_size = static_cast<int64_t>(members.size());
  int64_t outer = 1;
  for (int64_t d = 0; d < op.dimension; ++d) outer *= first.dims[d];
  if (ElementCount(first) == 0) return;
  const int64_t run = ElementCount(first) / outer / group_size;
  for (int64_t rank = piece; rank < group_size; rank += pieces) {
    void* target = members[rank].results[array].data;
    for (int64_t o = 0; o < outer; ++o) {
      RunReduce({first.dtype, op.reduction, sources, (o * group_size + rank) * run, {&target, 1}, o * run, run});
    }
  }
}

void AllGather(const Op& op, absl::Span<const Member> members, size_t array, int piece, int pieces) {
  const Array& first = members[0].operands[array];
  const Dims from(first.dims.size(), 0);
  for (size_t rank = piece; rank < members.size(); rank += pieces) {
    if (members[rank].results.empty()) continue;
    Dims to(first.dims.size(), 0);
    for (const Member& source : members) {
      CopyBlock(members[rank].results[array], to, source.operands[array], from, first.dims);
      to[op.dimension] += first.dims[op.dimension];
    }
  }
}

void AllToAll(const Op& op, absl::Span<const Member> members, size_t array, int piece, int pieces) {
  const Array& first = members[0].operands[array];
  Dims extent = first.dims;
  extent[op.dimension] /= static_cast<int64_t>(members.size());
  for (size_t rank = piece; rank < members.size(); rank += pieces) {
    Dims from(extent.size(), 0), to(extent.size(), 0);
    from[op.dimension] = static_cast<int64_t>(rank) * extent[op.dimension];
    for (const Member& source : members) {
      CopyBlock(members[rank].results[array], to, source.operands[array], from, extent);
      to[op.concat_dimension] += extent[op.concat_dimension];
    }
  }
}

void CopyWhole(const Array& target, const Array* source) {
  const int64_t bytes = PackedBytes(target.dtype, ElementCount(target));
  if (bytes == 0 || (source != nullptr && source->data == target.data)) return;
  if (source == nullptr) {
    std::memset(target.data, 0, bytes);
  } else {
    std::memcpy(target.data, source->data, bytes);
  }
}

void Permute(const Op& op, int group, absl::Span<const Member> members, size_t array, int piece, int pieces) {
  for (size_t rank = piece; rank < members.size(); rank += pieces) {
    if (members[rank].results.empty()) continue;
    const int source = op.source_of[op.groups[group][rank]];
    CopyWhole(members[rank].results[array], source < 0 ? nullptr : &members[op.rank_of[source]].operands[array]);
  }
}

void Broadcast(absl::Span<const Member> members, size_t array, int piece, int pieces) {
  for (size_t rank = piece; rank < members.size(); rank += pieces) {
    if (members[rank].results.empty()) continue;
    CopyWhole(members[rank].results[array], &members[0].operands[array]);
  }
}

}  // namespace

absl::Status CheckExchange(const Op& op, absl::Span<const Member> members) {
  return CheckMembers(op, members, static_cast<int64_t>(members.size()));
}

absl::Status CheckMembers(const Op& op, absl::Span<const Member> members, int64_t group_size) {
  for (const Member& member : members) {
    if (member.operands.size() != members[0].operands.size() || member.results.size() != member.operands.size()) {
      return absl::InvalidArgumentError(absl::StrCat(op.ToString(), ": members bring ", members[0].operands.size(),
                                                     " and ", member.operands.size(), " operands for ",
                                                     member.results.size(), " results"));
    }
    for (size_t i = 0; i < member.operands.size(); ++i) {
      GW_RETURN_IF_ERROR_WITH(CheckArray(op, members[0].operands[i], member.operands[i], member.results[i], group_size),
                              op.ToString());
    }
  }
  return absl::OkStatus();
}

int ExchangePieces(absl::Span<const Member> members, int threads) {
  int64_t bytes = 0;
  for (const Array& operand : members[0].operands) {
    if (StorageBits(operand.dtype) < 8) return 1;  // two pieces could meet in one byte
    bytes += PackedBytes(operand.dtype, ElementCount(operand)) * static_cast<int64_t>(members.size());
  }
  return static_cast<int>(std::clamp<int64_t>(bytes / kParallelBytes, 1, std::max(threads, 1)));
}

void Exchange(const Op& op, int group, absl::Span<const Member> members, int piece, int pieces) {
  size_t arrays = 0;
  for (const Member& member : members) arrays = std::max(arrays, member.operands.size());
  for (size_t array = 0; array < arrays; ++array) {
    switch (op.kind) {
      case Kind::kAllReduce:
        AllReduce(op, members, array, piece, pieces);
        break;
      case Kind::kReduceScatter:
        ReduceScatter(op, members, array, piece, pieces);
        break;
      case Kind::kAllGather:
        AllGather(op, members, array, piece, pieces);
        break;
      case Kind::kAllToAll:
        AllToAll(op, members, array, piece, pieces);
        break;
      case Kind::kPermute:
        Permute(op, group, members, array, piece, pieces);
        break;
      case Kind::kBroadcast:
        Broadcast(members, array, piece, pieces);
        break;
    }
  }
}

}  // namespace gangway::collective

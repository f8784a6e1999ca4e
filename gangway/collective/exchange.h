// The collectives themselves: pure functions over the memory of all members of a group.
#pragma once

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gangway/collective/array.h"
#include "gangway/collective/op.h"

namespace gangway::collective {

// What one member of a group brings; index = rank. Several operands: the same collective on each of them. A member on
// another worker has copies of its operands where a local one needs them, and no results.
struct Member {
  absl::Span<const Array> operands;
  absl::Span<const Array> results;
};

// INVALID_ARGUMENT, naming the op, when shapes, types or counts do not fit the op or each other.
absl::Status CheckExchange(const Op& op, absl::Span<const Member> members);
// The same for some members of a group of `group_size`.
absl::Status CheckMembers(const Op& op, absl::Span<const Member> members, int64_t group_size);

// Into how many independent pieces the work may be cut when `threads` can share it; 1 when it is not worth it.
int ExchangePieces(absl::Span<const Member> members, int threads);

// Does piece `piece` of `pieces`; all of them, in any order or at the same time, are the collective. `group` is the
// index of the members' group in the op. For all-reduce and broadcast a result may be its own operand's memory.
void Exchange(const Op& op, int group, absl::Span<const Member> members, int piece, int pieces);

}  // namespace gangway::collective

// Shardings in the words of jax.sharding.PartitionSpec: P('data', ('x','y'), None).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/mesh/sharding.h"

namespace gangway::explain {

// Trailing whole dimensions are left out; a part of an axis is 'x':(2)2; partial results and manual axes follow in
// words.
std::string SpecOf(const Sharding& sharding);
// The axes of one dimension as they stand inside a spec: 'x','y'.
std::string AxisNames(const Mesh& mesh, const AxisList& axes);

// Of an array of rank `rank` over `mesh`; dimensions that are not named are whole.
absl::StatusOr<Sharding> ParseSpec(absl::string_view text, MeshRef mesh, int64_t rank);

}  // namespace gangway::explain

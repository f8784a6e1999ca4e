// Boxes of dense row-major arrays: a start and an extent in every dimension.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "gangway/net/message.h"

namespace gangway::worker {

// INVALID_ARGUMENT unless the box lies inside an array of `dims`.
absl::Status CheckBox(const net::Dims& dims, const net::Dims& start, const net::Dims& extent);

// A place in an array that is in memory.
struct BoxPlace {
  const net::Dims& dims;
  const net::Dims& start;
};

// Copies a box from one array to another, elements of `width` bytes. The caller has checked both places.
void CopyBox(const std::byte* from, BoxPlace source, std::byte* to, BoxPlace target, const net::Dims& extent,
             int64_t width);

}  // namespace gangway::worker

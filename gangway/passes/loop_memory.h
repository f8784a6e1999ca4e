// How much more memory programs may hold so that loops communicate less.
#pragma once

#include <cstdint>

namespace gangway::passes {

// Bytes, in one program: what is gathered before loops keeps alive beyond what the loops held anyway, and likewise what
// loops add up on each device alone.
inline constexpr int64_t kMaxGrownBytes = int64_t{256} << 20;

}  // namespace gangway::passes

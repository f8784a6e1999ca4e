// What an array comes to in a few bytes: equal for equal contents, on every machine of one byte order.
#pragma once

#include "absl/strings/string_view.h"
#include "gangway/net/message.h"
#include "gangway/tensor/dtype.h"

namespace gangway::worker {

// Of a dense array. One pass at the speed of memory; no defence against somebody who wants two arrays to collide.
net::Digest DigestOf(absl::string_view bytes, DType dtype);

}  // namespace gangway::worker

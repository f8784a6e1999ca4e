// Dense arrays in memory that collectives read and write.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "gangway/tensor/dtype.h"

namespace gangway::collective {

// Borrowed memory, row-major. Types narrower than a byte are packed, the first element in the low bits of its byte, as
// XLA lays them out.
struct Array {
  DType dtype = DType{};
  absl::InlinedVector<int64_t, 6> dims;
  void* data = nullptr;
};

}  // namespace gangway::collective

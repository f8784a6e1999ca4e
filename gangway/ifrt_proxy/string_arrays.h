// Arrays of strings. Devices and the controller know them as arrays of bytes: a shard is the StringArrayContents that
// clients send and read, so each has a length of its own. They are made, copied, joined, taken apart, read and deleted;
// no program takes them. Pure.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gangway/controller/controller.h"
#include "xla/python/ifrt/array_spec.pb.h"
#include "xla/python/ifrt/dtype.pb.h"

namespace gangway::ifrt_proxy {

bool HoldsStrings(const xla::ifrt::DTypeProto& dtype);

// Of protocol.h, for arrays of strings too: these as if each string were a byte.
absl::StatusOr<DType> ElementType(const xla::ifrt::DTypeProto& dtype);
absl::StatusOr<controller::ArraySpec> MakeElementSpec(const xla::ifrt::ArraySpecProto& spec);

// INVALID_ARGUMENT unless `shard` has as many strings as `dims` has elements.
absl::Status CheckStrings(absl::string_view shard, const DimVector& dims);

// What the controller is told of an array whose elements are strings: `spec`, as made by these two, with shards of that
// many bytes, one for each device.
controller::ArraySpec BytesOfStrings(controller::ArraySpec spec, absl::Span<const int64_t> shard_bytes);

}  // namespace gangway::ifrt_proxy

#include "gangway/ifrt_proxy/string_arrays.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/ifrt_proxy/protocol.h"
#include "xla/python/ifrt_proxy/common/array_util.pb.h"

namespace gangway::ifrt_proxy {

bool HoldsStrings(const xla::ifrt::DTypeProto& dtype) { return dtype.kind() == xla::ifrt::DTypeProto::KIND_STRING; }

absl::StatusOr<DType> ElementType(const xla::ifrt::DTypeProto& dtype) {
  return HoldsStrings(dtype) ? DType::kU8 : FromProto(dtype);
}

absl::StatusOr<controller::ArraySpec> MakeElementSpec(const xla::ifrt::ArraySpecProto& spec) {
  GW_ASSIGN_OR_RETURN(const DType dtype, ElementType(spec.dtype()));
  return MakeArraySpec(dtype, DimVector(spec.shape().dims().begin(), spec.shape().dims().end()), spec.sharding());
}

absl::Status CheckStrings(absl::string_view shard, const DimVector& dims) {
  xla::ifrt::proto::StringArrayContents contents;
  if (shard.size() > std::numeric_limits<int>::max() ||  // no message is that long
      !contents.ParseFromArray(shard.data(), static_cast<int>(shard.size()))) {
    return absl::InvalidArgumentError(absl::StrCat(shard.size(), " bytes that are no strings"));
  }
  const int64_t wanted = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  if (contents.strings_size() == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(contents.strings_size(), " strings for ", wanted, " elements"));
}

controller::ArraySpec BytesOfStrings(controller::ArraySpec spec, absl::Span<const int64_t> shard_bytes) {
  const bool replicated = std::all_of(spec.shard_dims.begin(), spec.shard_dims.end(),
                                      [&](const DimVector& shard) { return shard == spec.dims; });
  spec.dtype = DType::kU8;
  spec.holds_strings = true;
  spec.sharding.reset();  // it is said of elements
  spec.shard_dims.clear();
  for (int64_t bytes : shard_bytes) spec.shard_dims.push_back({bytes});
  spec.dims = {replicated ? shard_bytes[0] : std::accumulate(shard_bytes.begin(), shard_bytes.end(), int64_t{0})};
  return spec;
}

}  // namespace gangway::ifrt_proxy

#include "gangway/ifrt_proxy/string_arrays.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/ifrt_proxy/protocol.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "xla/python/ifrt_proxy/common/array_util.pb.h"

namespace gangway::ifrt_proxy {

namespace {

// How many strings a StringArrayContents holds, none where it is not one. They are counted where they are: as strings
// of their own empty ones would take twenty times the bytes that a client sends for them.
std::optional<int64_t> StringsIn(absl::string_view message) {
  using Contents = xla::ifrt::proto::StringArrayContents;
  using google::protobuf::internal::WireFormatLite;
  constexpr uint32_t kString = Contents::kStringsFieldNumber << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  if (message.size() > std::numeric_limits<int>::max()) return std::nullopt;  // no message is that long
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()),
                                            static_cast<int>(message.size()));
  int64_t count = 0;
  while (const uint32_t tag = in.ReadTag()) {
    count += tag == kString ? 1 : 0;
    if (!WireFormatLite::SkipField(&in, tag)) return std::nullopt;
  }
  if (!in.ConsumedEntireMessage()) return std::nullopt;
  return count;
}

}  // namespace

bool HoldsStrings(const xla::ifrt::DTypeProto& dtype) { return dtype.kind() == xla::ifrt::DTypeProto::KIND_STRING; }

absl::StatusOr<DType> ElementType(const xla::ifrt::DTypeProto& dtype) {
  return HoldsStrings(dtype) ? DType::kU8 : FromProto(dtype);
}

absl::StatusOr<controller::ArraySpec> MakeElementSpec(const xla::ifrt::ArraySpecProto& spec) {
  GW_ASSIGN_OR_RETURN(const DType dtype, ElementType(spec.dtype()));
  return MakeArraySpec(dtype, DimVector(spec.shape().dims().begin(), spec.shape().dims().end()), spec.sharding());
}

absl::Status CheckStrings(absl::string_view shard, const DimVector& dims) {
  const std::optional<int64_t> strings = StringsIn(shard);
  if (!strings.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(shard.size(), " bytes that are no strings"));
  }
  const int64_t wanted = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  if (*strings == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(*strings, " strings for ", wanted, " elements"));
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

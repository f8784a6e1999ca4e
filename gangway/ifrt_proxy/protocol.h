// Conversions between the IFRT protocol's messages and our values. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gangway/controller/controller.h"
#include "gangway/mesh/hlo_sharding.h"
#include "gangway/mesh/sharding.h"
#include "gangway/tensor/dtype.h"
#include "grpcpp/support/status.h"
#include "xla/python/ifrt/array_spec.pb.h"
#include "xla/python/ifrt/dtype.pb.h"
#include "xla/python/ifrt/sharding.pb.h"
#include "xla/python/ifrt_proxy/common/ifrt_service.pb.h"
#include "xla/tsl/protobuf/status.pb.h"
#include "xla/xla_data.pb.h"

namespace gangway::ifrt_proxy {

// What clients are told we are.
inline constexpr char kPlatformVersion[] = "gangway 0.1";

// Protocol versions spoken (IfrtProxyVersion::protocol_version) and serialization versions inside them.
inline constexpr int kMinProtocolVersion = 16;
inline constexpr int kMaxProtocolVersion = 25;
inline constexpr int kMinSerdesVersion = 1;
inline constexpr int kMaxSerdesVersion = 6;

// The newest version inside both ranges; FAILED_PRECONDITION naming both ranges when there is none.
absl::StatusOr<xla::ifrt::proxy::IfrtProxyVersion> NegotiateVersion(
    const xla::ifrt::proxy::IfrtProxyVersion& client_min, const xla::ifrt::proxy::IfrtProxyVersion& client_max);

tensorflow::StatusProto ToProto(const absl::Status& status);
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromProto(const tensorflow::StatusProto& status);

// kInvalid-free: string, opaque and unknown kinds are errors that name the kind.
absl::StatusOr<DType> FromProto(const xla::ifrt::DTypeProto& dtype);
xla::ifrt::DTypeProto ToProto(DType dtype);

// HLO sharding of one array.
xla::OpSharding ToProto(const Sharding& sharding);

// Devices, shard shapes and memory kind of an array of `dims` under a client's serialized sharding.
absl::StatusOr<controller::ArraySpec> MakeArraySpec(DType dtype, DimVector dims,
                                                    const xla::ifrt::ShardingProto& sharding);
absl::StatusOr<controller::ArraySpec> MakeArraySpec(const xla::ifrt::ArraySpecProto& spec);

// The serialized sharding a client is told for an array of ours: single-device for one device, HLO sharding otherwise.
xla::ifrt::ShardingProto ShardingOf(const controller::ArraySpec& spec);

// Dense row-major bytes of an array of `element_bytes` elements laid out with `strides` (bytes) in `bytes`, and back.
// Negative strides and strides that leave the buffer are errors. RESOURCE_EXHAUSTED where more than `most` bytes come
// of it: a client says shape and strides, and has sent next to nothing.
absl::StatusOr<std::string> MakeDense(absl::string_view bytes, const DimVector& dims, int64_t element_bytes,
                                      const std::vector<int64_t>& strides, int64_t most);
absl::StatusOr<std::string> MakeStrided(absl::string_view dense, const DimVector& dims, int64_t element_bytes,
                                        const std::vector<int64_t>& strides, int64_t most);

}  // namespace gangway::ifrt_proxy

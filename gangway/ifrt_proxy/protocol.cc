#include "gangway/ifrt_proxy/protocol.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/mesh/proto/tile_assignment.h"
#include "xla/python/ifrt/sharding_serdes.pb.h"
#include "xla/python/pjrt_ifrt/xla_sharding.pb.h"

namespace gangway::ifrt_proxy {
namespace {

using controller::ArraySpec;
using controller::DeviceId;
using xla::ifrt::DTypeProto;
using xla::ifrt::proxy::IfrtProxyVersion;

// Kinds whose numbers differ from those of XLA's PrimitiveType.
struct KindPair {
  DTypeProto::Kind kind;
  DType dtype;
};
constexpr KindPair kDiffering[] = {
    {DTypeProto::KIND_S1, DType::kS1},
    {DTypeProto::KIND_U1, DType::kU1},
    {DTypeProto::KIND_F8E8M0FNU, DType::kF8E8M0FNU},
    {DTypeProto::KIND_F4E2M1FN, DType::kF4E2M1FN},
    {DTypeProto::KIND_F6E2M3FN, DType::kF6E2M3FN},
    {DTypeProto::KIND_F6E3M2FN, DType::kF6E3M2FN},
};

template <typename Message>
absl::StatusOr<Message> ParseAs(const xla::ifrt::Serialized& serialized) {
  Message message;
  if (!message.ParseFromString(serialized.data())) {
    return absl::InvalidArgumentError(absl::StrCat("malformed ", serialized.type_name()));
  }
  return message;
}

std::vector<DeviceId> Devices(const xla::ifrt::DeviceListProto& list) {
  std::vector<DeviceId> devices;
  for (int32_t id : list.device_ids()) devices.push_back(DeviceId(id));
  return devices;
}

DimVector Dims(const xla::ifrt::ShapeProto& shape) { return DimVector(shape.dims().begin(), shape.dims().end()); }

template <typename Message>
std::string MemoryKind(const Message& message) {
  return message.has_memory_kind() ? message.memory_kind() : "";
}

// The per-device shape under a tile assignment: each tensor dimension divided by its tiles, rounded up.
absl::StatusOr<DimVector> ShardDims(const DimVector& dims, const TileAssignment& tiles) {
  if (tiles.kind != TileAssignment::Kind::kTiled) return dims;
  if (tiles.dims.size() < dims.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("sharding ", tiles.ToString(), " has fewer dimensions than the array, ", dims.size()));
  }
  DimVector shard = dims;
  for (size_t i = 0; i < dims.size(); ++i) shard[i] = ShardExtent(dims[i], tiles.dims[i]);
  return shard;
}

absl::Status FillFromHlo(const xla::ifrt::HloShardingProto& proto, ArraySpec* spec) {
  GW_ASSIGN_OR_RETURN(TileAssignment tiles, ReadTileAssignment(proto.xla_op_sharding()));
  spec->devices = Devices(proto.devices());
  spec->memory_kind = MemoryKind(proto);
  GW_ASSIGN_OR_RETURN(DimVector shard, ShardDims(spec->dims, tiles));
  spec->shard_dims = {std::move(shard)};
  const auto devices = static_cast<int64_t>(spec->devices.size());
  auto sharding = FromTileAssignment(tiles, static_cast<int64_t>(spec->dims.size()), devices, nullptr);
  if (sharding.ok()) spec->sharding = *std::move(sharding);  // otherwise it is none that has axes
  return absl::OkStatus();
}

absl::Status FillFromConcrete(const xla::ifrt::ConcreteShardingProto& proto, ArraySpec* spec) {
  spec->devices = Devices(proto.devices());
  spec->memory_kind = MemoryKind(proto);
  for (const auto& shape : proto.shard_shapes()) spec->shard_dims.push_back(Dims(shape));
  if (spec->shard_dims.size() != spec->devices.size()) {
    return absl::UnimplementedError("concrete sharding with dynamic or missing shard shapes");
  }
  return absl::OkStatus();
}

absl::Status Fill(const xla::ifrt::Serialized& serialized, ArraySpec* spec) {
  const std::string& type = serialized.type_name();
  if (type == "xla::ifrt::HloSharding") {
    GW_ASSIGN_OR_RETURN(auto proto, ParseAs<xla::ifrt::HloShardingProto>(serialized));
    return FillFromHlo(proto, spec);
  }
  if (type == "xla::ifrt::SingleDeviceSharding") {
    GW_ASSIGN_OR_RETURN(auto proto, ParseAs<xla::ifrt::SingleDeviceShardingProto>(serialized));
    spec->devices = {DeviceId(proto.device_id())};
    spec->shard_dims = {spec->dims};
    spec->memory_kind = MemoryKind(proto);
    return absl::OkStatus();
  }
  if (type == "xla::ifrt::ConcreteEvenSharding") {
    GW_ASSIGN_OR_RETURN(auto proto, ParseAs<xla::ifrt::ConcreteEvenShardingProto>(serialized));
    spec->devices = Devices(proto.devices());
    spec->shard_dims = {Dims(proto.shard_shape())};
    spec->memory_kind = MemoryKind(proto);
    return absl::OkStatus();
  }
  if (type == "xla::ifrt::ConcreteSharding") {
    GW_ASSIGN_OR_RETURN(auto proto, ParseAs<xla::ifrt::ConcreteShardingProto>(serialized));
    return FillFromConcrete(proto, spec);
  }
  if (type == "xla::ifrt::OpaqueSharding") {
    GW_ASSIGN_OR_RETURN(auto proto, ParseAs<xla::ifrt::OpaqueShardingProto>(serialized));
    spec->devices = Devices(proto.devices());
    spec->memory_kind = MemoryKind(proto);
    if (spec->devices.size() != 1) return absl::UnimplementedError("opaque sharding over several devices");
    spec->shard_dims = {spec->dims};
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat("sharding of type '", type, "'"));
}

// Walks all elements: `dense` counts up by element_bytes, `strided` follows the strides.
template <typename Visit>
void ForEachElement(const DimVector& dims, const std::vector<int64_t>& strides, int64_t element_bytes, Visit visit) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  DimVector index(dims.size(), 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    visit(i * element_bytes, offset);
    for (int64_t d = static_cast<int64_t>(dims.size()) - 1; d >= 0; --d) {
      offset += strides[d];
      if (++index[d] < dims[d]) break;
      offset -= strides[d] * dims[d];
      index[d] = 0;
    }
  }
}

// Bytes from the first to the end of the last element.
absl::StatusOr<int64_t> StridedSpan(const DimVector& dims, int64_t element_bytes, const std::vector<int64_t>& strides) {
  if (strides.size() != dims.size()) {
    return absl::InvalidArgumentError(absl::StrCat(strides.size(), " byte strides for an array of rank ", dims.size()));
  }
  int64_t span = element_bytes;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) return 0;
    int64_t step;
    if (strides[i] < 0 || __builtin_mul_overflow(dims[i] - 1, strides[i], &step) ||
        __builtin_add_overflow(span, step, &span)) {
      return absl::InvalidArgumentError(
          absl::StrCat("byte stride ", strides[i], " of dimension ", i, " is not supported"));
    }
  }
  return span;
}

absl::Status CheckSize(int64_t bytes, int64_t most) {
  if (bytes <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a host buffer of ", bytes, " bytes; a session has ", most));
}

}  // namespace

absl::StatusOr<IfrtProxyVersion> NegotiateVersion(const IfrtProxyVersion& client_min,
                                                  const IfrtProxyVersion& client_max) {
  IfrtProxyVersion version;
  version.set_protocol_version(std::min(client_max.protocol_version(), kMaxProtocolVersion));
  version.set_ifrt_serdes_version_number(std::min(client_max.ifrt_serdes_version_number(), kMaxSerdesVersion));
  bool ok =
      version.protocol_version() >= std::max(client_min.protocol_version(), kMinProtocolVersion) &&
      version.ifrt_serdes_version_number() >= std::max(client_min.ifrt_serdes_version_number(), kMinSerdesVersion);
  if (!ok) {
    return absl::FailedPreconditionError(
        absl::StrCat("no common IFRT proxy version: the client speaks protocol ", client_min.protocol_version(), "..",
                     client_max.protocol_version(), " with serialization ", client_min.ifrt_serdes_version_number(),
                     "..", client_max.ifrt_serdes_version_number(), ", gangway protocol ", kMinProtocolVersion, "..",
                     kMaxProtocolVersion, " with serialization ", kMinSerdesVersion, "..", kMaxSerdesVersion));
  }
  return version;
}

tensorflow::StatusProto ToProto(const absl::Status& status) {
  tensorflow::StatusProto proto;
  proto.set_code(static_cast<tensorflow::error::Code>(status.code()));
  proto.set_message(std::string(status.message()));
  return proto;
}

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

absl::Status FromProto(const tensorflow::StatusProto& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.code()), status.message());
}

absl::StatusOr<DType> FromProto(const DTypeProto& dtype) {
  if (dtype.kind() == DTypeProto::KIND_STRING) {
    return absl::UnimplementedError(
        "arrays of strings are made, copied whole, joined, taken apart and read, and nothing else");
  }
  for (const KindPair& pair : kDiffering) {
    if (pair.kind == dtype.kind()) return pair.dtype;
  }
  DType same = static_cast<DType>(dtype.kind());
  bool known = InfoOf(same).dtype == same && (IsElement(same) || same == DType::kToken);
  for (const KindPair& pair : kDiffering) known &= pair.dtype != same;
  if (!known)
    return absl::UnimplementedError(absl::StrCat("arrays of element type ", DTypeProto::Kind_Name(dtype.kind())));
  return same;
}

DTypeProto ToProto(DType dtype) {
  DTypeProto proto;
  proto.set_kind(static_cast<DTypeProto::Kind>(dtype));
  for (const KindPair& pair : kDiffering) {
    if (pair.dtype == dtype) proto.set_kind(pair.kind);
  }
  return proto;
}

xla::OpSharding ToProto(const Sharding& sharding) {
  xla::OpSharding proto;
  WriteTileAssignment(ToTileAssignment(sharding), &proto);
  return proto;
}

absl::StatusOr<ArraySpec> MakeArraySpec(DType dtype, DimVector dims, const xla::ifrt::ShardingProto& sharding) {
  GW_RETURN_IF_ERROR(ValidateShape(Shape(dtype, dims)));
  ArraySpec spec;
  spec.dtype = dtype;
  spec.dims = std::move(dims);
  GW_RETURN_IF_ERROR_WITH(Fill(sharding.serialized_sharding(), &spec), "sharding");
  if (spec.devices.empty()) return absl::InvalidArgumentError("sharding without devices");
  return spec;
}

absl::StatusOr<ArraySpec> MakeArraySpec(const xla::ifrt::ArraySpecProto& spec) {
  GW_ASSIGN_OR_RETURN(DType dtype, FromProto(spec.dtype()));
  return MakeArraySpec(dtype, Dims(spec.shape()), spec.sharding());
}

xla::ifrt::ShardingProto ShardingOf(const ArraySpec& spec) {
  xla::ifrt::ShardingProto result;
  xla::ifrt::Serialized& serialized = *result.mutable_serialized_sharding();
  if (spec.devices.size() == 1) {
    xla::ifrt::SingleDeviceShardingProto proto;
    proto.set_device_id(spec.devices[0].value());
    if (!spec.memory_kind.empty()) proto.set_memory_kind(spec.memory_kind);
    serialized.set_type_name("xla::ifrt::SingleDeviceSharding");
    serialized.set_data(proto.SerializeAsString());
    return result;
  }
  xla::ifrt::HloShardingProto proto;
  for (DeviceId device : spec.devices) proto.mutable_devices()->add_device_ids(device.value());
  if (!spec.memory_kind.empty()) proto.set_memory_kind(spec.memory_kind);
  if (spec.sharding.has_value()) {
    *proto.mutable_xla_op_sharding() = ToProto(*spec.sharding);
  } else {
    proto.mutable_xla_op_sharding()->set_type(xla::OpSharding::REPLICATED);
  }
  serialized.set_type_name("xla::ifrt::HloSharding");
  serialized.set_data(proto.SerializeAsString());
  return result;
}

absl::StatusOr<std::string> MakeDense(absl::string_view bytes, const DimVector& dims, int64_t element_bytes,
                                      const std::vector<int64_t>& strides, int64_t most) {
  GW_ASSIGN_OR_RETURN(int64_t span, StridedSpan(dims, element_bytes, strides));
  if (span > static_cast<int64_t>(bytes.size())) {
    return absl::InvalidArgumentError(absl::StrCat("strided buffer needs ", span, " bytes, got ", bytes.size()));
  }
  int64_t size = element_bytes;
  for (int64_t dim : dims) size *= dim;
  GW_RETURN_IF_ERROR(CheckSize(size, most));
  std::string dense(size, '\0');
  ForEachElement(dims, strides, element_bytes,
                 [&](int64_t to, int64_t from) { std::copy_n(bytes.data() + from, element_bytes, dense.data() + to); });
  return dense;
}

absl::StatusOr<std::string> MakeStrided(absl::string_view dense, const DimVector& dims, int64_t element_bytes,
                                        const std::vector<int64_t>& strides, int64_t most) {
  GW_ASSIGN_OR_RETURN(int64_t span, StridedSpan(dims, element_bytes, strides));
  // A client that asks for strides owns a buffer of that size; a factor bounds what a hostile one can make us allocate.
  if (span > 64 * static_cast<int64_t>(dense.size()) + 4096) {
    return absl::InvalidArgumentError(absl::StrCat("strides spread ", dense.size(), " bytes over ", span));
  }
  GW_RETURN_IF_ERROR(CheckSize(span, most));
  std::string strided(span, '\0');
  ForEachElement(dims, strides, element_bytes, [&](int64_t from, int64_t to) {
    std::copy_n(dense.data() + from, element_bytes, strided.data() + to);
  });
  return strided;
}

}  // namespace gangway::ifrt_proxy

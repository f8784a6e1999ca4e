// Shardings, meshes and metadata as protos.
#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/hlo/proto_values.h"
#include "gangway/hlo/text_attributes.h"
#include "gangway/mesh/hlo_sharding.h"
#include "gangway/mesh/proto/tile_assignment.h"

namespace gangway::hlo {
namespace {

using xla::OpSharding;

constexpr int64_t kMaxDevices = int64_t{1} << 24;

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(absl::StrCat("sharding: ", what)); }

bool HasUserNames(const Mesh& mesh) {
  return std::any_of(mesh.axes().begin(), mesh.axes().end(),
                     [](const MeshAxis& axis) { return !absl::StartsWith(axis.name, "_"); });
}

std::optional<xla::NamedShardingProto::ReductionOpProto> ReductionProto(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return xla::NamedShardingProto::SUM;
    case Reduction::kMax:
      return xla::NamedShardingProto::MAX;
    case Reduction::kMin:
      return xla::NamedShardingProto::MIN;
    default:
      return std::nullopt;
  }
}

void WriteNamed(const Sharding& sharding, xla::NamedShardingProto* proto) {
  const Mesh& mesh = *sharding.mesh;
  WriteMesh(mesh, proto->mutable_mesh());
  for (const DimSharding& dim : sharding.dims) {
    auto* added = proto->add_dim_shardings();
    WriteAxes(mesh, dim.axes, added->mutable_axes());
    added->set_is_closed(!dim.open);
  }
  WriteAxes(mesh, sharding.replicated, proto->mutable_replicated_axes());
  WriteAxes(mesh, sharding.unreduced, proto->mutable_unreduced_axes());
  WriteAxes(mesh, sharding.manual, proto->mutable_manual_axes());
  if (auto reduction = ReductionProto(sharding.reduction)) proto->set_reduction_op(*reduction);
}

absl::StatusOr<Sharding> ReadNamed(const xla::NamedShardingProto& proto, const Shape& shape, const MeshRef& known) {
  Sharding sharding;
  GW_ASSIGN_OR_RETURN(sharding.mesh, ReadMesh(proto.mesh()));
  if (known != nullptr && *known == *sharding.mesh) sharding.mesh = known;
  const Mesh& mesh = *sharding.mesh;
  if (mesh.IsMaximal()) return Sharding::Maximal(mesh.device_ids()[0], shape.rank());
  for (const auto& dim : proto.dim_shardings()) {
    DimSharding& added = sharding.dims.emplace_back();
    GW_ASSIGN_OR_RETURN(added.axes, ReadAxes(mesh, dim.axes()));
    added.open = !dim.is_closed();
  }
  GW_ASSIGN_OR_RETURN(sharding.replicated, ReadAxes(mesh, proto.replicated_axes()));
  GW_ASSIGN_OR_RETURN(sharding.unreduced, ReadAxes(mesh, proto.unreduced_axes()));
  GW_ASSIGN_OR_RETURN(sharding.manual, ReadAxes(mesh, proto.manual_axes()));
  for (Reduction reduction : {Reduction::kSum, Reduction::kMax, Reduction::kMin}) {
    if (ReductionProto(reduction) == proto.reduction_op()) sharding.reduction = reduction;
  }
  GW_RETURN_IF_ERROR(ValidateSharding(sharding, shape));
  return sharding;
}

absl::StatusOr<Sharding> ReadSharding(const OpSharding& proto, const Shape& shape, int64_t num_devices,
                                      const MeshRef& mesh) {
  if (proto.has_named_sharding()) return ReadNamed(proto.named_sharding(), shape, mesh);
  GW_ASSIGN_OR_RETURN(TileAssignment tiles, ReadTileAssignment(proto));
  return FromTileAssignment(tiles, shape.rank(), num_devices, mesh);
}

}  // namespace

void WriteMesh(const Mesh& mesh, xla::MeshProto* proto) {
  for (const MeshAxis& axis : mesh.axes()) {
    auto* added = proto->add_axes();
    added->set_name(axis.name);
    added->set_size(axis.size);
  }
  AddAll(mesh.device_ids(), proto->mutable_device_ids());
}

absl::StatusOr<MeshRef> ReadMesh(const xla::MeshProto& proto) {
  std::vector<MeshAxis> axes;
  for (const auto& axis : proto.axes()) axes.push_back({axis.name(), axis.size()});
  std::vector<int64_t> device_ids = ToDims(proto.device_ids());
  if (axes.empty() && device_ids.size() == 1) return std::make_shared<const Mesh>(Mesh::Maximal(device_ids[0]));
  if (proto.has_iota_transform()) {
    // The order of the devices is a transposed iota, as in tile assignments.
    TileAssignment order;
    order.kind = TileAssignment::Kind::kTiled;
    order.iota_reshape = ToDims(proto.iota_transform().reshape_dims());
    for (int64_t dim : proto.iota_transform().transpose_perm()) {
      if (dim < 0 || dim >= static_cast<int64_t>(order.iota_reshape.size())) return Wrong("mesh order");
      order.iota_transpose.push_back(static_cast<int>(dim));
    }
    if (order.iota_transpose.empty()) {
      for (size_t i = 0; i < order.iota_reshape.size(); ++i) order.iota_transpose.push_back(static_cast<int>(i));
    }
    device_ids = order.DeviceList();
    if (device_ids.empty()) return Wrong("mesh order");
  }
  GW_ASSIGN_OR_RETURN(Mesh mesh, Mesh::Make(std::move(axes), std::move(device_ids)));
  return std::make_shared<const Mesh>(std::move(mesh));
}

void WriteAxes(const Mesh& mesh, const AxisList& axes, google::protobuf::RepeatedPtrField<xla::AxisRefProto>* proto) {
  for (const AxisRef& axis : axes) {
    xla::AxisRefProto* added = proto->Add();
    added->set_mesh_axis_index(axis.axis);
    if (IsFullAxis(mesh, axis)) continue;
    added->mutable_sub_axis_info()->set_pre_size(axis.pre);
    added->mutable_sub_axis_info()->set_size(axis.size);
  }
}

absl::StatusOr<AxisList> ReadAxes(const Mesh& mesh,
                                  const google::protobuf::RepeatedPtrField<xla::AxisRefProto>& proto) {
  AxisList axes;
  for (const xla::AxisRefProto& entry : proto) {
    if (entry.mesh_axis_index() < 0 || entry.mesh_axis_index() >= mesh.rank()) return Wrong("an axis the mesh lacks");
    AxisRef axis = FullAxis(mesh, static_cast<int>(entry.mesh_axis_index()));
    if (entry.has_sub_axis_info()) {
      const int64_t whole = axis.size;
      axis.pre = entry.sub_axis_info().pre_size();
      axis.size = entry.sub_axis_info().size();
      if (axis.pre < 1 || axis.size < 1 || axis.pre > whole || axis.size > whole ||
          whole % (axis.pre * axis.size) != 0) {
        return Wrong("a sub-axis that does not divide its axis");
      }
    }
    if (Overlaps(axes, axis)) return Wrong("an axis named twice");
    axes.push_back(axis);
  }
  return axes;
}

void WriteShardings(const Shardings& shardings, bool is_tuple, OpSharding* proto) {
  if (is_tuple) proto->set_type(OpSharding::TUPLE);
  for (const Sharding& sharding : shardings) {
    OpSharding* one = is_tuple ? proto->add_tuple_shardings() : proto;
    if (HasUserNames(*sharding.mesh) && ReductionProto(sharding.reduction).has_value()) {
      WriteNamed(sharding, one->mutable_named_sharding());
    } else {
      WriteTileAssignment(ToTileAssignment(sharding), one);
    }
  }
}

absl::StatusOr<Shardings> ReadShardings(const OpSharding& proto, const Shape& shape, int64_t num_devices,
                                        MeshRef mesh) {
  const std::vector<Shape> leaves = Leaves(shape);
  Shardings shardings;
  if (proto.type() != OpSharding::TUPLE) {  // one for every leaf
    for (const Shape& leaf : leaves) {
      GW_ASSIGN_OR_RETURN(Sharding sharding, ReadSharding(proto, leaf, num_devices, mesh));
      shardings.push_back(std::move(sharding));
    }
    return shardings;
  }
  // XLA gives an empty tuple one sharding.
  if (leaves.empty()) return shardings;
  if (static_cast<size_t>(proto.tuple_shardings_size()) != leaves.size()) {
    return Wrong(absl::StrCat(proto.tuple_shardings_size(), " of them for ", leaves.size(), " leaves"));
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    GW_ASSIGN_OR_RETURN(Sharding sharding,
                        ReadSharding(proto.tuple_shardings(static_cast<int>(i)), leaves[i], num_devices, mesh));
    shardings.push_back(std::move(sharding));
  }
  return shardings;
}

int64_t DevicesOf(const OpSharding& proto) {
  int64_t devices = 1;
  for (int64_t dim : proto.tile_assignment_dimensions()) {
    devices = std::clamp<int64_t>(devices * std::clamp<int64_t>(dim, 1, kMaxDevices), 1, kMaxDevices);
  }
  for (const OpSharding& leaf : proto.tuple_shardings()) devices = std::max(devices, DevicesOf(leaf));
  return devices;
}

void WriteMetadata(const OpMetadata& metadata, xla::OpMetadata* proto) {
  proto->set_op_type(metadata.op_type);
  proto->set_op_name(metadata.op_name);
  proto->set_source_file(metadata.source_file);
  proto->set_source_line(metadata.source_line);
  proto->set_stack_frame_id(metadata.stack_frame_id);
  // `rest` is `key=value key="value"` of the text form; keys with a field are carried over.
  TextLexer lexer(metadata.rest);
  while (!lexer.AtEnd()) {
    absl::StatusOr<absl::string_view> key = lexer.Name();
    if (!key.ok() || !lexer.Consume("=")) return;
    if (lexer.Peek() == '"') {
      absl::StatusOr<std::string> value = lexer.String();
      if (!value.ok()) return;
      if (*key == "deduplicated_name") proto->set_deduplicated_name(*value);
      if (*key == "scheduling_name") proto->set_scheduling_name(*value);
      continue;
    }
    int32_t value = 0;
    if (!absl::SimpleAtoi(lexer.RawWord(), &value)) continue;
    if (*key == "source_end_line") proto->set_source_end_line(value);
    if (*key == "source_column") proto->set_source_column(value);
    if (*key == "source_end_column") proto->set_source_end_column(value);
  }
}

OpMetadata ReadMetadata(const xla::OpMetadata& proto) {
  OpMetadata metadata;
  metadata.op_type = proto.op_type();
  metadata.op_name = proto.op_name();
  metadata.source_file = proto.source_file();
  metadata.source_line = std::max(proto.source_line(), 0);
  metadata.stack_frame_id = std::max(proto.stack_frame_id(), 0);
  auto add = [&](absl::string_view key, absl::string_view value) {
    absl::StrAppend(&metadata.rest, metadata.rest.empty() ? "" : " ", key, "=", value);
  };
  if (proto.source_end_line() != 0) add("source_end_line", absl::StrCat(proto.source_end_line()));
  if (proto.source_column() != 0) add("source_column", absl::StrCat(proto.source_column()));
  if (proto.source_end_column() != 0) add("source_end_column", absl::StrCat(proto.source_end_column()));
  auto add_quoted = [&](absl::string_view key, absl::string_view value) {
    if (!value.empty()) add(key, absl::StrCat("\"", absl::CEscape(value), "\""));
  };
  add_quoted("deduplicated_name", proto.deduplicated_name());
  add_quoted("scheduling_name", proto.scheduling_name());
  return metadata;
}

}  // namespace gangway::hlo

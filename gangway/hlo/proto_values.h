// Shapes, literals, shardings and metadata as protos, both ways. Internal to hlo/: proto types end here.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "gangway/hlo/instruction.h"
#include "gangway/mesh/sharding.h"
#include "gangway/tensor/literal.h"
#include "gangway/tensor/shape.h"
#include "xla/service/hlo.pb.h"

namespace gangway::hlo {

template <typename Repeated, typename Values>
void AddAll(const Values& values, Repeated* repeated) {
  for (const auto& value : values) repeated->Add(value);
}
inline DimVector ToDims(const google::protobuf::RepeatedField<int64_t>& values) {
  return DimVector(values.begin(), values.end());
}

// Arrays without a layout get the row-major one: XLA wants one everywhere.
void WriteShape(const Shape& shape, xla::ShapeProto* proto);
absl::StatusOr<Shape> ReadShape(const xla::ShapeProto& proto);  // validated

void WriteLiteral(const Literal& literal, xla::LiteralProto* proto);
// The data must have exactly the elements of the shape.
absl::StatusOr<Literal> ReadLiteral(const xla::LiteralProto& proto);

void WriteMesh(const Mesh& mesh, xla::MeshProto* proto);
absl::StatusOr<MeshRef> ReadMesh(const xla::MeshProto& proto);
void WriteAxes(const Mesh& mesh, const AxisList& axes, google::protobuf::RepeatedPtrField<xla::AxisRefProto>* proto);
// Axes and sub-axes of the mesh, none twice.
absl::StatusOr<AxisList> ReadAxes(const Mesh& mesh, const google::protobuf::RepeatedPtrField<xla::AxisRefProto>& proto);

void WriteShardings(const Shardings& shardings, bool is_tuple, xla::OpSharding* proto);
absl::StatusOr<Shardings> ReadShardings(const xla::OpSharding& proto, const Shape& shape, int64_t num_devices,
                                        MeshRef mesh);
// Devices a tile assignment covers; 1 for other forms.
int64_t DevicesOf(const xla::OpSharding& proto);

void WriteMetadata(const OpMetadata& metadata, xla::OpMetadata* proto);
OpMetadata ReadMetadata(const xla::OpMetadata& proto);

}  // namespace gangway::hlo

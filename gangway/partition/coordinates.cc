#include "gangway/partition/coordinates.h"

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gangway::partition {

using hlo::Instruction;
using hlo::Opcode;

int64_t StrideOf(const Mesh& mesh, const AxisRef& ref) {
  int64_t stride = mesh.axis_size(ref.axis) / (ref.pre * ref.size);
  for (int a = ref.axis + 1; a < mesh.rank(); ++a) stride *= mesh.axis_size(a);
  return stride;
}

Instruction* Coordinates::Position(const MeshRef& mesh) {
  if (partition_ == nullptr) partition_ = builder_->Convert(builder_->PartitionId(), DType::kS32);
  if (mesh->IsIota()) return partition_;
  Instruction*& made = made_[absl::StrCat("position ", mesh->ToString())];
  if (made != nullptr) return made;
  std::vector<int32_t> positions(mesh->size());
  for (int64_t p = 0; p < mesh->size(); ++p) positions[mesh->DeviceAt(p)] = static_cast<int32_t>(p);
  Instruction* table =
      builder_->Constant(Literal::FromSpan<int32_t>(DType::kS32, {mesh->size()}, absl::MakeConstSpan(positions)));
  made = builder_->Reshape(builder_->DynamicSlice(table, {partition_}, {1}), {});
  return made;
}

Instruction* Coordinates::Part(const MeshRef& mesh, const AxisRef& ref) {
  const std::string key = absl::StrCat(mesh->ToString(), " ", AxisToString(*mesh, ref));
  if (auto it = made_.find(key); it != made_.end()) return it->second;
  const int64_t stride = StrideOf(*mesh, ref);
  int64_t outer = ref.pre;
  for (int a = 0; a < ref.axis; ++a) outer *= mesh->axis_size(a);
  Instruction* value = Position(mesh);
  if (stride > 1) value = builder_->Binary(Opcode::kDivide, value, builder_->Index(stride));
  if (outer > 1) value = builder_->Binary(Opcode::kRemainder, value, builder_->Index(ref.size));
  made_[key] = value;
  return value;
}

Instruction* Coordinates::Of(const MeshRef& mesh, const AxisList& axes_in) {
  AxisList axes = axes_in;
  MergeSubAxes(&axes);
  if (ProductOf(axes) == 1) return builder_->Index(0);
  const std::string key = absl::StrCat(mesh->ToString(), " ", AxesToString(*mesh, axes));
  if (auto it = made_.find(key); it != made_.end()) return it->second;
  Instruction* value = nullptr;
  for (const AxisRef& ref : axes) {
    Instruction* part = Part(mesh, ref);
    value = value == nullptr
                ? part
                : builder_->Binary(Opcode::kAdd, builder_->Binary(Opcode::kMultiply, value, builder_->Index(ref.size)),
                                   part);
  }
  made_[key] = value;
  return value;
}

void Coordinates::NoteOverflow(int64_t number) {
  overflows_ |= number < std::numeric_limits<int32_t>::min() || number > std::numeric_limits<int32_t>::max();
}

Instruction* Coordinates::Scaled(const MeshRef& mesh, const AxisList& axes, int64_t scale) {
  if (scale == 0 || ProductOf(axes) == 1) return builder_->Index(0);
  NoteOverflow(scale * (ProductOf(axes) - 1));
  Instruction* value = Of(mesh, axes);
  return scale == 1 ? value : builder_->Binary(Opcode::kMultiply, value, builder_->Index(scale));
}

Instruction* Coordinates::PerShard(const MeshRef& mesh, const AxisList& axes, const std::vector<int64_t>& values) {
  for (int64_t value : values) NoteOverflow(value);
  const int64_t step = values.size() > 1 ? values[1] - values[0] : 0;
  bool linear = true;
  for (size_t i = 1; i < values.size(); ++i) linear &= values[i] - values[i - 1] == step;
  if (linear) {
    if (step == 0) return builder_->Index(values[0]);
    Instruction* scaled = Scaled(mesh, axes, step);
    return values[0] == 0 ? scaled : builder_->Binary(Opcode::kAdd, scaled, builder_->Index(values[0]));
  }
  const std::vector<int32_t> narrow(values.begin(), values.end());
  Instruction* table = builder_->Constant(
      Literal::FromSpan<int32_t>(DType::kS32, {static_cast<int64_t>(values.size())}, absl::MakeConstSpan(narrow)));
  return builder_->Reshape(builder_->DynamicSlice(table, {Of(mesh, axes)}, {1}), {});
}

}  // namespace gangway::partition

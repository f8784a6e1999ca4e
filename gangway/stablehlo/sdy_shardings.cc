#include "gangway/stablehlo/sdy_shardings.h"

#include <memory>

#include "gangway/stablehlo/elements.h"

namespace gangway::stablehlo {

using bytecode::AttributeId;

namespace {

constexpr size_t kMaxPartsOfAnAxis = 64;          // each but trivial ones halves what is left of its size
constexpr size_t kMaxRuleText = size_t{1} << 20;  // its parts may refer to one another many times

}  // namespace

MeshRef SdyShardings::Shared(Mesh mesh) const {
  for (const auto& [name, known] : meshes_) {
    if (*known == mesh) return known;
  }
  return std::make_shared<const Mesh>(std::move(mesh));
}

absl::StatusOr<Mesh> SdyShardings::MeshOf(AttributeId id) const {
  GW_ASSIGN_OR_RETURN(const bytecode::Attribute* attribute, entries_.attribute(id));
  std::vector<AttributeId> axis_ids;
  std::vector<int64_t> device_ids;
  if (const auto* mesh = std::get_if<bytecode::MeshAttr>(attribute)) {
    axis_ids = mesh->axes;
    device_ids = mesh->device_ids;
  } else if (const auto* vhlo = std::get_if<bytecode::VhloMeshAttr>(attribute)) {
    GW_ASSIGN_OR_RETURN(const bytecode::ArrayAttr* axes, entries_.attribute_as<bytecode::ArrayAttr>(vhlo->axes));
    axis_ids = axes->elements;
    if (vhlo->device_ids.has_value()) {
      GW_ASSIGN_OR_RETURN(const bytecode::DenseAttr* dense,
                          entries_.attribute_as<bytecode::DenseAttr>(*vhlo->device_ids));
      GW_ASSIGN_OR_RETURN(IntegerTensor ids, ReadIntegers(entries_, *dense));
      device_ids = ids.values;
    }
  } else {
    return absl::InvalidArgumentError(absl::StrCat("expected a mesh, found ", bytecode::AttributeKind(*attribute)));
  }
  std::vector<MeshAxis> axes;
  for (AttributeId axis_id : axis_ids) {
    GW_ASSIGN_OR_RETURN(const bytecode::MeshAxisAttr* axis, entries_.attribute_as<bytecode::MeshAxisAttr>(axis_id));
    axes.push_back({std::string(axis->name), axis->size});
  }
  if (axes.empty() && device_ids.size() == 1) return Mesh::Maximal(device_ids.front());
  return Mesh::Make(std::move(axes), std::move(device_ids));
}

absl::Status SdyShardings::AddMesh(const OpView& op) {
  GW_ASSIGN_OR_RETURN(absl::string_view symbol, op.String("sym_name"));
  GW_ASSIGN_OR_RETURN(AttributeId id, op.Attribute("mesh"));
  GW_ASSIGN_OR_RETURN_WITH(Mesh mesh, MeshOf(id), OpView::Context("mesh"));
  MeshTable table;
  table.emplace(std::string(symbol), Shared(std::move(mesh)));
  return AddMeshes(table);
}

absl::Status SdyShardings::AddMeshes(const MeshTable& meshes) {
  for (const auto& [symbol, mesh] : meshes) {
    MeshRef shared = Shared(*mesh);
    if (!symbols_.emplace(symbol, shared).second) {
      return absl::InvalidArgumentError(absl::StrCat("mesh @", symbol, " is defined twice"));
    }
    if (!mesh->axes().empty() || mesh->IsMaximal()) meshes_.emplace_back(symbol, std::move(shared));
  }
  return absl::OkStatus();
}

MeshTable SdyShardings::Table() const { return symbols_; }

absl::StatusOr<MeshRef> SdyShardings::Find(absl::string_view symbol) const {
  auto it = symbols_.find(std::string(symbol));
  if (it == symbols_.end()) return absl::InvalidArgumentError(absl::StrCat("mesh @", symbol, " does not exist"));
  return it->second;
}

absl::StatusOr<MeshRef> SdyShardings::ReadMesh(AttributeId id) const {
  GW_ASSIGN_OR_RETURN(const bytecode::Attribute* attribute, entries_.attribute(id));
  if (const auto* symbol = std::get_if<bytecode::SymbolAttr>(attribute)) return Find(symbol->name);
  if (const auto* text = std::get_if<bytecode::StringAttr>(attribute)) return Find(text->value);
  GW_ASSIGN_OR_RETURN(Mesh mesh, MeshOf(id));
  return Shared(std::move(mesh));
}

absl::StatusOr<AxisRef> SdyShardings::ReadAxis(AttributeId id, const Mesh& mesh) const {
  GW_ASSIGN_OR_RETURN(const bytecode::AxisRefAttr* ref, entries_.attribute_as<bytecode::AxisRefAttr>(id));
  const int axis = mesh.FindAxis(ref->name);
  if (axis < 0) return absl::InvalidArgumentError(absl::StrCat("mesh has no axis \"", ref->name, "\""));
  if (!ref->sub_axis.has_value()) return FullAxis(mesh, axis);
  GW_ASSIGN_OR_RETURN(const bytecode::SubAxisAttr* sub, entries_.attribute_as<bytecode::SubAxisAttr>(*ref->sub_axis));
  const int64_t size = mesh.axis_size(axis);
  if (sub->pre_size < 1 || sub->size < 1 || sub->pre_size > size || sub->size > size ||
      size % (sub->pre_size * sub->size) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis \"", ref->name, "\" of size ", size, " has no part (", sub->pre_size, ")", sub->size));
  }
  return AxisRef{axis, sub->pre_size, sub->size};
}

absl::StatusOr<AxisList> SdyShardings::ReadAxes(const std::vector<AttributeId>& ids, const Mesh& mesh) const {
  // Every value may refer to the same list: what is too long for any mesh is not copied first.
  if (ids.size() > kMaxPartsOfAnAxis * mesh.axes().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a list of ", ids.size(), " axes of a mesh that has ", mesh.axes().size()));
  }
  AxisList axes;
  for (AttributeId id : ids) {
    GW_ASSIGN_OR_RETURN(AxisRef axis, ReadAxis(id, mesh));
    axes.push_back(axis);
  }
  return axes;
}

absl::StatusOr<AxisList> SdyShardings::ReadAxisArray(AttributeId axes, const Mesh& mesh) const {
  GW_ASSIGN_OR_RETURN(const bytecode::ArrayAttr* array, entries_.attribute_as<bytecode::ArrayAttr>(axes));
  return ReadAxes(array->elements, mesh);
}

absl::StatusOr<AxisList> SdyShardings::ReadManualAxes(AttributeId id, const Mesh& mesh) const {
  GW_ASSIGN_OR_RETURN(const bytecode::ManualAxesAttr* manual, entries_.attribute_as<bytecode::ManualAxesAttr>(id));
  AxisList axes;
  for (absl::string_view name : manual->axes) {
    const int axis = mesh.FindAxis(name);
    if (axis < 0) return absl::InvalidArgumentError(absl::StrCat("mesh has no axis \"", name, "\""));
    axes.push_back(FullAxis(mesh, axis));
  }
  return axes;
}

absl::StatusOr<std::optional<Sharding>> SdyShardings::Read(AttributeId id, int64_t rank) const {
  GW_ASSIGN_OR_RETURN(const bytecode::TensorShardingAttr* attr,
                      entries_.attribute_as<bytecode::TensorShardingAttr>(id));
  Sharding sharding;
  GW_ASSIGN_OR_RETURN(sharding.mesh, ReadMesh(attr->mesh));
  if (sharding.mesh->IsMaximal()) return std::optional<Sharding>(Sharding::Maximal(sharding.mesh->DeviceAt(0), rank));
  if (sharding.mesh->axes().empty()) return std::optional<Sharding>();
  if (static_cast<int64_t>(attr->dimensions.size()) != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("sharding of rank ", attr->dimensions.size(), " for a value of rank ", rank));
  }
  for (AttributeId dimension_id : attr->dimensions) {
    GW_ASSIGN_OR_RETURN(const bytecode::DimensionShardingAttr* dimension,
                        entries_.attribute_as<bytecode::DimensionShardingAttr>(dimension_id));
    DimSharding& dim = sharding.dims.emplace_back();
    GW_ASSIGN_OR_RETURN(dim.axes, ReadAxes(dimension->axes, *sharding.mesh));
    dim.open = !dimension->closed;
    if (dimension->priority.has_value()) {
      if (*dimension->priority > 1'000'000) return absl::InvalidArgumentError("absurd priority");
      dim.priority = static_cast<int>(*dimension->priority);
    }
  }
  GW_ASSIGN_OR_RETURN(sharding.replicated, ReadAxes(attr->replicated, *sharding.mesh));
  GW_ASSIGN_OR_RETURN(sharding.unreduced, ReadAxes(attr->unreduced, *sharding.mesh));
  switch (attr->reduction) {
    case bytecode::ReductionOp::kSum:
      sharding.reduction = Reduction::kSum;
      break;
    case bytecode::ReductionOp::kMax:
      sharding.reduction = Reduction::kMax;
      break;
    case bytecode::ReductionOp::kMin:
      sharding.reduction = Reduction::kMin;
      break;
  }
  return std::optional<Sharding>(std::move(sharding));
}

absl::StatusOr<std::vector<std::optional<Sharding>>> SdyShardings::ReadPerValue(
    AttributeId id, const std::vector<int64_t>& ranks) const {
  GW_ASSIGN_OR_RETURN(const bytecode::TensorShardingPerValueAttr* attr,
                      entries_.attribute_as<bytecode::TensorShardingPerValueAttr>(id));
  if (attr->shardings.size() != ranks.size()) {
    return absl::InvalidArgumentError(absl::StrCat(attr->shardings.size(), " shardings for ", ranks.size(), " values"));
  }
  std::vector<std::optional<Sharding>> result;
  for (size_t i = 0; i < ranks.size(); ++i) {
    GW_ASSIGN_OR_RETURN(std::optional<Sharding> sharding, Read(attr->shardings[i], ranks[i]));
    result.push_back(std::move(sharding));
  }
  return result;
}

namespace {

// Factors are named i, j, ... z, then z_1, z_2, ...
std::string FactorName(int64_t factor) {
  constexpr int64_t kLetters = 'z' - 'i' + 1;
  if (factor < kLetters) return std::string(1, static_cast<char>('i' + factor));
  return absl::StrCat("z_", factor - kLetters + 1);
}

absl::Status PrintTensors(const bytecode::Entries& entries, const std::vector<AttributeId>& tensors,
                          std::string* text) {
  absl::StrAppend(text, "(");
  for (size_t i = 0; i < tensors.size(); ++i) {
    GW_ASSIGN_OR_RETURN(const bytecode::TensorMappingAttr* tensor,
                        entries.attribute_as<bytecode::TensorMappingAttr>(tensors[i]));
    absl::StrAppend(text, i == 0 ? "[" : ", [");
    for (size_t d = 0; d < tensor->dimensions.size(); ++d) {
      GW_ASSIGN_OR_RETURN(const bytecode::DimensionMappingAttr* dimension,
                          entries.attribute_as<bytecode::DimensionMappingAttr>(tensor->dimensions[d]));
      absl::StrAppend(text, d == 0 ? "" : ", ", dimension->factors.empty() ? "*" : "");
      for (int64_t factor : dimension->factors) absl::StrAppend(text, FactorName(factor));
      if (text->size() > kMaxRuleText) return absl::InvalidArgumentError("the text of a sharding rule is too long");
    }
    absl::StrAppend(text, "]");
  }
  absl::StrAppend(text, ")");
  return absl::OkStatus();
}

void PrintFactorList(absl::string_view name, const std::vector<int64_t>& factors, std::string* text) {
  if (factors.empty()) return;
  absl::StrAppend(text, " ", name, "={");
  for (size_t i = 0; i < factors.size(); ++i) absl::StrAppend(text, i == 0 ? "" : ", ", FactorName(factors[i]));
  absl::StrAppend(text, "}");
}

}  // namespace

absl::StatusOr<std::string> PrintShardingRule(const bytecode::Entries& entries, AttributeId id) {
  GW_ASSIGN_OR_RETURN(const bytecode::ShardingRuleAttr* rule, entries.attribute_as<bytecode::ShardingRuleAttr>(id));
  std::string text = "#sdy.op_sharding_rule<";
  GW_RETURN_IF_ERROR(PrintTensors(entries, rule->operands, &text));
  absl::StrAppend(&text, "->");
  GW_RETURN_IF_ERROR(PrintTensors(entries, rule->results, &text));
  absl::StrAppend(&text, " {");
  for (size_t i = 0; i < rule->factor_sizes.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", FactorName(static_cast<int64_t>(i)), "=", rule->factor_sizes[i]);
  }
  absl::StrAppend(&text, "}");
  PrintFactorList("reduction", rule->reduction, &text);
  PrintFactorList("need_replication", rule->need_replication, &text);
  PrintFactorList("permutation", rule->permutation, &text);
  PrintFactorList("blocked_propagation", rule->blocked_propagation, &text);
  absl::StrAppend(&text, rule->is_custom ? ", custom>" : ">");
  return text;
}

}  // namespace gangway::stablehlo

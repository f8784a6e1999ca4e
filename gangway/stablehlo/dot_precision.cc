#include "gangway/stablehlo/dot_precision.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace gangway::stablehlo {
namespace {

using bytecode::Scalar;

struct Algorithm {
  Scalar lhs, rhs, accumulation;
  int64_t primitives;
  int number;
};

// Component counts follow from the number of primitive operations.
constexpr Algorithm kAlgorithms[] = {
    {Scalar::kF16, Scalar::kF16, Scalar::kF16, 1, 3},    {Scalar::kF16, Scalar::kF16, Scalar::kF32, 1, 4},
    {Scalar::kBF16, Scalar::kBF16, Scalar::kBF16, 1, 5}, {Scalar::kBF16, Scalar::kBF16, Scalar::kF32, 1, 6},
    {Scalar::kBF16, Scalar::kBF16, Scalar::kF32, 3, 7},  {Scalar::kBF16, Scalar::kBF16, Scalar::kF32, 6, 8},
    {Scalar::kTF32, Scalar::kTF32, Scalar::kF32, 1, 9},  {Scalar::kTF32, Scalar::kTF32, Scalar::kF32, 3, 10},
    {Scalar::kF32, Scalar::kF32, Scalar::kF32, 1, 11},   {Scalar::kF64, Scalar::kF64, Scalar::kF64, 1, 12},
    {Scalar::kBF16, Scalar::kBF16, Scalar::kF32, 9, 13},
};

bool IsF8(Scalar scalar) { return scalar >= Scalar::kF8E5M2 && scalar <= Scalar::kF8E3M4; }

// nullopt: "none", not given.
absl::StatusOr<std::optional<Scalar>> ReadType(const OpView& op, absl::string_view attribute) {
  GW_ASSIGN_OR_RETURN(const bytecode::TypeAttr* attr, op.As<bytecode::TypeAttr>(attribute));
  GW_ASSIGN_OR_RETURN(const bytecode::Type* type, op.artifact().entries().type(attr->type));
  if (std::holds_alternative<bytecode::NoneType>(*type)) return std::optional<Scalar>();
  GW_ASSIGN_OR_RETURN_WITH(Scalar scalar, op.artifact().entries().scalar(attr->type), OpView::Context(attribute));
  return std::optional<Scalar>(scalar);
}

}  // namespace

absl::StatusOr<std::vector<hlo::Precision>> ReadPrecisions(const OpView& op) {
  GW_ASSIGN_OR_RETURN(std::vector<bytecode::AttributeId> ids, op.Array("precision_config"));
  std::vector<hlo::Precision> precisions;
  for (bytecode::AttributeId id : ids) {
    GW_ASSIGN_OR_RETURN_WITH(const bytecode::EnumAttr* value,
                             op.artifact().entries().attribute_as<bytecode::EnumAttr>(id),
                             OpView::Context("precision_config"));
    if (value->kind != bytecode::EnumKind::kPrecision || value->value > 2) {
      return absl::InvalidArgumentError("attribute precision_config: not a precision");
    }
    precisions.push_back(static_cast<hlo::Precision>(value->value));
  }
  const bool all_default =
      std::all_of(precisions.begin(), precisions.end(), [](hlo::Precision p) { return p == hlo::Precision::kDefault; });
  if (all_default) precisions.clear();
  return precisions;
}

absl::StatusOr<int> ReadDotAlgorithm(const OpView& op) {
  if (!op.Find("accumulation_type").has_value()) return 0;
  GW_ASSIGN_OR_RETURN(std::optional<Scalar> accumulation, ReadType(op, "accumulation_type"));
  if (!accumulation.has_value()) return 0;
  GW_ASSIGN_OR_RETURN(std::optional<Scalar> lhs, ReadType(op, "lhs_precision_type"));
  GW_ASSIGN_OR_RETURN(std::optional<Scalar> rhs, ReadType(op, "rhs_precision_type"));
  GW_ASSIGN_OR_RETURN(int64_t primitives, op.Int("num_primitive_operations"));
  GW_ASSIGN_OR_RETURN(bool imprecise, op.Bool("allow_imprecise_accumulation"));
  if (lhs.has_value() && rhs.has_value()) {
    if (IsF8(*lhs) && IsF8(*rhs) && *accumulation == Scalar::kF32) return imprecise ? 2 : 1;
    for (const Algorithm& algorithm : kAlgorithms) {
      if (algorithm.lhs == *lhs && algorithm.rhs == *rhs && algorithm.accumulation == *accumulation &&
          algorithm.primitives == primitives) {
        return algorithm.number;
      }
    }
  }
  return absl::UnimplementedError("attribute accumulation_type: no dot algorithm has this combination of types");
}

}  // namespace gangway::stablehlo

// Bytecode of the sdy dialect (Shardy): attributes. It has no types.
#include <utility>

#include "gangway/base/status.h"
#include "gangway/stablehlo/bytecode/field_reader.h"

namespace gangway::bytecode {
namespace {

absl::StatusOr<Attribute> DimensionSharding(FieldReader& reader) {
  DimensionShardingAttr dimension;
  GW_ASSIGN_OR_RETURN(dimension.axes, reader.AttributeRefs());
  GW_ASSIGN_OR_RETURN(dimension.closed, reader.cursor().Bool());
  GW_ASSIGN_OR_RETURN(FlaggedVarint priority, reader.cursor().Flagged());
  if (priority.flag) dimension.priority = priority.value;
  return Attribute(std::move(dimension));
}

enum class Unreduced { kNone, kSum, kAny };

absl::StatusOr<Attribute> TensorSharding(FieldReader& reader, Unreduced unreduced) {
  TensorShardingAttr sharding;
  GW_ASSIGN_OR_RETURN(sharding.mesh, reader.AttributeRef());
  GW_ASSIGN_OR_RETURN(sharding.dimensions, reader.AttributeRefs());
  GW_ASSIGN_OR_RETURN(sharding.replicated, reader.AttributeRefs());
  if (unreduced != Unreduced::kNone) {
    GW_ASSIGN_OR_RETURN(sharding.unreduced, reader.AttributeRefs());
  }
  if (unreduced == Unreduced::kAny) {
    GW_ASSIGN_OR_RETURN(int64_t op, reader.cursor().SignedVarint());
    if (op < 0 || op > 2) return reader.cursor().Error(absl::StrCat("unknown reduction ", op));
    sharding.reduction = static_cast<ReductionOp>(op);
  }
  return Attribute(std::move(sharding));
}

absl::StatusOr<Attribute> ShardingRule(FieldReader& reader) {
  ShardingRuleAttr rule;
  GW_ASSIGN_OR_RETURN(rule.factor_sizes, reader.cursor().SignedVarints());
  GW_ASSIGN_OR_RETURN(rule.operands, reader.AttributeRefs());
  GW_ASSIGN_OR_RETURN(rule.results, reader.AttributeRefs());
  GW_ASSIGN_OR_RETURN(rule.reduction, reader.cursor().SignedVarints());
  GW_ASSIGN_OR_RETURN(rule.need_replication, reader.cursor().SignedVarints());
  GW_ASSIGN_OR_RETURN(rule.permutation, reader.cursor().SignedVarints());
  GW_ASSIGN_OR_RETURN(rule.blocked_propagation, reader.cursor().SignedVarints());
  GW_ASSIGN_OR_RETURN(rule.is_custom, reader.cursor().Bool());
  return Attribute(std::move(rule));
}

}  // namespace

absl::StatusOr<Attribute> DecodeSdyAttribute(uint64_t code, FieldReader& reader) {
  switch (code) {
    case 0: {
      ManualAxesAttr manual;
      GW_ASSIGN_OR_RETURN(manual.axes, reader.StringAttributes());
      return Attribute(std::move(manual));
    }
    case 1: {
      GW_ASSIGN_OR_RETURN(absl::string_view name, reader.String());
      GW_ASSIGN_OR_RETURN(int64_t size, reader.cursor().SignedVarint());
      return Attribute(MeshAxisAttr{name, size});
    }
    case 2: {
      MeshAttr mesh;
      GW_ASSIGN_OR_RETURN(mesh.axes, reader.AttributeRefs());
      GW_ASSIGN_OR_RETURN(mesh.device_ids, reader.cursor().SignedVarints());
      return Attribute(std::move(mesh));
    }
    case 3: {
      GW_ASSIGN_OR_RETURN(int64_t pre_size, reader.cursor().SignedVarint());
      GW_ASSIGN_OR_RETURN(int64_t size, reader.cursor().SignedVarint());
      return Attribute(SubAxisAttr{pre_size, size});
    }
    case 4: {
      AxisRefAttr axis;
      GW_ASSIGN_OR_RETURN(axis.name, reader.String());
      GW_ASSIGN_OR_RETURN(axis.sub_axis, reader.OptionalAttributeRef());
      return Attribute(axis);
    }
    case 5:
      return DimensionSharding(reader);
    case 6:
      return TensorSharding(reader, Unreduced::kNone);
    case 7:
    case 16: {
      TensorShardingPerValueAttr shardings;
      GW_ASSIGN_OR_RETURN(shardings.shardings, reader.AttributeRefs());
      return Attribute(std::move(shardings));
    }
    case 8: {
      DimensionMappingAttr mapping;
      GW_ASSIGN_OR_RETURN(mapping.factors, reader.cursor().SignedVarints());
      return Attribute(std::move(mapping));
    }
    case 9: {
      TensorMappingAttr mapping;
      GW_ASSIGN_OR_RETURN(mapping.dimensions, reader.AttributeRefs());
      return Attribute(std::move(mapping));
    }
    case 10:
      return ShardingRule(reader);
    case 11:
    case 12:
    case 14: {
      ArrayAttr lists;
      GW_ASSIGN_OR_RETURN(lists.elements, reader.AttributeRefs());
      return Attribute(std::move(lists));
    }
    case 15:
      return TensorSharding(reader, Unreduced::kSum);
    case 17:
      return TensorSharding(reader, Unreduced::kAny);
    default:
      return Attribute(OtherAttr{absl::StrCat("sdy code ", code)});
  }
}

}  // namespace gangway::bytecode

#include "gangway/stablehlo/bytecode/attribute.h"

#include "absl/strings/str_cat.h"

namespace gangway::bytecode {

std::string AttributeKind(const Attribute& attribute) {
  struct Namer {
    std::string operator()(const UnitAttr&) const { return "a unit"; }
    std::string operator()(const BoolAttr&) const { return "a bool"; }
    std::string operator()(const IntegerAttr&) const { return "an integer"; }
    std::string operator()(const FloatAttr&) const { return "a float"; }
    std::string operator()(const StringAttr&) const { return "a string"; }
    std::string operator()(const SymbolAttr&) const { return "a symbol"; }
    std::string operator()(const TypeAttr&) const { return "a type"; }
    std::string operator()(const ArrayAttr&) const { return "an array"; }
    std::string operator()(const DictionaryAttr&) const { return "a dictionary"; }
    std::string operator()(const DenseArrayAttr&) const { return "a dense array"; }
    std::string operator()(const DenseAttr&) const { return "a tensor"; }
    std::string operator()(const EnumAttr&) const { return "an enum"; }
    std::string operator()(const ResultAccuracyAttr&) const { return "a result accuracy"; }
    std::string operator()(const OutputOperandAliasAttr&) const { return "an output operand alias"; }
    std::string operator()(const TypeExtensionsAttr&) const { return "type extensions"; }
    std::string operator()(const UnknownLocation&) const { return "a location"; }
    std::string operator()(const FileLocation&) const { return "a location"; }
    std::string operator()(const NameLocation&) const { return "a location"; }
    std::string operator()(const CallSiteLocation&) const { return "a location"; }
    std::string operator()(const FusedLocation&) const { return "a location"; }
    std::string operator()(const SubAxisAttr&) const { return "a sub-axis"; }
    std::string operator()(const AxisRefAttr&) const { return "an axis reference"; }
    std::string operator()(const MeshAxisAttr&) const { return "a mesh axis"; }
    std::string operator()(const MeshAttr&) const { return "a mesh"; }
    std::string operator()(const VhloMeshAttr&) const { return "a mesh"; }
    std::string operator()(const ReplicaGroupMeshAxesAttr&) const { return "replica groups over mesh axes"; }
    std::string operator()(const ManualAxesAttr&) const { return "manual axes"; }
    std::string operator()(const DimensionShardingAttr&) const { return "a dimension sharding"; }
    std::string operator()(const TensorShardingAttr&) const { return "a sharding"; }
    std::string operator()(const TensorShardingPerValueAttr&) const { return "shardings per value"; }
    std::string operator()(const ShardingRuleAttr&) const { return "a sharding rule"; }
    std::string operator()(const TensorMappingAttr&) const { return "a tensor mapping"; }
    std::string operator()(const DimensionMappingAttr&) const { return "a dimension mapping"; }
    std::string operator()(const OtherAttr& other) const { return absl::StrCat("the attribute ", other.name); }
  };
  return std::visit(Namer(), attribute);
}

}  // namespace gangway::bytecode

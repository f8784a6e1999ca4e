// Bytecode of the vhlo dialect (StableHLO's versioned form): attributes and types.
#include <utility>

#include "gangway/base/status.h"
#include "gangway/stablehlo/bytecode/field_reader.h"

namespace gangway::bytecode {
namespace {

absl::StatusOr<Attribute> Enum(EnumKind kind, FieldReader& reader) {
  GW_ASSIGN_OR_RETURN(uint64_t value, reader.cursor().Varint());
  return Attribute(EnumAttr{kind, value});
}

absl::StatusOr<Attribute> OutputOperandAlias(FieldReader& reader) {
  OutputOperandAliasAttr alias;
  GW_ASSIGN_OR_RETURN(alias.output_tuple_indices, reader.cursor().SignedVarints());
  GW_ASSIGN_OR_RETURN(alias.operand_index, reader.cursor().SignedVarint());
  GW_ASSIGN_OR_RETURN(alias.operand_tuple_indices, reader.cursor().SignedVarints());
  return Attribute(std::move(alias));
}

absl::StatusOr<Attribute> ResultAccuracy(FieldReader& reader) {
  GW_RETURN_IF_ERROR(reader.cursor().Bits(64).status());        // absolute tolerance
  GW_RETURN_IF_ERROR(reader.cursor().Bits(64).status());        // relative tolerance
  GW_RETURN_IF_ERROR(reader.cursor().SignedVarint().status());  // units in the last place
  GW_ASSIGN_OR_RETURN(AttributeId mode, reader.AttributeRef());
  return Attribute(ResultAccuracyAttr{mode});
}

absl::StatusOr<Attribute> AxisRef(FieldReader& reader) {
  AxisRefAttr axis;
  GW_ASSIGN_OR_RETURN(axis.name, reader.StringAttribute());
  GW_ASSIGN_OR_RETURN(uint64_t has_sub_axis, reader.cursor().Varint());
  if (has_sub_axis != 0) {
    GW_ASSIGN_OR_RETURN(axis.sub_axis, reader.AttributeRef());
  }
  return Attribute(axis);
}

absl::StatusOr<Type> Tensor(FieldReader& reader, bool with_encoding) {
  TensorType tensor;
  if (with_encoding) {
    GW_ASSIGN_OR_RETURN(tensor.encoding, reader.AttributeRef());
  }
  GW_ASSIGN_OR_RETURN(tensor.dimensions, reader.cursor().SignedVarints());
  GW_ASSIGN_OR_RETURN(tensor.element, reader.TypeRef());
  return Type(std::move(tensor));
}

// Codes that are scalars, in the order of their codes; kNone where the code is something else.
std::optional<Scalar> ScalarOfCode(uint64_t code) {
  switch (code) {
    case 0:
      return Scalar::kBool;
    case 2:
      return Scalar::kBF16;
    case 3:
      return Scalar::kF16;
    case 4:
      return Scalar::kF32;
    case 5:
      return Scalar::kF64;
    case 6:
      return Scalar::kF8E4M3FN;
    case 7:
      return Scalar::kF8E5M2;
    case 9:
      return Scalar::kIndex;
    case 10:
      return Scalar::kS4;
    case 11:
      return Scalar::kS8;
    case 12:
      return Scalar::kS16;
    case 13:
      return Scalar::kS32;
    case 14:
      return Scalar::kS64;
    case 15:
      return Scalar::kU4;
    case 16:
      return Scalar::kU8;
    case 17:
      return Scalar::kU16;
    case 18:
      return Scalar::kU32;
    case 19:
      return Scalar::kU64;
    case 27:
      return Scalar::kF8E4M3FNUZ;
    case 28:
      return Scalar::kF8E5M2FNUZ;
    case 29:
      return Scalar::kF8E4M3B11FNUZ;
    case 31:
      return Scalar::kS2;
    case 32:
      return Scalar::kU2;
    case 34:
      return Scalar::kTF32;
    case 35:
      return Scalar::kF8E4M3;
    case 36:
      return Scalar::kF8E3M4;
    case 37:
      return Scalar::kF4E2M1FN;
    case 38:
      return Scalar::kF6E2M3FN;
    case 39:
      return Scalar::kF6E3M2FN;
    case 40:
      return Scalar::kF8E8M0FNU;
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<Attribute> DecodeVhloAttribute(uint64_t code, FieldReader& reader) {
  switch (code) {
    case 1: {
      ArrayAttr array;
      GW_ASSIGN_OR_RETURN(array.elements, reader.AttributeRefs());
      return Attribute(std::move(array));
    }
    case 2: {
      GW_ASSIGN_OR_RETURN(uint64_t value, reader.cursor().Varint());
      return Attribute(BoolAttr{value != 0});
    }
    case 3:
      return Enum(EnumKind::kComparisonDirection, reader);
    case 4:
      return Enum(EnumKind::kComparisonType, reader);
    case 5:
      return Enum(EnumKind::kApiVersion, reader);
    case 6: {
      DictionaryAttr dictionary;
      GW_ASSIGN_OR_RETURN(dictionary.entries, reader.DictionaryEntries());
      return Attribute(std::move(dictionary));
    }
    case 7:
      return Enum(EnumKind::kFftType, reader);
    case 8: {
      GW_ASSIGN_OR_RETURN(FloatAttr value, reader.Float());
      return Attribute(value);
    }
    case 9: {
      GW_ASSIGN_OR_RETURN(IntegerAttr value, reader.Integer());
      return Attribute(value);
    }
    case 10:
      return OutputOperandAlias(reader);
    case 11:
      return Enum(EnumKind::kPrecision, reader);
    case 12:
      return Enum(EnumKind::kRngAlgorithm, reader);
    case 13:
      return Enum(EnumKind::kRngDistribution, reader);
    case 14: {
      GW_ASSIGN_OR_RETURN(absl::string_view text, reader.String());
      return Attribute(StringAttr{text});
    }
    case 15: {
      DenseAttr dense;
      GW_ASSIGN_OR_RETURN(dense.type, reader.TypeRef());
      GW_ASSIGN_OR_RETURN(dense.data, reader.cursor().Blob());
      return Attribute(dense);
    }
    case 16:
      return Enum(EnumKind::kTranspose, reader);
    case 17: {
      GW_ASSIGN_OR_RETURN(TypeId type, reader.TypeRef());
      return Attribute(TypeAttr{type});
    }
    case 18: {
      TypeExtensionsAttr extensions;
      GW_ASSIGN_OR_RETURN(extensions.bounds, reader.cursor().SignedVarints());
      return Attribute(std::move(extensions));
    }
    case 19:
      return Enum(EnumKind::kAccuracyMode, reader);
    case 20:
      return ResultAccuracy(reader);
    case 21: {
      GW_ASSIGN_OR_RETURN(int64_t pre_size, reader.cursor().SignedVarint());
      GW_ASSIGN_OR_RETURN(int64_t size, reader.cursor().SignedVarint());
      return Attribute(SubAxisAttr{pre_size, size});
    }
    case 22:
      return AxisRef(reader);
    case 23: {
      GW_ASSIGN_OR_RETURN(AttributeId mesh, reader.AttributeRef());
      GW_ASSIGN_OR_RETURN(AttributeId axes, reader.AttributeRef());
      return Attribute(ReplicaGroupMeshAxesAttr{mesh, axes});
    }
    case 24: {
      GW_ASSIGN_OR_RETURN(absl::string_view name, reader.StringAttribute());
      GW_ASSIGN_OR_RETURN(int64_t size, reader.cursor().SignedVarint());
      return Attribute(MeshAxisAttr{name, size});
    }
    case 25: {
      VhloMeshAttr mesh;
      GW_ASSIGN_OR_RETURN(mesh.axes, reader.AttributeRef());
      GW_ASSIGN_OR_RETURN(mesh.device_ids, reader.OptionalAttributeRef());
      return Attribute(mesh);
    }
    default:
      return Attribute(OtherAttr{absl::StrCat("vhlo code ", code)});
  }
}

absl::StatusOr<Type> DecodeVhloType(uint64_t code, FieldReader& reader) {
  if (std::optional<Scalar> scalar = ScalarOfCode(code)) return Type(ScalarType{*scalar});
  switch (code) {
    case 1: {
      GW_ASSIGN_OR_RETURN(TypeId element, reader.TypeRef());
      return Type(ComplexType{element});
    }
    case 8: {
      FunctionType function;
      GW_ASSIGN_OR_RETURN(function.inputs, reader.TypeRefs());
      GW_ASSIGN_OR_RETURN(function.results, reader.TypeRefs());
      return Type(std::move(function));
    }
    case 20:
      return Tensor(reader, /*with_encoding=*/false);
    case 21:
      return Tensor(reader, /*with_encoding=*/true);
    case 22:
      return Type(TokenType{});
    case 23: {
      TupleType tuple;
      GW_ASSIGN_OR_RETURN(tuple.elements, reader.TypeRefs());
      return Type(std::move(tuple));
    }
    case 24:
    case 30:
      return Type(OtherType{"quantized"});
    case 25:
      return Type(OtherType{"unranked tensor"});
    case 33:
      return Type(NoneType{});
    case 41: {
      BufferType buffer;
      GW_ASSIGN_OR_RETURN(buffer.dimensions, reader.cursor().SignedVarints());
      GW_ASSIGN_OR_RETURN(buffer.element, reader.TypeRef());
      return Type(std::move(buffer));
    }
    case 42: {
      FutureType future;
      GW_ASSIGN_OR_RETURN(future.types, reader.TypeRefs());
      return Type(std::move(future));
    }
    default:
      return Type(OtherType{absl::StrCat("vhlo code ", code)});
  }
}

}  // namespace gangway::bytecode

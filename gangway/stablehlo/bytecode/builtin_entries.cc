// Bytecode of MLIR's builtin dialect: attributes (with locations) and types.
#include <utility>

#include "gangway/base/status.h"
#include "gangway/stablehlo/bytecode/field_reader.h"

namespace gangway::bytecode {
namespace {

absl::StatusOr<Attribute> SymbolRef(FieldReader& reader, bool nested) {
  SymbolAttr symbol;
  GW_ASSIGN_OR_RETURN(symbol.name, reader.StringAttribute());
  if (nested) {
    GW_ASSIGN_OR_RETURN(std::vector<AttributeId> path, reader.AttributeRefs());
    if (!path.empty()) return Attribute(OtherAttr{"nested symbol"});
  }
  return Attribute(symbol);
}

absl::StatusOr<Attribute> FileLineColumn(FieldReader& reader) {
  FileLocation location;
  GW_ASSIGN_OR_RETURN(location.file, reader.StringAttribute());
  GW_ASSIGN_OR_RETURN(uint64_t line, reader.cursor().Varint());
  GW_ASSIGN_OR_RETURN(uint64_t column, reader.cursor().Varint());
  location.line = location.end_line = static_cast<int64_t>(line);
  location.column = location.end_column = static_cast<int64_t>(column);
  return Attribute(location);
}

// The length of the number list says which numbers they are.
absl::StatusOr<Attribute> FileLineColumnRange(FieldReader& reader) {
  FileLocation location;
  GW_ASSIGN_OR_RETURN(location.file, reader.StringAttribute());
  GW_ASSIGN_OR_RETURN(size_t count, reader.cursor().Count("line numbers"));
  if (count > 4) return reader.cursor().Error("more than four numbers in a file location");
  int64_t numbers[4] = {};
  for (size_t i = 0; i < count; ++i) {
    GW_ASSIGN_OR_RETURN(uint64_t number, reader.cursor().Varint());
    numbers[i] = static_cast<int64_t>(number);
  }
  location.line = location.end_line = numbers[0];
  location.column = location.end_column = numbers[1];
  if (count == 3) location.end_column = numbers[2];
  if (count == 4) {
    location.end_line = numbers[2];
    location.end_column = numbers[3];
  }
  return Attribute(location);
}

absl::StatusOr<Attribute> DenseArray(FieldReader& reader) {
  DenseArrayAttr array;
  GW_ASSIGN_OR_RETURN(array.element, reader.TypeRef());
  GW_ASSIGN_OR_RETURN(array.count, reader.cursor().Varint());
  GW_ASSIGN_OR_RETURN(array.data, reader.cursor().Blob());
  return Attribute(array);
}

absl::StatusOr<Scalar> IntegerScalar(uint64_t width, uint64_t signedness) {
  const bool is_unsigned = signedness == 2;
  switch (width) {
    case 1:
      return Scalar::kBool;
    case 2:
      return is_unsigned ? Scalar::kU2 : Scalar::kS2;
    case 4:
      return is_unsigned ? Scalar::kU4 : Scalar::kS4;
    case 8:
      return is_unsigned ? Scalar::kU8 : Scalar::kS8;
    case 16:
      return is_unsigned ? Scalar::kU16 : Scalar::kS16;
    case 32:
      return is_unsigned ? Scalar::kU32 : Scalar::kS32;
    case 64:
      return is_unsigned ? Scalar::kU64 : Scalar::kS64;
    default:
      return absl::NotFoundError("");
  }
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

}  // namespace

absl::StatusOr<Attribute> DecodeBuiltinAttribute(uint64_t code, FieldReader& reader) {
  switch (code) {
    case 0: {
      ArrayAttr array;
      GW_ASSIGN_OR_RETURN(array.elements, reader.AttributeRefs());
      return Attribute(std::move(array));
    }
    case 1: {
      DictionaryAttr dictionary;
      GW_ASSIGN_OR_RETURN(dictionary.entries, reader.DictionaryEntries());
      return Attribute(std::move(dictionary));
    }
    case 2: {
      GW_ASSIGN_OR_RETURN(absl::string_view text, reader.String());
      return Attribute(StringAttr{text});
    }
    case 3: {
      GW_ASSIGN_OR_RETURN(absl::string_view text, reader.String());
      GW_RETURN_IF_ERROR(reader.TypeRef().status());
      return Attribute(StringAttr{text});
    }
    case 4:
      return SymbolRef(reader, /*nested=*/false);
    case 5:
      return SymbolRef(reader, /*nested=*/true);
    case 6: {
      GW_ASSIGN_OR_RETURN(TypeId type, reader.TypeRef());
      return Attribute(TypeAttr{type});
    }
    case 7:
      return Attribute(UnitAttr{});
    case 8: {
      GW_ASSIGN_OR_RETURN(IntegerAttr integer, reader.Integer());
      GW_ASSIGN_OR_RETURN(Scalar scalar, reader.entries().scalar(integer.type));
      if (scalar == Scalar::kBool) return Attribute(BoolAttr{integer.value != 0});
      return Attribute(integer);
    }
    case 9: {
      GW_ASSIGN_OR_RETURN(FloatAttr value, reader.Float());
      return Attribute(value);
    }
    case 10: {
      GW_ASSIGN_OR_RETURN(AttributeId callee, reader.AttributeRef());
      GW_ASSIGN_OR_RETURN(AttributeId caller, reader.AttributeRef());
      return Attribute(CallSiteLocation{callee, caller});
    }
    case 11:
      return FileLineColumn(reader);
    case 12:
    case 13: {
      FusedLocation fused;
      GW_ASSIGN_OR_RETURN(fused.parts, reader.AttributeRefs());
      if (code == 13) GW_RETURN_IF_ERROR(reader.AttributeRef().status());
      return Attribute(std::move(fused));
    }
    case 14: {
      NameLocation name;
      GW_ASSIGN_OR_RETURN(name.name, reader.StringAttribute());
      GW_ASSIGN_OR_RETURN(name.child, reader.AttributeRef());
      return Attribute(name);
    }
    case 15:
      return Attribute(UnknownLocation{});
    case 17:
      return DenseArray(reader);
    case 18: {
      DenseAttr dense;
      GW_ASSIGN_OR_RETURN(dense.type, reader.TypeRef());
      GW_ASSIGN_OR_RETURN(dense.data, reader.cursor().Blob());
      return Attribute(dense);
    }
    case 22:
      return FileLineColumnRange(reader);
    default:
      return Attribute(OtherAttr{absl::StrCat("builtin code ", code)});
  }
}

absl::StatusOr<Type> DecodeBuiltinType(uint64_t code, FieldReader& reader) {
  switch (code) {
    case 0: {
      GW_ASSIGN_OR_RETURN(uint64_t value, reader.cursor().Varint());
      absl::StatusOr<Scalar> scalar = IntegerScalar(value >> 2, value & 3);
      if (!scalar.ok()) return Type(OtherType{absl::StrCat("i", value >> 2)});
      return Type(ScalarType{*scalar});
    }
    case 1:
      return Type(ScalarType{Scalar::kIndex});
    case 2: {
      FunctionType function;
      GW_ASSIGN_OR_RETURN(function.inputs, reader.TypeRefs());
      GW_ASSIGN_OR_RETURN(function.results, reader.TypeRefs());
      return Type(std::move(function));
    }
    case 3:
      return Type(ScalarType{Scalar::kBF16});
    case 4:
      return Type(ScalarType{Scalar::kF16});
    case 5:
      return Type(ScalarType{Scalar::kF32});
    case 6:
      return Type(ScalarType{Scalar::kF64});
    case 9: {
      GW_ASSIGN_OR_RETURN(TypeId element, reader.TypeRef());
      return Type(ComplexType{element});
    }
    case 12:
      return Type(NoneType{});
    case 13:
      return Tensor(reader, /*with_encoding=*/false);
    case 14:
      return Tensor(reader, /*with_encoding=*/true);
    case 15: {
      TupleType tuple;
      GW_ASSIGN_OR_RETURN(tuple.elements, reader.TypeRefs());
      return Type(std::move(tuple));
    }
    case 21:
      return Type(ScalarType{Scalar::kTF32});
    case 22:
      return Type(ScalarType{Scalar::kF8E5M2});
    case 23:
      return Type(ScalarType{Scalar::kF8E4M3});
    case 24:
      return Type(ScalarType{Scalar::kF8E4M3FN});
    case 25:
      return Type(ScalarType{Scalar::kF8E5M2FNUZ});
    case 26:
      return Type(ScalarType{Scalar::kF8E4M3FNUZ});
    case 27:
      return Type(ScalarType{Scalar::kF8E4M3B11FNUZ});
    case 28:
      return Type(ScalarType{Scalar::kF8E3M4});
    case 29:
      return Type(ScalarType{Scalar::kF4E2M1FN});
    case 30:
      return Type(ScalarType{Scalar::kF6E2M3FN});
    case 31:
      return Type(ScalarType{Scalar::kF6E3M2FN});
    case 32:
      return Type(ScalarType{Scalar::kF8E8M0FNU});
    default:
      return Type(OtherType{absl::StrCat("builtin code ", code)});
  }
}

Type DecodeTypeText(absl::string_view text) {
  for (int i = 0; i <= static_cast<int>(Scalar::kIndex); ++i) {
    if (ScalarName(static_cast<Scalar>(i)) == text) return ScalarType{static_cast<Scalar>(i)};
  }
  if (text == "none") return NoneType{};
  return OtherType{std::string(text.substr(0, 60))};
}

}  // namespace gangway::bytecode

#include "gangway/stablehlo/attribute_text.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gangway/base/status.h"
#include "gangway/stablehlo/elements.h"

namespace gangway::stablehlo {
namespace {

using bytecode::AttributeId;
using bytecode::Entries;
using bytecode::Scalar;

constexpr int kMaxDepth = 16;
constexpr size_t kMaxText = size_t{1} << 20;

std::string Quote(absl::string_view text) {
  std::string quoted = "\"";
  for (unsigned char c : text) {
    if (c == '\\') {
      quoted += "\\\\";
    } else if (c == '"' || !absl::ascii_isprint(c)) {
      absl::StrAppendFormat(&quoted, "\\%02X", c);
    } else {
      quoted += static_cast<char>(c);
    }
  }
  return quoted + "\"";
}

std::string Key(absl::string_view key) {
  bool bare = !key.empty() && (absl::ascii_isalpha(key[0]) || key[0] == '_');
  for (char c : key) bare = bare && (absl::ascii_isalnum(c) || c == '_' || c == '$' || c == '.');
  return bare ? std::string(key) : Quote(key);
}

std::string FloatBits(Scalar scalar, uint64_t bits) {
  return absl::StrFormat("0x%0*X", (bytecode::ScalarBits(scalar) + 3) / 4, bits);
}

// Little-endian bytes of an element of a dense array.
std::string DenseArrayElement(Scalar scalar, absl::string_view bytes) {
  uint64_t bits = 0;
  for (size_t i = 0; i < bytes.size(); ++i) bits |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  if (scalar == Scalar::kBool) return bits != 0 ? "true" : "false";
  if (bytecode::IsFloat(scalar)) return FloatBits(scalar, bits);
  const int unused = 64 - static_cast<int>(8 * bytes.size());
  return absl::StrCat(static_cast<int64_t>(bits << unused) >> unused);
}

absl::StatusOr<std::string> PrintDenseArray(const Entries& entries, const bytecode::DenseArrayAttr& array) {
  GW_ASSIGN_OR_RETURN(Scalar scalar, entries.scalar(array.element));
  const uint64_t width = static_cast<uint64_t>((bytecode::ScalarBits(scalar) + 7) / 8);
  if (array.count > array.data.size() || array.data.size() != array.count * width || width > 8) {
    return absl::InvalidArgumentError("a dense array's data has the wrong size");
  }
  std::vector<std::string> elements;
  for (uint64_t i = 0; i < array.count; ++i) {
    elements.push_back(DenseArrayElement(scalar, array.data.substr(i * width, width)));
  }
  return absl::StrCat("array<", bytecode::ScalarName(scalar), elements.empty() ? "" : ": ",
                      absl::StrJoin(elements, ", "), ">");
}

absl::StatusOr<std::string> PrintDense(const Entries& entries, const bytecode::DenseAttr& dense) {
  GW_ASSIGN_OR_RETURN(DenseLiteral literal, ReadLiteral(entries, dense));
  const DType dtype = literal.shape.dtype();
  if (dtype == DType::kPred || IsComplex(dtype) || BitWidth(dtype) < 8) {
    return absl::UnimplementedError(absl::StrCat("a tensor of ", DTypeName(dtype), " as an attribute"));
  }
  GW_ASSIGN_OR_RETURN(const bytecode::Type* type, entries.type(dense.type));
  GW_ASSIGN_OR_RETURN(Scalar scalar, entries.scalar(std::get<bytecode::TensorType>(*type).element));
  std::string shape;
  for (int64_t extent : literal.shape.dims()) absl::StrAppend(&shape, extent, "x");
  return absl::StrCat("dense<\"0x", absl::AsciiStrToUpper(absl::BytesToHexString(dense.data)), "\"> : tensor<", shape,
                      bytecode::ScalarName(scalar), ">");
}

absl::StatusOr<std::string> Print(const Entries& entries, AttributeId id, int depth, size_t& budget);

absl::StatusOr<std::string> PrintDictionary(const Entries& entries, const bytecode::DictionaryAttr& dictionary,
                                            int depth, size_t& budget) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : dictionary.entries) {
    GW_ASSIGN_OR_RETURN_WITH(std::string text, Print(entries, value, depth + 1, budget), absl::StrCat("entry ", key));
    parts.push_back(absl::StrCat(Key(key), " = ", text));
  }
  return absl::StrCat("{", absl::StrJoin(parts, ", "), "}");
}

absl::StatusOr<std::string> PrintArray(const Entries& entries, const bytecode::ArrayAttr& array, int depth,
                                       size_t& budget) {
  std::vector<std::string> parts;
  for (AttributeId element : array.elements) {
    GW_ASSIGN_OR_RETURN(std::string text, Print(entries, element, depth + 1, budget));
    parts.push_back(std::move(text));
  }
  return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
}

absl::StatusOr<std::string> PrintOne(const Entries& entries, const bytecode::Attribute& attribute, int depth,
                                     size_t& budget) {
  if (const auto* value = std::get_if<bytecode::BoolAttr>(&attribute))
    return std::string(value->value ? "true" : "false");
  if (const auto* value = std::get_if<bytecode::StringAttr>(&attribute)) return Quote(value->value);
  if (std::holds_alternative<bytecode::UnitAttr>(attribute)) return std::string("unit");
  if (const auto* value = std::get_if<bytecode::IntegerAttr>(&attribute)) {
    GW_ASSIGN_OR_RETURN(Scalar scalar, entries.scalar(value->type));
    const std::string number =
        scalar == Scalar::kU64 ? absl::StrCat(static_cast<uint64_t>(value->value)) : absl::StrCat(value->value);
    return absl::StrCat(number, " : ", bytecode::ScalarName(scalar));
  }
  if (const auto* value = std::get_if<bytecode::FloatAttr>(&attribute)) {
    GW_ASSIGN_OR_RETURN(Scalar scalar, entries.scalar(value->type));
    return absl::StrCat(FloatBits(scalar, value->bits), " : ", bytecode::ScalarName(scalar));
  }
  if (const auto* value = std::get_if<bytecode::DenseArrayAttr>(&attribute)) return PrintDenseArray(entries, *value);
  if (const auto* value = std::get_if<bytecode::DenseAttr>(&attribute)) return PrintDense(entries, *value);
  if (const auto* value = std::get_if<bytecode::ArrayAttr>(&attribute)) {
    return PrintArray(entries, *value, depth, budget);
  }
  if (const auto* value = std::get_if<bytecode::DictionaryAttr>(&attribute)) {
    return PrintDictionary(entries, *value, depth, budget);
  }
  return absl::UnimplementedError(absl::StrCat(bytecode::AttributeKind(attribute), " as an attribute of a call"));
}

// Attributes may refer to each other in a circle, hence the depth; and to one another many times, hence the budget.
absl::StatusOr<std::string> Print(const Entries& entries, AttributeId id, int depth, size_t& budget) {
  if (depth > kMaxDepth) return absl::InvalidArgumentError("attributes nested too deep");
  GW_ASSIGN_OR_RETURN(const bytecode::Attribute* attribute, entries.attribute(id));
  GW_ASSIGN_OR_RETURN(std::string text, PrintOne(entries, *attribute, depth, budget));
  if (text.size() + 1 > budget) return absl::InvalidArgumentError("the text of an attribute is too long");
  budget -= text.size() + 1;
  return text;
}

}  // namespace

absl::StatusOr<std::string> PrintAttribute(const Entries& entries, AttributeId id) {
  size_t budget = kMaxText;
  return Print(entries, id, 0, budget);
}

}  // namespace gangway::stablehlo

#include "gangway/stablehlo/op_view.h"

#include "absl/strings/str_split.h"
#include "gangway/stablehlo/bytecode/field_reader.h"
#include "gangway/stablehlo/elements.h"
#include "gangway/stablehlo/schema.h"

namespace gangway::stablehlo {

using bytecode::AttributeId;

absl::StatusOr<OpView> OpView::Make(const bytecode::Artifact& artifact, const bytecode::Operation& op) {
  OpView view(artifact, op);
  const OpSchema* schema = FindSchema(view.name_);
  if (schema == nullptr) {
    return absl::UnimplementedError(absl::StrCat("op ", view.Describe(), " is not known to this reader"));
  }
  GW_RETURN_IF_ERROR_WITH(view.ReadProperties(schema->attributes), view.Describe());
  GW_RETURN_IF_ERROR_WITH(view.ReadDictionary(), view.Describe());
  return view;
}

// Required properties are plain references, optional ones flagged references; nothing else.
absl::Status OpView::ReadProperties(absl::string_view schema) {
  if (!op_->properties.has_value()) return absl::OkStatus();
  bytecode::FieldReader reader(artifact_->entries(), op_->properties->cursor());
  for (absl::string_view attribute : absl::StrSplit(schema, ' ', absl::SkipEmpty())) {
    if (attribute.back() == '?') {
      GW_ASSIGN_OR_RETURN(std::optional<AttributeId> value, reader.OptionalAttributeRef());
      if (value.has_value()) attributes_.emplace_back(attribute.substr(0, attribute.size() - 1), *value);
    } else {
      GW_ASSIGN_OR_RETURN(AttributeId value, reader.AttributeRef());
      attributes_.emplace_back(attribute, value);
    }
  }
  return reader.cursor().ExpectDone("the properties");
}

absl::Status OpView::ReadDictionary() {
  if (!op_->dictionary.has_value()) return absl::OkStatus();
  GW_ASSIGN_OR_RETURN(const bytecode::DictionaryAttr* dictionary,
                      artifact_->entries().attribute_as<bytecode::DictionaryAttr>(*op_->dictionary));
  attributes_.insert(attributes_.end(), dictionary->entries.begin(), dictionary->entries.end());
  return absl::OkStatus();
}

std::optional<AttributeId> OpView::Find(absl::string_view attribute) const {
  for (const auto& [name, id] : attributes_) {
    if (name == attribute) return id;
  }
  return std::nullopt;
}

absl::StatusOr<AttributeId> OpView::Attribute(absl::string_view attribute) const {
  std::optional<AttributeId> found = Find(attribute);
  if (!found.has_value()) return absl::InvalidArgumentError(absl::StrCat(Context(attribute), " is missing"));
  return *found;
}

absl::StatusOr<int64_t> OpView::Int(absl::string_view attribute) const {
  GW_ASSIGN_OR_RETURN(const bytecode::IntegerAttr* value, As<bytecode::IntegerAttr>(attribute));
  return value->value;
}

absl::StatusOr<bool> OpView::Bool(absl::string_view attribute) const {
  GW_ASSIGN_OR_RETURN(const bytecode::BoolAttr* value, As<bytecode::BoolAttr>(attribute));
  return value->value;
}

absl::StatusOr<absl::string_view> OpView::String(absl::string_view attribute) const {
  GW_ASSIGN_OR_RETURN(const bytecode::StringAttr* value, As<bytecode::StringAttr>(attribute));
  return value->value;
}

absl::StatusOr<DimVector> OpView::Ints(absl::string_view attribute) const {
  GW_ASSIGN_OR_RETURN(const bytecode::DenseAttr* dense, As<bytecode::DenseAttr>(attribute));
  GW_ASSIGN_OR_RETURN_WITH(IntegerTensor tensor, ReadIntegers(artifact_->entries(), *dense), Context(attribute));
  return std::move(tensor.values);
}

absl::StatusOr<std::vector<std::vector<int64_t>>> OpView::IntRows(absl::string_view attribute) const {
  GW_ASSIGN_OR_RETURN(const bytecode::DenseAttr* dense, As<bytecode::DenseAttr>(attribute));
  GW_ASSIGN_OR_RETURN_WITH(IntegerTensor tensor, ReadIntegers(artifact_->entries(), *dense), Context(attribute));
  if (tensor.dims.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(Context(attribute), ": expected a tensor of rank 2, found rank ", tensor.dims.size()));
  }
  std::vector<std::vector<int64_t>> rows;
  const int64_t columns = tensor.dims[1];
  if (columns == 0) return rows;
  for (auto row = tensor.values.begin(); row != tensor.values.end(); row += columns)
    rows.emplace_back(row, row + columns);
  return rows;
}

absl::StatusOr<uint64_t> OpView::Enum(absl::string_view attribute, bytecode::EnumKind kind, uint64_t count) const {
  GW_ASSIGN_OR_RETURN(const bytecode::EnumAttr* value, As<bytecode::EnumAttr>(attribute));
  if (value->kind != kind || value->value >= count) {
    return absl::InvalidArgumentError(absl::StrCat(Context(attribute), ": not a value of this enum: ", value->value));
  }
  return value->value;
}

absl::StatusOr<std::vector<AttributeId>> OpView::Array(absl::string_view attribute) const {
  GW_ASSIGN_OR_RETURN(const bytecode::ArrayAttr* array, As<bytecode::ArrayAttr>(attribute));
  return array->elements;
}

absl::StatusOr<OpView::Dictionary> OpView::DictionaryOrEmpty(absl::string_view attribute) const {
  if (!Find(attribute).has_value()) return Dictionary();
  GW_ASSIGN_OR_RETURN(const bytecode::DictionaryAttr* dictionary, As<bytecode::DictionaryAttr>(attribute));
  return dictionary->entries;
}

std::string OpView::Describe() const { return absl::StrCat(name_, " at byte ", op_->offset); }

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> StringEntries(const bytecode::Entries& entries,
                                                                               const OpView::Dictionary& dictionary) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const auto& [key, id] : dictionary) {
    GW_ASSIGN_OR_RETURN_WITH(const bytecode::StringAttr* text, entries.attribute_as<bytecode::StringAttr>(id),
                             absl::StrCat("entry ", key));
    result.emplace_back(std::string(key), std::string(text->value));
  }
  return result;
}

}  // namespace gangway::stablehlo

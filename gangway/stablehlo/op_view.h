// OpView: one operation of an artifact with its attributes by name, and typed access to them.
//
// Borrows artifact and operation. Getters fail with the attribute named: "attribute permutation: expected a tensor,
// found a string"; the caller adds the op (Describe).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/base/status.h"
#include "gangway/stablehlo/bytecode/artifact.h"
#include "gangway/tensor/shape.h"

namespace gangway::stablehlo {

class OpView {
 public:
  // Fails when the op is unknown or its attributes are not those of its schema.
  static absl::StatusOr<OpView> Make(const bytecode::Artifact& artifact, const bytecode::Operation& op);

  const bytecode::Artifact& artifact() const { return *artifact_; }
  const bytecode::Operation& op() const { return *op_; }
  absl::string_view name() const { return name_; }

  std::optional<bytecode::AttributeId> Find(absl::string_view attribute) const;
  absl::StatusOr<bytecode::AttributeId> Attribute(absl::string_view attribute) const;
  template <typename T>
  absl::StatusOr<const T*> As(absl::string_view attribute) const {
    GW_ASSIGN_OR_RETURN(bytecode::AttributeId id, Attribute(attribute));
    GW_ASSIGN_OR_RETURN_WITH(const T* value, artifact_->entries().attribute_as<T>(id), Context(attribute));
    return value;
  }

  absl::StatusOr<int64_t> Int(absl::string_view attribute) const;
  absl::StatusOr<bool> Bool(absl::string_view attribute) const;
  absl::StatusOr<absl::string_view> String(absl::string_view attribute) const;
  // A tensor of integers or bools of any rank, flattened.
  absl::StatusOr<DimVector> Ints(absl::string_view attribute) const;
  // A tensor of rank 2.
  absl::StatusOr<std::vector<std::vector<int64_t>>> IntRows(absl::string_view attribute) const;
  // Below `count`.
  absl::StatusOr<uint64_t> Enum(absl::string_view attribute, bytecode::EnumKind kind, uint64_t count) const;
  absl::StatusOr<std::vector<bytecode::AttributeId>> Array(absl::string_view attribute) const;

  // An entry of a dictionary attribute, e.g. of "mhlo.frontend_attributes"; empty when either is absent.
  using Dictionary = std::vector<std::pair<absl::string_view, bytecode::AttributeId>>;
  absl::StatusOr<Dictionary> DictionaryOrEmpty(absl::string_view attribute) const;

  static std::string Context(absl::string_view attribute) { return absl::StrCat("attribute ", attribute); }
  // "vhlo.add_v1 at byte 1234".
  std::string Describe() const;

 private:
  OpView(const bytecode::Artifact& artifact, const bytecode::Operation& op)
      : artifact_(&artifact), op_(&op), name_(op.name.ToString()) {}
  absl::Status ReadProperties(absl::string_view schema);
  absl::Status ReadDictionary();

  const bytecode::Artifact* artifact_;
  const bytecode::Operation* op_;
  std::string name_;
  Dictionary attributes_;
};

// The entries of a dictionary whose values are all strings.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> StringEntries(const bytecode::Entries& entries,
                                                                               const OpView::Dictionary& dictionary);

}  // namespace gangway::stablehlo

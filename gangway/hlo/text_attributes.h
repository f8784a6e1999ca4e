// The attributes of instructions in HLO text, `, dimensions={1}, to_apply=%add`: a reader and a writer per family.
// Internal to hlo/.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gangway/base/status.h"
#include "gangway/hlo/instruction.h"
#include "gangway/hlo/text_lexer.h"

namespace gangway::hlo {

// The key=value pairs after an instruction or a module's name. Readers take what they know; Rest() is kept verbatim.
class AttributeText {
 public:
  // Reads `, key=value` as long as there is a comma.
  static absl::StatusOr<AttributeText> Read(TextLexer* lexer);

  // The value's text, taken out.
  std::optional<TextLexer> Take(absl::string_view key);
  std::optional<std::string> TakeRaw(absl::string_view key);
  // Absent: `fallback`, or an error where that is nullopt.
  absl::StatusOr<int64_t> TakeInt(absl::string_view key, std::optional<int64_t> fallback = std::nullopt);
  absl::StatusOr<bool> TakeBool(absl::string_view key);           // absent: false
  absl::StatusOr<DimVector> TakeDims(absl::string_view key);      // {0,1}; absent: none
  absl::StatusOr<std::string> TakeWord(absl::string_view key);    // absent: ""
  absl::StatusOr<std::string> TakeString(absl::string_view key);  // "..." or {...} verbatim; absent: ""

  std::string Rest() const;  // ", key=value" of what nobody took

 private:
  struct Entry {
    absl::string_view key, value;
    bool taken = false;
  };
  explicit AttributeText(absl::string_view whole) : whole_(whole) {}
  Entry* Find(absl::string_view key);

  absl::string_view whole_;
  std::vector<Entry> entries_;
};

// Appends attributes to a line.
class AttributeWriter {
 public:
  explicit AttributeWriter(std::string* out) : out_(out) {}
  template <typename Value>
  void Add(absl::string_view key, const Value& value) {
    absl::StrAppend(out_, ", ", key, "=", value);
  }
  void AddIf(bool present, absl::string_view key, absl::string_view value) {
    if (present) Add(key, value);
  }
  void Dims(absl::string_view key, const DimVector& dims) {
    Add(key, absl::StrCat("{", absl::StrJoin(dims, ","), "}"));
  }
  void DimsIf(absl::string_view key, const DimVector& dims) {
    if (!dims.empty()) Dims(key, dims);
  }
  void Flag(absl::string_view key, bool value) { AddIf(value, key, "true"); }
  void Quoted(absl::string_view key, absl::string_view value);
  std::string* out() { return out_; }

 private:
  std::string* out_;
};

// What a reader may look at besides the text.
struct AttributeContext {
  Opcode opcode;
  const Shape& shape;
  absl::Span<Instruction* const> operands;
};

struct AttributeRow {
  Opcode opcode;
  absl::StatusOr<Attributes> (*read)(const AttributeContext&, AttributeText*);
  void (*write)(const Instruction&, AttributeWriter*);
};

absl::Span<const AttributeRow> MovementAttributeRows();
absl::Span<const AttributeRow> DotAttributeRows();
absl::Span<const AttributeRow> WindowAttributeRows();
absl::Span<const AttributeRow> GatherAttributeRows();
absl::Span<const AttributeRow> CollectiveAttributeRows();
absl::Span<const AttributeRow> LinalgAttributeRows();
absl::Span<const AttributeRow> EffectAttributeRows();

// The row of an opcode, or null: no attributes in text beyond parentheses and called computations.
const AttributeRow* AttributeRowOf(Opcode opcode);

// operand_precision={highest,default}, algorithm=...; shared by dot and convolution.
absl::StatusOr<PrecisionConfig> ReadPrecision(AttributeText* text);
void WritePrecision(const PrecisionConfig& precision, AttributeWriter* writer);

// {[key=]value...} maps: {a="b",c={...}}.
absl::StatusOr<FrontendAttributes> ReadFrontendAttributes(TextLexer lexer);
std::string PrintFrontendAttributes(const FrontendAttributes& attributes);

// A string as XLA quotes it: braced text as it is, anything else in quotes with C escapes.
std::string PrintStringOrBraced(absl::string_view text);

// metadata={op_name="..." stack_frame_id=1}
absl::StatusOr<OpMetadata> ReadMetadata(TextLexer lexer);
std::string PrintMetadata(const OpMetadata& metadata);

}  // namespace gangway::hlo

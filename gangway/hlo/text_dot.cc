// Text of dot's dimension numbers and of precision.
#include "gangway/hlo/attribute_names.h"
#include "gangway/hlo/text_attributes.h"

namespace gangway::hlo {
namespace {

absl::StatusOr<Attributes> ReadDot(const AttributeContext&, AttributeText* text) {
  DotAttr attr;
  GW_ASSIGN_OR_RETURN(attr.lhs_batch, text->TakeDims("lhs_batch_dims"));
  GW_ASSIGN_OR_RETURN(attr.lhs_contracting, text->TakeDims("lhs_contracting_dims"));
  GW_ASSIGN_OR_RETURN(attr.rhs_batch, text->TakeDims("rhs_batch_dims"));
  GW_ASSIGN_OR_RETURN(attr.rhs_contracting, text->TakeDims("rhs_contracting_dims"));
  GW_ASSIGN_OR_RETURN(attr.precision, ReadPrecision(text));
  return Attributes(std::move(attr));
}

void WriteDot(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<DotAttr>();
  writer->DimsIf("lhs_batch_dims", attr.lhs_batch);
  writer->DimsIf("lhs_contracting_dims", attr.lhs_contracting);
  writer->DimsIf("rhs_batch_dims", attr.rhs_batch);
  writer->DimsIf("rhs_contracting_dims", attr.rhs_contracting);
  WritePrecision(attr.precision, writer);
}

constexpr AttributeRow kRows[] = {
    {Opcode::kDot, ReadDot, WriteDot},
};

}  // namespace

absl::StatusOr<PrecisionConfig> ReadPrecision(AttributeText* text) {
  PrecisionConfig precision;
  if (std::optional<TextLexer> lexer = text->Take("operand_precision")) {
    GW_RETURN_IF_ERROR(lexer->Expect("{"));
    while (!lexer->Consume("}")) {
      if (!precision.operands.empty()) GW_RETURN_IF_ERROR(lexer->Expect(","));
      TextLexer here = *lexer;
      GW_ASSIGN_OR_RETURN(absl::string_view name, lexer->Name());
      std::optional<Precision> value = ValueOf<Precision>(name);
      if (!value.has_value()) return here.Error("a precision");
      precision.operands.push_back(*value);
    }
  }
  GW_ASSIGN_OR_RETURN(std::string algorithm, text->TakeWord("algorithm"));
  if (algorithm.empty() || algorithm == "alg_unset") return precision;
  for (const NamedValue<int>& entry : DotAlgorithmNames()) {
    if (entry.name == algorithm) {
      precision.algorithm = entry.value;
      return precision;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown algorithm ", algorithm));
}

void WritePrecision(const PrecisionConfig& precision, AttributeWriter* writer) {
  bool all_default = true;
  for (Precision operand : precision.operands) all_default &= operand == Precision::kDefault;
  if (!all_default) {
    std::string text = absl::StrJoin(
        precision.operands, ",", [](std::string* out, Precision operand) { absl::StrAppend(out, NameOf(operand)); });
    writer->Add("operand_precision", absl::StrCat("{", text, "}"));
  }
  for (const NamedValue<int>& entry : DotAlgorithmNames()) {
    if (entry.value == precision.algorithm) writer->Add("algorithm", entry.name);
  }
}

absl::Span<const AttributeRow> DotAttributeRows() { return kRows; }

}  // namespace gangway::hlo

// Text of comparisons, sorts, random numbers, linear algebra and batch normalization.
#include "gangway/hlo/attribute_names.h"
#include "gangway/hlo/text_attributes.h"

namespace gangway::hlo {
namespace {

// A word of an enumeration; absent: `fallback`, or an error where that is nullopt.
template <typename Enum>
absl::StatusOr<Enum> TakeEnum(AttributeText* text, absl::string_view key, std::optional<Enum> fallback = std::nullopt) {
  GW_ASSIGN_OR_RETURN(std::string word, text->TakeWord(key));
  std::optional<Enum> value = word.empty() ? fallback : ValueOf<Enum>(word);
  if (!value.has_value()) return absl::InvalidArgumentError(absl::StrCat("attribute ", key, ": unknown '", word, "'"));
  return *value;
}

absl::StatusOr<Attributes> ReadCompare(const AttributeContext&, AttributeText* text) {
  CompareAttr attr;
  GW_ASSIGN_OR_RETURN(attr.direction, TakeEnum<ComparisonDirection>(text, "direction"));
  GW_ASSIGN_OR_RETURN(attr.type, TakeEnum(text, "type", std::optional(ComparisonType::kDefault)));
  GW_ASSIGN_OR_RETURN(std::string order, text->TakeWord("order"));
  if (!order.empty() && order != "TOTAL" && order != "PARTIAL") {
    return absl::InvalidArgumentError(absl::StrCat("attribute order: unknown '", order, "'"));
  }
  attr.order_total = order == "TOTAL";
  return Attributes(attr);
}

void WriteCompare(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<CompareAttr>();
  writer->Add("direction", NameOf(attr.direction));
  writer->AddIf(attr.type != ComparisonType::kDefault, "type", NameOf(attr.type));
  writer->AddIf(attr.order_total, "order", "TOTAL");
}

absl::StatusOr<Attributes> ReadSort(const AttributeContext&, AttributeText* text) {
  SortAttr attr;
  GW_ASSIGN_OR_RETURN(DimVector dims, text->TakeDims("dimensions"));
  if (dims.size() > 1) return absl::InvalidArgumentError("dimensions must name one");
  if (!dims.empty()) attr.dimension = dims[0];
  GW_ASSIGN_OR_RETURN(attr.is_stable, text->TakeBool("is_stable"));
  return Attributes(attr);
}

void WriteSort(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<SortAttr>();
  writer->Dims("dimensions", {attr.dimension});
  writer->Flag("is_stable", attr.is_stable);
}

absl::StatusOr<Attributes> ReadTopK(const AttributeContext&, AttributeText* text) {
  TopKAttr attr;
  GW_ASSIGN_OR_RETURN(attr.k, text->TakeInt("k"));
  GW_ASSIGN_OR_RETURN(attr.largest, text->TakeBool("largest"));
  return Attributes(attr);
}

void WriteTopK(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<TopKAttr>();
  writer->Add("k", attr.k);
  writer->Add("largest", attr.largest ? "true" : "false");
}

absl::StatusOr<Attributes> ReadRng(const AttributeContext&, AttributeText* text) {
  GW_ASSIGN_OR_RETURN(RngDistribution distribution, TakeEnum<RngDistribution>(text, "distribution"));
  return Attributes(RngAttr{distribution});
}

void WriteRng(const Instruction& instruction, AttributeWriter* writer) {
  writer->Add("distribution", NameOf(instruction.attr<RngAttr>().distribution));
}

absl::StatusOr<Attributes> ReadRngBits(const AttributeContext&, AttributeText* text) {
  GW_ASSIGN_OR_RETURN(RngAlgorithm algorithm, TakeEnum<RngAlgorithm>(text, "algorithm"));
  return Attributes(RngBitGeneratorAttr{algorithm});
}

void WriteRngBits(const Instruction& instruction, AttributeWriter* writer) {
  writer->Add("algorithm", NameOf(instruction.attr<RngBitGeneratorAttr>().algorithm));
}

absl::StatusOr<Attributes> ReadRngState(const AttributeContext&, AttributeText* text) {
  GW_ASSIGN_OR_RETURN(int64_t delta, text->TakeInt("delta"));
  return Attributes(RngStateAttr{delta});
}

void WriteRngState(const Instruction& instruction, AttributeWriter* writer) {
  writer->Add("delta", instruction.attr<RngStateAttr>().delta);
}

absl::StatusOr<Attributes> ReadFft(const AttributeContext&, AttributeText* text) {
  FftAttr attr;
  GW_ASSIGN_OR_RETURN(attr.type, TakeEnum<FftType>(text, "fft_type"));
  GW_ASSIGN_OR_RETURN(attr.lengths, text->TakeDims("fft_length"));
  return Attributes(std::move(attr));
}

void WriteFft(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<FftAttr>();
  writer->Add("fft_type", NameOf(attr.type));
  writer->Dims("fft_length", attr.lengths);
}

absl::StatusOr<Attributes> ReadTriangularSolve(const AttributeContext&, AttributeText* text) {
  TriangularSolveAttr attr;
  GW_ASSIGN_OR_RETURN(attr.left_side, text->TakeBool("left_side"));
  GW_ASSIGN_OR_RETURN(attr.lower, text->TakeBool("lower"));
  GW_ASSIGN_OR_RETURN(attr.unit_diagonal, text->TakeBool("unit_diagonal"));
  GW_ASSIGN_OR_RETURN(attr.transpose_a, TakeEnum(text, "transpose_a", std::optional(Transposition::kInvalid)));
  return Attributes(attr);
}

void WriteTriangularSolve(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<TriangularSolveAttr>();
  writer->Flag("left_side", attr.left_side);
  writer->Flag("lower", attr.lower);
  writer->Flag("unit_diagonal", attr.unit_diagonal);
  writer->AddIf(attr.transpose_a != Transposition::kInvalid, "transpose_a", NameOf(attr.transpose_a));
}

absl::StatusOr<Attributes> ReadCholesky(const AttributeContext&, AttributeText* text) {
  GW_ASSIGN_OR_RETURN(bool lower, text->TakeBool("lower"));
  return Attributes(CholeskyAttr{lower});
}

void WriteCholesky(const Instruction& instruction, AttributeWriter* writer) {
  writer->Flag("lower", instruction.attr<CholeskyAttr>().lower);
}

absl::StatusOr<Attributes> ReadBatchNorm(const AttributeContext&, AttributeText* text) {
  BatchNormAttr attr;
  if (std::optional<TextLexer> lexer = text->Take("epsilon")) {
    GW_ASSIGN_OR_RETURN(double epsilon, lexer->Float());
    attr.epsilon = static_cast<float>(epsilon);
  }
  GW_ASSIGN_OR_RETURN(attr.feature, text->TakeInt("feature_index"));
  return Attributes(attr);
}

void WriteBatchNorm(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<BatchNormAttr>();
  writer->Add("epsilon", attr.epsilon);  // six digits, as XLA
  writer->Add("feature_index", attr.feature);
}

absl::StatusOr<Attributes> ReadReducePrecision(const AttributeContext&, AttributeText* text) {
  GW_ASSIGN_OR_RETURN(int64_t exponent, text->TakeInt("exponent_bits"));
  GW_ASSIGN_OR_RETURN(int64_t mantissa, text->TakeInt("mantissa_bits"));
  if (exponent < 0 || exponent > 64 || mantissa < 0 || mantissa > 64) {
    return absl::InvalidArgumentError("exponent_bits and mantissa_bits must be in [0, 64]");
  }
  return Attributes(ReducePrecisionAttr{static_cast<int>(exponent), static_cast<int>(mantissa)});
}

void WriteReducePrecision(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<ReducePrecisionAttr>();
  writer->Add("exponent_bits", attr.exponent_bits);
  writer->Add("mantissa_bits", attr.mantissa_bits);
}

constexpr AttributeRow kRows[] = {
    {Opcode::kBatchNormGrad, ReadBatchNorm, WriteBatchNorm},
    {Opcode::kBatchNormInference, ReadBatchNorm, WriteBatchNorm},
    {Opcode::kBatchNormTraining, ReadBatchNorm, WriteBatchNorm},
    {Opcode::kCholesky, ReadCholesky, WriteCholesky},
    {Opcode::kCompare, ReadCompare, WriteCompare},
    {Opcode::kFft, ReadFft, WriteFft},
    {Opcode::kReducePrecision, ReadReducePrecision, WriteReducePrecision},
    {Opcode::kRng, ReadRng, WriteRng},
    {Opcode::kRngBitGenerator, ReadRngBits, WriteRngBits},
    {Opcode::kRngGetAndUpdateState, ReadRngState, WriteRngState},
    {Opcode::kSort, ReadSort, WriteSort},
    {Opcode::kTopK, ReadTopK, WriteTopK},
    {Opcode::kTriangularSolve, ReadTriangularSolve, WriteTriangularSolve},
};

}  // namespace

absl::Span<const AttributeRow> LinalgAttributeRows() { return kRows; }

}  // namespace gangway::hlo

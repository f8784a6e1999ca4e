#include "gangway/hlo/literal_text.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"

namespace gangway::hlo {
namespace {

constexpr int64_t kMaxLiteralBytes = int64_t{1} << 31;

std::string WithDigits(int digits, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
  return buffer;
}

// Digits after which every value of a small type reads back: ceil(1 + significand bits * log10(2)).
int RoundTripDigits(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 5;
    case DType::kBF16:
      return 4;
    case DType::kF8E4M3:
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E4M3B11FNUZ:
    case DType::kF8E3M4:
    case DType::kF6E2M3FN:
      return 3;
    default:
      return 2;
  }
}

// IEEE formats whose NaNs carry a payload in text: mantissa bits, 0 for others.
int PayloadBits(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 10;
    case DType::kBF16:
      return 7;
    case DType::kF32:
      return 23;
    case DType::kF64:
      return 52;
    default:
      return 0;
  }
}

uint64_t BitsOf(DType dtype, const char* element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, ByteWidth(dtype));  // little endian, as everywhere in this project
  return bits;
}

std::string PrintNan(DType dtype, const char* element) {
  const bool negative = dtype != DType::kF8E8M0FNU && BitsOf(dtype, element) >> (BitWidth(dtype) - 1) != 0;
  const char* text = negative ? "-nan" : "nan";
  const int payload_bits = PayloadBits(dtype);
  if (payload_bits == 0) return text;
  const uint64_t payload = BitsOf(dtype, element) & ((uint64_t{1} << payload_bits) - 1);
  if (payload == uint64_t{1} << (payload_bits - 1)) return text;
  return absl::StrCat(text, "(0x", absl::Hex(payload), ")");
}

std::string PrintFloat(DType dtype, const char* element) {
  const double value = ElementAsDouble(dtype, element);
  if (std::isnan(value)) return PrintNan(dtype, element);
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (dtype == DType::kF32) {
    std::string text = WithDigits(6, value);
    return std::strtof(text.c_str(), nullptr) == static_cast<float>(value) ? text : WithDigits(9, value);
  }
  if (dtype == DType::kF64) {
    std::string text = WithDigits(15, value);
    return std::strtod(text.c_str(), nullptr) == value ? text : WithDigits(17, value);
  }
  return WithDigits(RoundTripDigits(dtype), value);
}

DType PartOf(DType complex) { return complex == DType::kC64 ? DType::kF32 : DType::kF64; }

std::string PrintElement(DType dtype, const char* element, bool scalar) {
  switch (KindOf(dtype)) {
    case DTypeKind::kPred:
      if (scalar) return *element != 0 ? "true" : "false";
      return *element != 0 ? "1" : "0";
    case DTypeKind::kSigned:
      return absl::StrCat(ElementAsInt64(dtype, element));
    case DTypeKind::kUnsigned:
      return absl::StrCat(static_cast<uint64_t>(ElementAsInt64(dtype, element)));
    case DTypeKind::kFloat:
      return PrintFloat(dtype, element);
    case DTypeKind::kComplex: {
      const DType part = PartOf(dtype);
      return absl::StrCat("(", PrintFloat(part, element), ", ", PrintFloat(part, element + ByteWidth(part)), ")");
    }
    case DTypeKind::kNone:
      break;
  }
  return "";
}

// XLA numbers the sub-arrays of literals of rank above 3.
std::string IndexComment(int64_t rank, int64_t depth, int64_t index) {
  if (rank <= 3 || depth == 0) return "";
  return absl::StrCat(" /*i", depth - 1, "=", index, "*/");
}

void PrintArray(const Literal& literal, int64_t depth, int64_t index, int64_t* offset, std::string* out) {
  const Shape& shape = literal.shape();
  const int width = ByteWidth(shape.dtype());
  const int64_t extent = shape.dim(depth);
  if (depth + 1 == shape.rank()) {
    const char* pad = shape.rank() > 1 && extent > 1 ? " " : "";
    absl::StrAppend(out, "{", pad);
    for (int64_t i = 0; i < extent; ++i, ++*offset) {
      absl::StrAppend(out, i > 0 ? ", " : "", PrintElement(shape.dtype(), literal.data() + *offset * width, false));
    }
    absl::StrAppend(out, pad, "}");
    return;
  }
  absl::StrAppend(out, "{", IndexComment(shape.rank(), depth, index), " ");
  for (int64_t i = 0; i < extent; ++i) {
    if (i > 0) absl::StrAppend(out, ", ");
    PrintArray(literal, depth + 1, i, offset, out);
  }
  absl::StrAppend(out, " }");
}

absl::Status ReadInteger(DType dtype, TextLexer* lexer, char* element) {
  TextLexer ahead = *lexer;
  absl::string_view word = ahead.RawWord();
  const int bits = BitWidth(dtype);
  if (IsUnsigned(dtype)) {
    uint64_t value;
    if (!absl::SimpleAtoi(word, &value) || (bits < 64 && value >> bits != 0)) {
      return lexer->Error(absl::StrCat("a number of type ", DTypeName(dtype)));
    }
    StoreInt64(dtype, static_cast<int64_t>(value), element);
  } else {
    int64_t value;
    const int64_t limit = bits < 64 ? int64_t{1} << (bits - 1) : std::numeric_limits<int64_t>::max();
    const bool fits = absl::SimpleAtoi(word, &value) && (bits == 64 || (value >= -limit && value < limit));
    if (!fits) return lexer->Error(absl::StrCat("a number of type ", DTypeName(dtype)));
    StoreInt64(dtype, value, element);
  }
  *lexer = ahead;
  return absl::OkStatus();
}

absl::Status ReadPred(TextLexer* lexer, char* element) {
  if (lexer->Peek() == 't' || lexer->Peek() == 'f') {
    GW_ASSIGN_OR_RETURN(bool value, lexer->Bool());
    *element = value;
    return absl::OkStatus();
  }
  GW_ASSIGN_OR_RETURN(int64_t value, lexer->Int());
  *element = value != 0;
  return absl::OkStatus();
}

// nan, -nan, nan(0x1): the lexer stands after the word.
absl::Status ReadNan(DType dtype, bool negative, TextLexer* lexer, char* element) {
  StoreDouble(dtype, std::copysign(std::numeric_limits<double>::quiet_NaN(), negative ? -1.0 : 1.0), element);
  if (!lexer->Consume("(")) return absl::OkStatus();
  uint64_t payload;
  const int payload_bits = PayloadBits(dtype);
  if (payload_bits == 0 || !absl::SimpleHexAtoi(lexer->RawWord(), &payload) || payload == 0 ||
      payload >> payload_bits != 0) {
    return lexer->Error("the payload of a NaN");
  }
  const uint64_t kept = BitsOf(dtype, element) & ~((uint64_t{1} << payload_bits) - 1);
  const uint64_t bits = kept | payload;
  std::memcpy(element, &bits, ByteWidth(dtype));
  return lexer->Expect(")");
}

absl::Status ReadFloat(DType dtype, TextLexer* lexer, char* element) {
  TextLexer ahead = *lexer;
  absl::string_view word = ahead.RawWord();
  if (word == "nan" || word == "-nan") {
    *lexer = ahead;
    return ReadNan(dtype, word[0] == '-', lexer, element);
  }
  double value;
  if (!absl::SimpleAtod(word, &value)) return lexer->Error(absl::StrCat("a number of type ", DTypeName(dtype)));
  StoreDouble(dtype, value, element);
  *lexer = ahead;
  return absl::OkStatus();
}

absl::Status ReadElement(DType dtype, TextLexer* lexer, char* element) {
  switch (KindOf(dtype)) {
    case DTypeKind::kPred:
      return ReadPred(lexer, element);
    case DTypeKind::kSigned:
    case DTypeKind::kUnsigned:
      return ReadInteger(dtype, lexer, element);
    case DTypeKind::kFloat:
      return ReadFloat(dtype, lexer, element);
    case DTypeKind::kComplex: {
      const DType part = PartOf(dtype);
      if (!lexer->Consume("(")) {  // a real number stands for a complex one
        std::memset(element, 0, ByteWidth(dtype));
        return ReadFloat(part, lexer, element);
      }
      GW_RETURN_IF_ERROR(ReadFloat(part, lexer, element));
      GW_RETURN_IF_ERROR(lexer->Expect(","));
      GW_RETURN_IF_ERROR(ReadFloat(part, lexer, element + ByteWidth(part)));
      return lexer->Expect(")");
    }
    case DTypeKind::kNone:
      break;
  }
  return lexer->Error("a literal with an element type");
}

absl::Status ReadArray(int64_t depth, TextLexer* lexer, Literal* literal, int64_t* offset) {
  const Shape& shape = literal->shape();
  if (depth == shape.rank()) {
    const int64_t place = (*offset)++ * ByteWidth(shape.dtype());
    return ReadElement(shape.dtype(), lexer, literal->data() + place);
  }
  GW_RETURN_IF_ERROR(lexer->Expect("{"));
  for (int64_t i = 0; i < shape.dim(depth); ++i) {
    // An array without elements may be written as {} whatever its dimensions.
    if (shape.ElementCount() == 0 && lexer->PeekIs("}")) break;
    if (i > 0) GW_RETURN_IF_ERROR(lexer->Expect(","));
    GW_RETURN_IF_ERROR(ReadArray(depth + 1, lexer, literal, offset));
  }
  return lexer->Expect("}");
}

}  // namespace

std::string PrintLiteral(const Literal& literal) {
  const Shape& shape = literal.shape();
  std::string out;
  if (shape.IsTuple()) {
    for (const Literal& element : literal.elements()) {
      absl::StrAppend(&out, out.empty() ? "" : ", ", PrintLiteral(element));
    }
    return absl::StrCat("( ", out, " )");
  }
  if (shape.rank() == 0) return shape.IsArray() ? PrintElement(shape.dtype(), literal.data(), true) : "";
  int64_t offset = 0;
  PrintArray(literal, 0, 0, &offset, &out);
  return out;
}

absl::StatusOr<Literal> ReadLiteral(const Shape& shape, TextLexer* lexer) {
  if (shape.IsTuple()) {
    GW_RETURN_IF_ERROR(lexer->Expect("("));
    std::vector<Literal> elements;
    for (const Shape& element_shape : shape.tuple()) {
      if (!elements.empty()) GW_RETURN_IF_ERROR(lexer->Expect(","));
      GW_ASSIGN_OR_RETURN(Literal element, ReadLiteral(element_shape, lexer));
      elements.push_back(std::move(element));
    }
    GW_RETURN_IF_ERROR(lexer->Expect(")"));
    return Literal::Tuple(std::move(elements));
  }
  if (!shape.IsArray()) return lexer->Error("a constant that is an array or a tuple of arrays");
  // Text names every element, so a literal cannot be longer than what is left of it.
  if (shape.ByteSize() > kMaxLiteralBytes || shape.ElementCount() > static_cast<int64_t>(lexer->whole_text().size())) {
    return lexer->Error("as many elements as the shape has");
  }
  Literal literal(WithoutLayout(shape));
  int64_t offset = 0;
  GW_RETURN_IF_ERROR(ReadArray(0, lexer, &literal, &offset));
  return literal;
}

}  // namespace gangway::hlo

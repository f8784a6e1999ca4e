// Literals as protos: a typed repeated field for the types protobuf has, bytes for the others.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/hlo/proto_values.h"

namespace gangway::hlo {
namespace {

// The bytes field of types that travel as their memory, or null.
std::string* BytesField(DType dtype, xla::LiteralProto* proto) {
  switch (dtype) {
    case DType::kS1:
      return proto->mutable_s1s();
    case DType::kS2:
      return proto->mutable_s2s();
    case DType::kS4:
      return proto->mutable_s4s();
    case DType::kS8:
      return proto->mutable_s8s();
    case DType::kS16:
      return proto->mutable_s16s();
    case DType::kU1:
      return proto->mutable_u1s();
    case DType::kU2:
      return proto->mutable_u2s();
    case DType::kU4:
      return proto->mutable_u4s();
    case DType::kU8:
      return proto->mutable_u8s();
    case DType::kU16:
      return proto->mutable_u16s();
    case DType::kF16:
      return proto->mutable_f16s();
    case DType::kBF16:
      return proto->mutable_bf16s();
    case DType::kF8E5M2:
      return proto->mutable_f8e5m2s();
    case DType::kF8E4M3:
      return proto->mutable_f8e4m3s();
    case DType::kF8E4M3FN:
      return proto->mutable_f8e4m3fns();
    case DType::kF8E4M3B11FNUZ:
      return proto->mutable_f8e4m3b11fnuzs();
    case DType::kF8E3M4:
      return proto->mutable_f8e3m4s();
    case DType::kF8E5M2FNUZ:
      return proto->mutable_f8e5m2fnuzs();
    case DType::kF8E4M3FNUZ:
      return proto->mutable_f8e4m3fnuzs();
    case DType::kF8E8M0FNU:
      return proto->mutable_f8e8m0fnus();
    case DType::kF4E2M1FN:
      return proto->mutable_f4e2m1fns();
    case DType::kF6E3M2FN:
      return proto->mutable_f6e3m2fns();
    case DType::kF6E2M3FN:
      return proto->mutable_f6e2m3fns();
    default:
      return nullptr;
  }
}

// Calls visit with the repeated field of a type that has one; complex numbers are pairs in it.
template <typename Proto, typename Visit>
bool VisitRepeated(DType dtype, Proto* proto, Visit visit) {
  switch (dtype) {
    case DType::kPred:
      return visit(proto->mutable_preds(), 1), true;
    case DType::kS32:
      return visit(proto->mutable_s32s(), 1), true;
    case DType::kS64:
      return visit(proto->mutable_s64s(), 1), true;
    case DType::kU32:
      return visit(proto->mutable_u32s(), 1), true;
    case DType::kU64:
      return visit(proto->mutable_u64s(), 1), true;
    case DType::kF32:
      return visit(proto->mutable_f32s(), 1), true;
    case DType::kF64:
      return visit(proto->mutable_f64s(), 1), true;
    case DType::kC64:
      return visit(proto->mutable_c64s(), 2), true;
    case DType::kC128:
      return visit(proto->mutable_c128s(), 2), true;
    default:
      return false;
  }
}

bool IsSubByteInteger(DType dtype) { return IsInteger(dtype) && BitWidth(dtype) < 8; }

// XLA keeps only the low bits of small integers; ours are sign-extended.
void MaskBits(DType dtype, std::string* bytes) {
  const char mask = static_cast<char>((1 << BitWidth(dtype)) - 1);
  for (char& byte : *bytes) byte &= mask;
}

void ExtendSign(DType dtype, Literal* literal) {
  const int shift = 8 - BitWidth(dtype);
  for (int64_t i = 0; i < literal->shape().ElementCount(); ++i) {
    const uint8_t shifted = static_cast<uint8_t>(static_cast<uint8_t>(literal->data()[i]) << shift);
    literal->data()[i] = IsSigned(dtype) ? static_cast<char>(static_cast<int8_t>(shifted) >> shift)
                                         : static_cast<char>(shifted >> shift);
  }
}

absl::Status WrongCount(const Shape& shape, int64_t found) {
  return absl::InvalidArgumentError(absl::StrCat("literal ", shape.ToString(), " with ", found, " elements of data"));
}

absl::StatusOr<Literal> ReadArray(const Shape& shape, xla::LiteralProto* proto) {
  const int64_t count = shape.ElementCount();
  if (const std::string* bytes = BytesField(shape.dtype(), proto)) {
    const int64_t width = ByteWidth(shape.dtype());
    if (static_cast<int64_t>(bytes->size()) != count * width) return WrongCount(shape, bytes->size() / width);
    Literal literal(shape, std::vector<char>(bytes->begin(), bytes->end()));
    if (IsSubByteInteger(shape.dtype())) ExtendSign(shape.dtype(), &literal);
    return literal;
  }
  absl::StatusOr<Literal> literal = absl::InvalidArgumentError("literal of a type that has no data");
  VisitRepeated(shape.dtype(), proto, [&](auto* repeated, int parts) {
    if (repeated->size() != count * parts) {
      literal = WrongCount(shape, repeated->size() / parts);
      return;
    }
    literal = Literal(shape);
    if (count > 0) std::memcpy(literal->data(), repeated->data(), shape.ByteSize());
  });
  return literal;
}

// The reader takes the proto by pointer because protobuf names its fields without const only.
absl::StatusOr<Literal> Read(xla::LiteralProto* proto) {
  GW_ASSIGN_OR_RETURN(Shape shape, ReadShape(proto->shape()));
  shape = WithoutLayout(std::move(shape));
  if (shape.IsArray()) return ReadArray(shape, proto);
  if (!shape.IsTuple() || static_cast<size_t>(proto->tuple_literals_size()) != shape.tuple().size()) {
    return WrongCount(shape, proto->tuple_literals_size());
  }
  std::vector<Literal> elements;
  for (int i = 0; i < proto->tuple_literals_size(); ++i) {
    GW_ASSIGN_OR_RETURN(Literal element, Read(proto->mutable_tuple_literals(i)));
    elements.push_back(std::move(element));
  }
  return Literal::Tuple(std::move(elements));
}

}  // namespace

void WriteLiteral(const Literal& literal, xla::LiteralProto* proto) {
  const Shape& shape = literal.shape();
  // Elements are in row-major order whatever the layout of the constant.
  WriteShape(WithoutLayout(shape), proto->mutable_shape());
  for (const Literal& element : literal.elements()) WriteLiteral(element, proto->add_tuple_literals());
  if (!shape.IsArray()) return;
  if (std::string* bytes = BytesField(shape.dtype(), proto)) {
    bytes->assign(literal.bytes().begin(), literal.bytes().end());
    if (IsSubByteInteger(shape.dtype())) MaskBits(shape.dtype(), bytes);
    return;
  }
  VisitRepeated(shape.dtype(), proto, [&](auto* repeated, int parts) {
    if (shape.ElementCount() == 0) return;
    repeated->Resize(static_cast<int>(shape.ElementCount() * parts), {});
    std::memcpy(repeated->mutable_data(), literal.data(), shape.ByteSize());
  });
}

absl::StatusOr<Literal> ReadLiteral(const xla::LiteralProto& proto) {
  xla::LiteralProto copy = proto;
  return Read(&copy);
}

}  // namespace gangway::hlo

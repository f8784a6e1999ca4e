// Shapes and layouts as protos.
#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/base/status.h"
#include "gangway/hlo/proto_values.h"
#include "gangway/hlo/text_lexer.h"

namespace gangway::hlo {
namespace {

constexpr int kMaxDepth = 64;

// T(8,128)(2,1)E(4)S(5): tiles, element size in bits, memory space; what else a suffix says has no meaning to plugins
// that take default layouts and is left out.
void WriteSuffix(absl::string_view suffix, xla::LayoutProto* proto) {
  TextLexer lexer(suffix);
  auto number = [&](auto set) {
    absl::StatusOr<int64_t> value = lexer.Expect("(").ok() ? lexer.Int() : absl::StatusOr<int64_t>(absl::OkStatus());
    if (value.ok() && lexer.Consume(")")) set(*value);
  };
  while (!lexer.AtEnd()) {
    if (lexer.Consume("T")) {
      while (lexer.Consume("(")) {
        xla::TileProto* tile = proto->add_tiles();
        do {
          // `*` marks a dimension combined with the next one.
          absl::StatusOr<int64_t> dim = lexer.Consume("*") ? INT64_MIN : lexer.Int();
          if (!dim.ok()) return;
          tile->add_dimensions(*dim);
        } while (lexer.Consume(","));
        if (!lexer.Consume(")")) return;
      }
    } else if (lexer.Consume("E")) {
      number([&](int64_t value) { proto->set_element_size_in_bits(value); });
    } else if (lexer.Consume("S")) {
      number([&](int64_t value) { proto->set_memory_space(value); });
    } else {
      return;
    }
  }
}

std::string ReadSuffix(const xla::LayoutProto& proto) {
  std::string suffix;
  for (const xla::TileProto& tile : proto.tiles()) {
    absl::StrAppend(&suffix, suffix.empty() ? "T(" : "(",
                    absl::StrJoin(tile.dimensions(), ",",
                                  [](std::string* out, int64_t dim) {
                                    absl::StrAppend(out, dim == INT64_MIN ? "*" : absl::StrCat(dim));
                                  }),
                    ")");
  }
  if (proto.element_size_in_bits() != 0) absl::StrAppend(&suffix, "E(", proto.element_size_in_bits(), ")");
  if (proto.memory_space() != 0) absl::StrAppend(&suffix, "S(", proto.memory_space(), ")");
  return suffix;
}

absl::StatusOr<Shape> Read(const xla::ShapeProto& proto, int depth) {
  if (depth > kMaxDepth) return absl::InvalidArgumentError("shape nested too deeply");
  const DType dtype = static_cast<DType>(proto.element_type());
  if (dtype == DType::kTuple) {
    std::vector<Shape> elements;
    for (const xla::ShapeProto& element : proto.tuple_shapes()) {
      GW_ASSIGN_OR_RETURN(Shape shape, Read(element, depth + 1));
      elements.push_back(std::move(shape));
    }
    return Shape::Tuple(std::move(elements));
  }
  if (dtype == DType::kToken) return Shape::Token();
  if (dtype == DType::kOpaque) return Shape::Opaque();
  if (proto.element_type() < 0 || proto.element_type() > 255 || !IsElement(dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("unknown element type ", static_cast<int>(proto.element_type())));
  }
  Shape shape(dtype, ToDims(proto.dimensions()));
  if (std::find(proto.is_dynamic_dimension().begin(), proto.is_dynamic_dimension().end(), true) !=
      proto.is_dynamic_dimension().end()) {
    std::vector<bool> dynamic(proto.is_dynamic_dimension().begin(), proto.is_dynamic_dimension().end());
    dynamic.resize(shape.rank());
    shape.set_dynamic_dims(std::move(dynamic));
  }
  if (proto.has_layout()) shape.set_layout(Layout{ToDims(proto.layout().minor_to_major()), ReadSuffix(proto.layout())});
  return shape;
}

}  // namespace

void WriteShape(const Shape& shape, xla::ShapeProto* proto) {
  proto->set_element_type(static_cast<xla::PrimitiveType>(shape.dtype()));
  for (const Shape& element : shape.tuple()) WriteShape(element, proto->add_tuple_shapes());
  if (!shape.IsArray()) return;
  AddAll(shape.dims(), proto->mutable_dimensions());
  for (int64_t i = 0; i < shape.rank(); ++i) {
    const bool dynamic = i < static_cast<int64_t>(shape.dynamic_dims().size()) && shape.dynamic_dims()[i];
    proto->add_is_dynamic_dimension(dynamic);
  }
  const Layout layout = shape.layout().value_or(RowMajorLayout(shape.rank()));
  AddAll(layout.minor_to_major, proto->mutable_layout()->mutable_minor_to_major());
  proto->mutable_layout()->set_tail_padding_alignment_in_elements(1);
  WriteSuffix(layout.suffix, proto->mutable_layout());
}

absl::StatusOr<Shape> ReadShape(const xla::ShapeProto& proto) {
  GW_ASSIGN_OR_RETURN(Shape shape, Read(proto, 0));
  GW_RETURN_IF_ERROR(ValidateShape(shape));
  return shape;
}

}  // namespace gangway::hlo

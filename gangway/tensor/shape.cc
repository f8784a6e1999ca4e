#include "gangway/tensor/shape.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "gangway/base/status.h"

namespace gangway {
namespace {

constexpr int kMaxDepth = 64;
constexpr int64_t kMaxRank = 256;

absl::Status Validate(const Shape& shape, int depth, int64_t* bytes) {
  if (depth > kMaxDepth) return absl::InvalidArgumentError("shape nested too deeply");
  for (const Shape& element : shape.tuple()) GW_RETURN_IF_ERROR(Validate(element, depth + 1, bytes));
  if (!shape.IsArray()) return absl::OkStatus();
  if (shape.rank() > kMaxRank) return absl::InvalidArgumentError(absl::StrCat("array of rank ", shape.rank()));
  int64_t size = ByteWidth(shape.dtype());
  for (int64_t dim : shape.dims()) {
    if (dim < 0) return absl::InvalidArgumentError(absl::StrCat("negative dimension in ", shape.ToString()));
    // A zero must not hide that the product of the other dimensions overflows in ElementCount.
    if (__builtin_mul_overflow(size, std::max<int64_t>(dim, 1), &size)) size = INT64_MAX;
  }
  if (__builtin_add_overflow(*bytes, size, bytes) || *bytes >= (int64_t{1} << 62)) {
    return absl::InvalidArgumentError(absl::StrCat("shape too large: ", shape.ToString()));
  }
  if (shape.layout().has_value()) {
    DimVector order = shape.layout()->minor_to_major;
    std::sort(order.begin(), order.end());
    DimVector identity(shape.rank());
    std::iota(identity.begin(), identity.end(), 0);
    if (order != identity) {
      return absl::InvalidArgumentError(absl::StrCat("layout is no permutation: ", shape.ToString(true)));
    }
  }
  return absl::OkStatus();
}

absl::Status Malformed(absl::string_view what, absl::string_view rest) {
  return absl::InvalidArgumentError(absl::StrCat("shape: expected ", what, " at '", rest.substr(0, 24), "'"));
}

absl::StatusOr<int64_t> ConsumeInt(absl::string_view* text) {
  size_t length = 0;
  while (length < text->size() && absl::ascii_isdigit((*text)[length])) ++length;
  int64_t value;
  if (!absl::SimpleAtoi(text->substr(0, length), &value)) return Malformed("a number", *text);
  text->remove_prefix(length);
  return value;
}

// `{1,0:T(8,128)}`; parentheses of the suffix may hold braces and commas.
absl::StatusOr<Layout> ConsumeLayout(absl::string_view* text) {
  Layout layout;
  text->remove_prefix(1);
  while (!text->empty() && text->front() != '}' && text->front() != ':') {
    GW_ASSIGN_OR_RETURN(int64_t dim, ConsumeInt(text));
    layout.minor_to_major.push_back(dim);
    absl::ConsumePrefix(text, ",");
  }
  if (absl::ConsumePrefix(text, ":")) {
    size_t end = text->find('}');
    if (end == absl::string_view::npos) return Malformed("'}'", *text);
    layout.suffix = std::string(text->substr(0, end));
    text->remove_prefix(end);
  }
  if (!absl::ConsumePrefix(text, "}")) return Malformed("'}'", *text);
  return layout;
}

absl::Status ConsumeDims(absl::string_view* text, Shape* shape) {
  DimVector dims;
  std::vector<bool> dynamic;
  bool any_dynamic = false;
  while (!absl::ConsumePrefix(text, "]")) {
    dynamic.push_back(absl::ConsumePrefix(text, "<="));
    any_dynamic |= dynamic.back();
    GW_ASSIGN_OR_RETURN(int64_t dim, ConsumeInt(text));
    dims.push_back(dim);
    if (!absl::ConsumePrefix(text, ",") && !absl::StartsWith(*text, "]")) return Malformed("',' or ']'", *text);
  }
  *shape = Shape(shape->dtype(), std::move(dims));
  if (any_dynamic) shape->set_dynamic_dims(std::move(dynamic));
  return absl::OkStatus();
}

void SkipSpaceAndComments(absl::string_view* text) {
  while (true) {
    *text = absl::StripLeadingAsciiWhitespace(*text);
    if (!absl::StartsWith(*text, "/*")) return;
    size_t end = text->find("*/");
    if (end == absl::string_view::npos) return;
    text->remove_prefix(end + 2);
  }
}

absl::StatusOr<Shape> Consume(absl::string_view* text, int depth) {
  if (depth > kMaxDepth) return absl::InvalidArgumentError("shape nested too deeply");
  SkipSpaceAndComments(text);
  if (absl::ConsumePrefix(text, "(")) {
    std::vector<Shape> elements;
    SkipSpaceAndComments(text);
    while (!absl::ConsumePrefix(text, ")")) {
      GW_ASSIGN_OR_RETURN(Shape element, Consume(text, depth + 1));
      elements.push_back(std::move(element));
      SkipSpaceAndComments(text);
      if (!absl::ConsumePrefix(text, ",") && !absl::StartsWith(*text, ")")) return Malformed("',' or ')'", *text);
      SkipSpaceAndComments(text);
    }
    return Shape::Tuple(std::move(elements));
  }
  size_t length = 0;
  while (length < text->size() && absl::ascii_isalnum((*text)[length])) ++length;
  std::optional<DType> dtype = ParseDType(text->substr(0, length));
  if (!dtype.has_value()) return Malformed("an element type", *text);
  text->remove_prefix(length);
  Shape shape(*dtype, DimVector{});
  if (!absl::ConsumePrefix(text, "[")) return Malformed("'['", *text);
  GW_RETURN_IF_ERROR(ConsumeDims(text, &shape));
  // A brace after a shape is its layout only if it holds digits, ':' or nothing: `f32[] {` opens a body instead.
  if (text->size() >= 2 && text->front() == '{' &&
      (absl::ascii_isdigit((*text)[1]) || (*text)[1] == '}' || (*text)[1] == ':')) {
    GW_ASSIGN_OR_RETURN(Layout layout, ConsumeLayout(text));
    shape.set_layout(std::move(layout));
  }
  return shape;
}

void AppendLeaves(const Shape& shape, std::vector<Shape>* leaves) {
  if (!shape.IsTuple()) {
    leaves->push_back(shape);
    return;
  }
  for (const Shape& element : shape.tuple()) AppendLeaves(element, leaves);
}

}  // namespace

std::string Layout::ToString() const {
  return absl::StrCat("{", absl::StrJoin(minor_to_major, ","), suffix.empty() ? "" : ":", suffix, "}");
}

Shape Shape::Tuple(std::vector<Shape> elements) {
  Shape shape(DType::kTuple, DimVector{});
  shape.tuple_ = std::move(elements);
  return shape;
}

int64_t Shape::ElementCount() const {
  if (!IsArray()) return 0;
  int64_t count = 1;
  for (int64_t dim : dims_) count *= dim;
  return count;
}

int64_t Shape::ByteSize() const {
  int64_t bytes = ElementCount() * ByteWidth(dtype_);
  for (const Shape& element : tuple_) bytes += element.ByteSize();
  return bytes;
}

std::string Shape::ToString(bool with_layout) const {
  if (IsTuple()) {
    std::string text = "(";
    for (size_t i = 0; i < tuple_.size(); ++i) {
      if (i > 0) absl::StrAppend(&text, ", ");
      if (i > 0 && i % 5 == 0) absl::StrAppend(&text, "/*index=", i, "*/");  // as XLA prints long tuples
      absl::StrAppend(&text, tuple_[i].ToString(with_layout));
    }
    return absl::StrCat(text, ")");
  }
  std::string text = absl::StrCat(DTypeName(dtype_), "[");
  for (int64_t i = 0; i < rank(); ++i) {
    bool dynamic = i < static_cast<int64_t>(dynamic_dims_.size()) && dynamic_dims_[i];
    absl::StrAppend(&text, i > 0 ? "," : "", dynamic ? "<=" : "", dims_[i]);
  }
  absl::StrAppend(&text, "]");
  // XLA prints a scalar's layout only when it says more than the order.
  if (with_layout && layout_.has_value() && (rank() > 0 || !layout_->suffix.empty())) {
    absl::StrAppend(&text, layout_->ToString());
  }
  return text;
}

bool Shape::Compatible(const Shape& a, const Shape& b) {
  if (a.dtype_ != b.dtype_ || a.dims_ != b.dims_ || a.tuple_.size() != b.tuple_.size()) return false;
  for (size_t i = 0; i < a.tuple_.size(); ++i) {
    if (!Compatible(a.tuple_[i], b.tuple_[i])) return false;
  }
  return true;
}

std::vector<Shape> Leaves(const Shape& shape) {
  std::vector<Shape> leaves;
  AppendLeaves(shape, &leaves);
  return leaves;
}

int64_t LeafCount(const Shape& shape) {
  if (!shape.IsTuple()) return 1;
  int64_t count = 0;
  for (const Shape& element : shape.tuple()) count += LeafCount(element);
  return count;
}

Layout RowMajorLayout(int64_t rank) {
  Layout layout;
  for (int64_t i = rank - 1; i >= 0; --i) layout.minor_to_major.push_back(i);
  return layout;
}

Shape WithRowMajorLayout(Shape shape) {
  for (Shape& element : shape.mutable_tuple()) element = WithRowMajorLayout(std::move(element));
  if (shape.IsArray()) shape.set_layout(RowMajorLayout(shape.rank()));
  return shape;
}

Shape WithoutLayout(Shape shape) {
  for (Shape& element : shape.mutable_tuple()) element = WithoutLayout(std::move(element));
  shape.set_layout(std::nullopt);
  return shape;
}

absl::Status ValidateShape(const Shape& shape) {
  int64_t bytes = 0;
  return Validate(shape, 0, &bytes);
}

absl::StatusOr<Shape> ConsumeShape(absl::string_view* text) { return Consume(text, 0); }

absl::StatusOr<Shape> ParseShape(absl::string_view text) {
  GW_ASSIGN_OR_RETURN(Shape shape, ConsumeShape(&text));
  if (!absl::StripAsciiWhitespace(text).empty()) return Malformed("the end", text);
  return shape;
}

}  // namespace gangway

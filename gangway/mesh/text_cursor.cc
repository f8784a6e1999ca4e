#include "gangway/mesh/text_cursor.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"

namespace gangway {
namespace {

absl::StatusOr<DimSharding> ConsumeDim(TextCursor* cursor, char quote, const Mesh& mesh) {
  DimSharding dim;
  GW_RETURN_IF_ERROR(cursor->Expect("{"));
  for (bool first = true; !cursor->Consume("}"); first = false) {
    if (!first) GW_RETURN_IF_ERROR(cursor->Expect(","));
    if (cursor->Consume("?")) {
      dim.open = true;
      continue;
    }
    GW_ASSIGN_OR_RETURN(AxisRef ref, ConsumeAxis(cursor, quote, mesh));
    dim.axes.push_back(ref);
  }
  if (cursor->Consume("p")) {
    GW_ASSIGN_OR_RETURN(int64_t priority, cursor->Int());
    dim.priority = static_cast<int>(priority);
  }
  return dim;
}

}  // namespace

void TextCursor::SkipSpaces() {
  while (!rest_.empty() && absl::ascii_isspace(rest_.front())) rest_.remove_prefix(1);
}

bool TextCursor::Peek(absl::string_view token) {
  SkipSpaces();
  return absl::StartsWith(rest_, token);
}

bool TextCursor::Consume(absl::string_view token) {
  if (!Peek(token)) return false;
  rest_.remove_prefix(token.size());
  return true;
}

absl::Status TextCursor::Expect(absl::string_view token) {
  return Consume(token) ? absl::OkStatus() : Error(absl::StrCat("'", token, "'"));
}

absl::StatusOr<int64_t> TextCursor::Int() {
  SkipSpaces();
  int64_t value = 0;
  size_t digits = 0;
  for (; digits < rest_.size() && absl::ascii_isdigit(rest_[digits]); ++digits) {
    value = value * 10 + (rest_[digits] - '0');
    if (value > INT32_MAX) return Error("a smaller number");
  }
  if (digits == 0) return Error("a number");
  rest_.remove_prefix(digits);
  return value;
}

absl::StatusOr<std::vector<int64_t>> TextCursor::IntsUntil(absl::string_view close) {
  std::vector<int64_t> values;
  while (!Consume(close)) {
    if (!values.empty()) GW_RETURN_IF_ERROR(Expect(","));
    GW_ASSIGN_OR_RETURN(int64_t value, Int());
    values.push_back(value);
  }
  return values;
}

absl::StatusOr<std::string> TextCursor::Quoted(char quote) {
  GW_RETURN_IF_ERROR(Expect(absl::string_view(&quote, 1)));
  const size_t end = rest_.find(quote);
  if (end == absl::string_view::npos) return Error("a closing quote");
  std::string value(rest_.substr(0, end));
  rest_.remove_prefix(end + 1);
  return value;
}

absl::StatusOr<std::string> TextCursor::Word() {
  SkipSpaces();
  size_t length = 0;
  while (length < rest_.size() && (absl::ascii_isalnum(rest_[length]) || absl::StrContains("_.-$", rest_[length]))) {
    ++length;
  }
  if (length == 0) return Error("a name");
  std::string word(rest_.substr(0, length));
  rest_.remove_prefix(length);
  return word;
}

absl::Status TextCursor::SkipBalanced() {
  SkipSpaces();
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < rest_.size(); ++i) {
    const char c = rest_[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) {
      rest_.remove_prefix(i + 1);
      return absl::OkStatus();
    }
    if (depth == 0) break;
  }
  return Error("a group in braces");
}

absl::Status TextCursor::ExpectEnd() {
  SkipSpaces();
  return rest_.empty() ? absl::OkStatus() : Error("the end");
}

absl::Status TextCursor::Error(absl::string_view expected) const {
  constexpr size_t kShown = 200;
  return absl::InvalidArgumentError(absl::StrCat("sharding text: expected ", expected, " at column ",
                                                 text_.size() - rest_.size() + 1, " of: ", text_.substr(0, kShown)));
}

absl::StatusOr<AxisRef> ConsumeAxis(TextCursor* cursor, char quote, const Mesh& mesh) {
  GW_ASSIGN_OR_RETURN(std::string name, cursor->Quoted(quote));
  const int axis = mesh.FindAxis(name);
  if (axis < 0) return cursor->Error(absl::StrCat("an axis of the mesh, not '", name, "',"));
  if (!cursor->Consume(":")) return FullAxis(mesh, axis);
  GW_RETURN_IF_ERROR(cursor->Expect("("));
  AxisRef ref{axis};
  GW_ASSIGN_OR_RETURN(ref.pre, cursor->Int());
  GW_RETURN_IF_ERROR(cursor->Expect(")"));
  GW_ASSIGN_OR_RETURN(ref.size, cursor->Int());
  if (ref.pre < 1 || ref.size < 1 || mesh.axis_size(axis) % (ref.pre * ref.size) != 0) {
    return cursor->Error(absl::StrCat("a part of axis '", name, "' of size ", mesh.axis_size(axis)));
  }
  return ref;
}

absl::StatusOr<AxisList> ConsumeAxes(TextCursor* cursor, char quote, const Mesh& mesh) {
  AxisList axes;
  while (!cursor->Consume("}")) {
    if (!axes.empty()) GW_RETURN_IF_ERROR(cursor->Expect(","));
    GW_ASSIGN_OR_RETURN(AxisRef ref, ConsumeAxis(cursor, quote, mesh));
    axes.push_back(ref);
  }
  return axes;
}

absl::StatusOr<std::vector<MeshAxis>> ConsumeMeshAxes(TextCursor* cursor, char quote) {
  std::vector<MeshAxis> axes;
  while (!cursor->Consume("]")) {
    if (!axes.empty()) GW_RETURN_IF_ERROR(cursor->Expect(","));
    MeshAxis axis;
    GW_ASSIGN_OR_RETURN(axis.name, cursor->Quoted(quote));
    GW_RETURN_IF_ERROR(cursor->Expect("="));
    GW_ASSIGN_OR_RETURN(axis.size, cursor->Int());
    axes.push_back(std::move(axis));
  }
  return axes;
}

absl::StatusOr<std::vector<DimSharding>> ConsumeDims(TextCursor* cursor, char quote, const Mesh& mesh) {
  std::vector<DimSharding> dims;
  while (!cursor->Consume("]")) {
    if (!dims.empty()) GW_RETURN_IF_ERROR(cursor->Expect(","));
    GW_ASSIGN_OR_RETURN(DimSharding dim, ConsumeDim(cursor, quote, mesh));
    dims.push_back(std::move(dim));
  }
  return dims;
}

}  // namespace gangway

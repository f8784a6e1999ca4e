#include "gangway/hlo/text_lexer.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"

namespace gangway::hlo {
namespace {

bool IsNameChar(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-' || c == '$'; }

// Characters of the string that starts at text[0] == '"', quotes included; npos when it does not end.
size_t QuotedLength(absl::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return absl::string_view::npos;
}

}  // namespace

void TextLexer::SkipSpace() {
  while (!rest_.empty()) {
    if (absl::ascii_isspace(rest_.front())) {
      rest_.remove_prefix(1);
    } else if (absl::StartsWith(rest_, "/*")) {
      const size_t end = rest_.find("*/", 2);
      if (end == absl::string_view::npos) return;
      rest_.remove_prefix(end + 2);
    } else if (absl::StartsWith(rest_, "//")) {
      rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
    } else {
      return;
    }
  }
}

bool TextLexer::AtEnd() {
  SkipSpace();
  return rest_.empty();
}

char TextLexer::Peek() { return AtEnd() ? '\0' : rest_.front(); }

bool TextLexer::PeekIs(absl::string_view token) {
  SkipSpace();
  return absl::StartsWith(rest_, token);
}

bool TextLexer::Consume(absl::string_view token) {
  if (!PeekIs(token)) return false;
  rest_.remove_prefix(token.size());
  return true;
}

absl::Status TextLexer::Expect(absl::string_view token) {
  return Consume(token) ? absl::OkStatus() : Error(absl::StrCat("'", token, "'"));
}

absl::StatusOr<absl::string_view> TextLexer::Name() {
  SkipSpace();
  absl::string_view rest = rest_;
  if (absl::StartsWith(rest, "%")) rest.remove_prefix(1);
  size_t length = 0;
  // "->" ends a name, though '-' may be part of one.
  while (length < rest.size() && IsNameChar(rest[length]) && !absl::StartsWith(rest.substr(length), "->")) ++length;
  if (length == 0) return Error("a name");
  rest_ = rest.substr(length);
  return rest.substr(0, length);
}

bool TextLexer::ConsumeWord(absl::string_view word) {
  TextLexer ahead = *this;
  absl::StatusOr<absl::string_view> name = ahead.Name();
  if (!name.ok() || *name != word) return false;
  *this = ahead;
  return true;
}

absl::string_view TextLexer::RawWord() {
  SkipSpace();
  size_t length = 0;
  while (length < rest_.size() && !absl::StrContains(",(){}[] \t\r\n", rest_[length])) ++length;
  absl::string_view word = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return word;
}

absl::StatusOr<int64_t> TextLexer::Int() {
  SkipSpace();
  size_t length = absl::StartsWith(rest_, "-") ? 1 : 0;
  while (length < rest_.size() && absl::ascii_isdigit(rest_[length])) ++length;
  int64_t value;
  if (!absl::SimpleAtoi(rest_.substr(0, length), &value)) return Error("a number");
  rest_.remove_prefix(length);
  return value;
}

absl::StatusOr<bool> TextLexer::Bool() {
  if (ConsumeWord("true")) return true;
  if (ConsumeWord("false")) return false;
  return Error("true or false");
}

absl::StatusOr<double> TextLexer::Float() {
  TextLexer ahead = *this;
  double value;
  if (!absl::SimpleAtod(ahead.RawWord(), &value)) return Error("a number");
  *this = ahead;
  return value;
}

absl::StatusOr<std::string> TextLexer::String() {
  if (Peek() != '"') return Error("a string");
  const size_t length = QuotedLength(rest_);
  if (length == absl::string_view::npos) return Error("a string that ends");
  std::string value;
  if (!absl::CUnescape(rest_.substr(1, length - 2), &value)) return Error("a string with valid escapes");
  rest_.remove_prefix(length);
  return value;
}

absl::StatusOr<Shape> TextLexer::ReadShape() {
  SkipSpace();
  absl::string_view rest = rest_;
  absl::StatusOr<Shape> shape = ConsumeShape(&rest);
  if (shape.ok()) {
    if (absl::Status valid = ValidateShape(*shape); !valid.ok()) shape = valid;
  }
  if (!shape.ok()) return Error(absl::StrCat("a shape (", shape.status().message(), ")"));
  rest_ = rest;
  return shape;
}

absl::StatusOr<DimVector> TextLexer::Dims() {
  GW_RETURN_IF_ERROR(Expect("{"));
  DimVector dims;
  while (!Consume("}")) {
    if (!dims.empty()) GW_RETURN_IF_ERROR(Expect(","));
    GW_ASSIGN_OR_RETURN(int64_t dim, Int());
    dims.push_back(dim);
  }
  return dims;
}

absl::StatusOr<absl::string_view> TextLexer::RawValue() {
  SkipSpace();
  int depth = 0;
  size_t i = 0;
  for (; i < rest_.size(); ++i) {
    const char c = rest_[i];
    if (c == '"') {
      const size_t length = QuotedLength(rest_.substr(i));
      if (length == absl::string_view::npos) return Error("a value whose strings end");
      i += length - 1;
    } else if (c == '{' || c == '(' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ')' || c == ']') {
      if (depth == 0) break;
      --depth;
    } else if (depth == 0 && (c == ',' || c == '\n')) {
      break;
    }
  }
  if (depth != 0) return Error("a value whose brackets close");
  absl::string_view value = absl::StripTrailingAsciiWhitespace(rest_.substr(0, i));
  if (value.empty()) return Error("a value");
  rest_.remove_prefix(i);
  return value;
}

absl::Status TextLexer::SkipGroup() {
  SkipSpace();
  int depth = 0;
  for (size_t i = 0; i < rest_.size(); ++i) {
    const char c = rest_[i];
    if (c == '{' || c == '(' || c == '[') ++depth;
    if (c == '}' || c == ')' || c == ']') --depth;
    if (depth == 0) {
      rest_.remove_prefix(i + 1);
      return absl::OkStatus();
    }
  }
  return Error("brackets that close");
}

absl::string_view TextLexer::Remainder() {
  SkipSpace();
  absl::string_view rest = rest_;
  rest_.remove_prefix(rest_.size());
  return rest;
}

absl::Status TextLexer::ExpectEnd() { return AtEnd() ? absl::OkStatus() : Error("the end"); }

absl::Status TextLexer::Error(absl::string_view expected) const {
  const absl::string_view rest = absl::StripLeadingAsciiWhitespace(rest_);
  const char* place = rest.data();
  const bool inside = place >= text_.data() && place <= text_.data() + text_.size();
  const int64_t line = inside ? 1 + std::count(text_.data(), place, '\n') : 0;
  absl::string_view found = rest.substr(0, std::min<size_t>(rest.find('\n'), 40));
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line, ": expected ", expected, " at '", absl::Utf8SafeCHexEscape(found), "'"));
}

bool IsBraced(absl::string_view text) {
  if (text.empty() || text.front() != '{') return false;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      const size_t length = QuotedLength(text.substr(i));
      if (length == absl::string_view::npos) return false;
      i += length - 1;
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}' && --depth == 0) {
      return i + 1 == text.size();
    }
  }
  return false;
}

}  // namespace gangway::hlo

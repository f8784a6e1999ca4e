// Reads HLO text token by token. Internal to hlo/.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/tensor/shape.h"

namespace gangway::hlo {

// A place in a text; blanks and comments before tokens are skipped. Borrows the text. A copy is a place to come back
// to.
class TextLexer {
 public:
  explicit TextLexer(absl::string_view text) : text_(text), rest_(text) {}
  // Only `part` of `text`, with errors counting lines from the start of `text`.
  TextLexer(absl::string_view text, absl::string_view part) : text_(text), rest_(part) {}

  bool AtEnd();
  char Peek();  // 0 at the end
  bool PeekIs(absl::string_view token);
  bool Consume(absl::string_view token);  // false, and nothing read, when something else comes
  absl::Status Expect(absl::string_view token);

  // Letters, digits, '_', '.', '-', '$'; a '%' in front is skipped.
  absl::StatusOr<absl::string_view> Name();
  bool ConsumeWord(absl::string_view word);  // a Name that is this one
  absl::StatusOr<int64_t> Int();             // may be negative
  absl::StatusOr<bool> Bool();
  absl::StatusOr<double> Float();
  absl::StatusOr<std::string> String();  // "...", C escapes undone
  absl::StatusOr<Shape> ReadShape();
  absl::StatusOr<DimVector> Dims();  // {0,1}
  // Up to a delimiter outside of brackets and strings: ',', a closing bracket or the end of the line.
  absl::StatusOr<absl::string_view> RawValue();
  // Up to one of ",)} \n" or a bracket; for numbers.
  absl::string_view RawWord();

  absl::Status SkipGroup();       // one (...), {...} or [...] with all inside
  absl::string_view Remainder();  // all that is left, blanks in front skipped

  absl::Status ExpectEnd();
  absl::Status Error(absl::string_view expected) const;  // "line 3: expected X at '...'"
  absl::string_view whole_text() const { return text_; }

 private:
  void SkipSpace();

  absl::string_view text_;
  absl::string_view rest_;
};

// A text that XLA writes without quotes: one balanced {...}.
bool IsBraced(absl::string_view text);

}  // namespace gangway::hlo

// JSON as text, written as it comes.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gangway::status {

// Appends to one string; puts commas where they belong. What is nested how is the caller's: an object's values each go
// behind a Key.
class JsonWriter {
 public:
  JsonWriter& Open(char bracket);   // '{' or '['
  JsonWriter& Close(char bracket);  // '}' or ']'
  // The next value of an array begins a line.
  JsonWriter& Line();
  // A name of ours: nothing in it needs to be escaped.
  JsonWriter& Key(absl::string_view key);
  // A client's: what is not UTF-8 in it is replaced.
  JsonWriter& Text(absl::string_view text);
  JsonWriter& Number(const absl::AlphaNum& number) { return Written(number.Piece()); }
  JsonWriter& Bool(bool value) { return Written(value ? "true" : "false"); }
  // Seconds, with the digits of nanoseconds.
  JsonWriter& Seconds(absl::Duration duration);
  JsonWriter& Seconds(absl::Time time) { return Seconds(time - absl::UnixEpoch()); }
  JsonWriter& Microseconds(absl::Duration duration);
  JsonWriter& Microseconds(absl::Time time) { return Microseconds(time - absl::UnixEpoch()); }
  // Values, or keys and values, that another one wrote.
  JsonWriter& Written(absl::string_view json);

  const std::string& text() const { return text_; }
  // What was written since the last time; commas go on as if it were still there.
  std::string Take();

 private:
  void Separate();
  JsonWriter& Fixed(int64_t nanoseconds, int64_t unit, int digits);

  std::string text_;
  char last_ = '[';  // character written
};

// The text as a JSON string.
std::string JsonText(absl::string_view text);

}  // namespace gangway::status

#include "gangway/status/json_writer.h"

#include <algorithm>
#include <utility>

#include "nlohmann/json.hpp"

namespace gangway::status {
namespace {

bool IsPlain(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

}  // namespace

std::string JsonText(absl::string_view text) {
  if (IsPlain(text)) return absl::StrCat("\"", text, "\"");
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

void JsonWriter::Separate() {
  if (last_ != '{' && last_ != '[' && last_ != ':') text_.push_back(',');
}

JsonWriter& JsonWriter::Written(absl::string_view json) {
  Separate();
  text_.append(json.data(), json.size());
  last_ = json.back();
  return *this;
}

JsonWriter& JsonWriter::Line() {
  Separate();
  text_.push_back('\n');
  last_ = '[';
  return *this;
}

JsonWriter& JsonWriter::Open(char bracket) {
  Separate();
  text_.push_back(last_ = bracket);
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  text_.push_back(last_ = bracket);
  return *this;
}

JsonWriter& JsonWriter::Key(absl::string_view key) {
  Separate();
  absl::StrAppend(&text_, "\"", key, "\":");
  last_ = ':';
  return *this;
}

JsonWriter& JsonWriter::Text(absl::string_view text) {
  if (!IsPlain(text)) return Written(JsonText(text));
  Separate();
  absl::StrAppend(&text_, "\"", text, "\"");
  last_ = '"';
  return *this;
}

JsonWriter& JsonWriter::Seconds(absl::Duration duration) {
  return Fixed(absl::ToInt64Nanoseconds(duration), 1'000'000'000, 9);
}

JsonWriter& JsonWriter::Microseconds(absl::Duration duration) {
  return Fixed(absl::ToInt64Nanoseconds(duration), 1'000, 3);
}

JsonWriter& JsonWriter::Fixed(int64_t nanoseconds, int64_t unit, int digits) {
  Separate();
  if (nanoseconds < 0) text_.push_back('-');
  const uint64_t size = nanoseconds < 0 ? -static_cast<uint64_t>(nanoseconds) : nanoseconds;
  absl::StrAppend(&text_, size / unit, ".");
  char fraction[9];
  uint64_t rest = size % unit;
  for (int i = digits; i-- > 0; rest /= 10) fraction[i] = static_cast<char>('0' + rest % 10);
  text_.append(fraction, digits);
  last_ = '0';
  return *this;
}

std::string JsonWriter::Take() { return std::exchange(text_, {}); }

}  // namespace gangway::status

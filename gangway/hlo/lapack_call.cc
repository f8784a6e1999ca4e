#include "gangway/hlo/lapack_call.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gangway::hlo {

absl::string_view LapackRoutine(absl::string_view target) {
  if (!absl::ConsumePrefix(&target, "lapack_") || !absl::ConsumeSuffix(&target, "_ffi") || target.empty()) return "";
  return target.substr(1);  // the letter of the element type
}

char LapackCharacter(absl::string_view config, absl::string_view name) {
  const size_t at = config.find(absl::StrCat(name, " = "));
  if (at == absl::string_view::npos) return 0;
  absl::string_view digits = config.substr(at + name.size() + 3);
  digits = digits.substr(0, digits.find(' '));
  int64_t value = 0;
  return absl::SimpleAtoi(digits, &value) ? static_cast<char>(value) : '\0';
}

}  // namespace gangway::hlo

#include "gangway/partition/reason.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gangway::partition {
namespace {

constexpr absl::string_view kKey = "reason=";

}  // namespace

hlo::OpMetadata WithReason(hlo::OpMetadata metadata, size_t number) {
  metadata.rest = absl::StrCat(kKey, number);
  return metadata;
}

std::optional<size_t> ReasonOf(const hlo::OpMetadata& metadata) {
  absl::string_view rest = metadata.rest;
  size_t number;
  if (!absl::ConsumePrefix(&rest, kKey) || !absl::SimpleAtoi(rest, &number)) return std::nullopt;
  return number;
}

}  // namespace gangway::partition

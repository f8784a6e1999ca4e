#include "gangway/rules/rule.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gangway::rules {
namespace {

std::string FactorName(int factor) {
  if (factor >= 26) return absl::StrCat("f", factor);
  return std::string(1, static_cast<char>('a' + (factor + 8) % 26));  // i, j, k first
}

std::string ValueText(const ValueFactors& value) {
  return absl::StrCat("(",
                      absl::StrJoin(value, " ",
                                    [](std::string* out, const DimFactors& dim) {
                                      if (dim.empty()) absl::StrAppend(out, "1");
                                      absl::StrAppend(out, absl::StrJoin(dim, "*", [](std::string* out, int f) {
                                                        absl::StrAppend(out, FactorName(f));
                                                      }));
                                    }),
                      ")");
}

std::string ValuesText(const std::vector<ValueFactors>& values) {
  return absl::StrJoin(values, ",",
                       [](std::string* out, const ValueFactors& value) { absl::StrAppend(out, ValueText(value)); });
}

// ` word{...}` of the factors of one kind, nothing when there are none.
void AppendKind(const OpRule& rule, FactorKind kind, absl::string_view word, std::string* text) {
  std::vector<std::string> names;
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    const Factor& factor = rule.factors[f];
    if (factor.kind != kind) continue;
    names.push_back(FactorName(static_cast<int>(f)));
    if (kind == FactorKind::kReduction && factor.reduction != Reduction::kSum) {
      absl::StrAppend(&names.back(), ":", ReductionName(factor.reduction));
    }
  }
  if (!names.empty()) absl::StrAppend(text, " ", word, "{", absl::StrJoin(names, ","), "}");
}

}  // namespace

std::string OpRule::ToString() const {
  if (form == RuleForm::kControl) return "control";
  if (form == RuleForm::kUnsupported) return absl::StrCat("unsupported: ", reason);
  std::string text = absl::StrCat(ValuesText(operands), "->", ValuesText(results));
  AppendKind(*this, FactorKind::kReduction, "reduce", &text);
  AppendKind(*this, FactorKind::kPermutation, "permute", &text);
  AppendKind(*this, FactorKind::kNeedReplication, "replicate", &text);
  return text;
}

OpRule Control() {
  OpRule rule;
  rule.form = RuleForm::kControl;
  return rule;
}

OpRule Unsupported(std::string reason) {
  OpRule rule;
  rule.form = RuleForm::kUnsupported;
  rule.reason = std::move(reason);
  return rule;
}

}  // namespace gangway::rules

#include "gangway/rules/sdy_rule.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/mesh/text_cursor.h"
#include "gangway/rules/family.h"

namespace gangway::rules {
namespace {

// "ijz_1k" is i, j, z_1, k.
std::vector<std::string> SplitNames(absl::string_view text) {
  std::vector<std::string> names;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string name(1, text[i]);
    if (i + 1 < text.size() && text[i + 1] == '_') {
      name += text[++i];
      while (i + 1 < text.size() && absl::ascii_isdigit(text[i + 1])) name += text[++i];
    }
    names.push_back(std::move(name));
  }
  return names;
}

using NamedValue = std::vector<std::vector<std::string>>;  // factor names of each dimension

// `([i, jk], [k])`.
absl::StatusOr<std::vector<NamedValue>> ConsumeValues(TextCursor* cursor) {
  std::vector<NamedValue> values;
  GW_RETURN_IF_ERROR(cursor->Expect("("));
  while (!cursor->Consume(")")) {
    if (!values.empty()) GW_RETURN_IF_ERROR(cursor->Expect(","));
    GW_RETURN_IF_ERROR(cursor->Expect("["));
    NamedValue value;
    while (!cursor->Consume("]")) {
      if (!value.empty()) GW_RETURN_IF_ERROR(cursor->Expect(","));
      if (cursor->Consume("*")) {
        value.emplace_back();
        continue;
      }
      GW_ASSIGN_OR_RETURN(std::string word, cursor->Word());
      value.push_back(SplitNames(word));
    }
    values.push_back(std::move(value));
  }
  return values;
}

// Reads the rule into factors by name; kinds default to pass-through.
absl::Status ConsumeFactors(TextCursor* cursor, std::map<std::string, Factor>* factors) {
  GW_RETURN_IF_ERROR(cursor->Expect("{"));
  while (!cursor->Consume("}")) {
    if (!factors->empty()) GW_RETURN_IF_ERROR(cursor->Expect(","));
    GW_ASSIGN_OR_RETURN(std::string name, cursor->Word());
    GW_RETURN_IF_ERROR(cursor->Expect("="));
    GW_ASSIGN_OR_RETURN((*factors)[name].size, cursor->Int());
  }
  for (auto [word, kind] :
       {std::pair("reduction={", FactorKind::kReduction), std::pair("need_replication={", FactorKind::kNeedReplication),
        std::pair("permutation={", FactorKind::kPermutation),
        std::pair("blocked_propagation={", FactorKind::kPassThrough)}) {
    if (!cursor->Consume(word)) continue;
    for (bool first = true; !cursor->Consume("}"); first = false) {
      if (!first) GW_RETURN_IF_ERROR(cursor->Expect(","));
      GW_ASSIGN_OR_RETURN(std::string name, cursor->Word());
      auto it = factors->find(name);
      if (it == factors->end()) return cursor->Error("a factor of the rule");
      if (kind != FactorKind::kPassThrough) it->second.kind = kind;
    }
  }
  if (cursor->Consume(",")) GW_RETURN_IF_ERROR(cursor->Expect("custom"));
  return cursor->Expect(">");
}

absl::StatusOr<std::vector<ValueFactors>> Number(const std::vector<NamedValue>& values,
                                                 const std::map<std::string, int>& numbers,
                                                 const std::vector<Factor>& factors, const std::vector<Shape>& shapes) {
  if (values.size() != shapes.size()) return absl::InvalidArgumentError("sharding rule: number of arrays differs");
  std::vector<ValueFactors> out;
  for (size_t i = 0; i < values.size(); ++i) {
    if (static_cast<int64_t>(values[i].size()) != shapes[i].rank()) {
      return absl::InvalidArgumentError(absl::StrCat("sharding rule does not fit ", shapes[i].ToString()));
    }
    ValueFactors value;
    for (size_t dim = 0; dim < values[i].size(); ++dim) {
      DimFactors list;
      int64_t product = 1;
      for (const std::string& name : values[i][dim]) {
        auto it = numbers.find(name);
        if (it == numbers.end()) return absl::InvalidArgumentError(absl::StrCat("sharding rule: no size for ", name));
        list.push_back(it->second);
        product *= factors[it->second].size;
      }
      if (list.size() > 1 && product != shapes[i].dim(dim)) {
        return absl::InvalidArgumentError(absl::StrCat("sharding rule does not fit ", shapes[i].ToString()));
      }
      value.push_back(std::move(list));
    }
    out.push_back(std::move(value));
  }
  return out;
}

bool Names(const std::vector<ValueFactors>& values, int factor) {
  for (const ValueFactors& value : values) {
    for (const DimFactors& dim : value) {
      if (std::find(dim.begin(), dim.end(), factor) != dim.end()) return true;
    }
  }
  return false;
}

// jax gives every dimension a factor: one that operands and results do not share says nothing about how to split it.
void WholeWhereUnrelated(OpRule* rule) {
  for (size_t f = 0; f < rule->factors.size(); ++f) {
    const bool shared = Names(rule->operands, static_cast<int>(f)) && Names(rule->results, static_cast<int>(f));
    FactorKind& kind = rule->factors[f].kind;
    if (kind == FactorKind::kPassThrough && !shared) kind = FactorKind::kNeedReplication;
  }
}

}  // namespace

absl::StatusOr<OpRule> ParseSdyRule(absl::string_view text, const hlo::Instruction& instruction) {
  TextCursor cursor(text);
  GW_RETURN_IF_ERROR(cursor.Expect("#sdy.op_sharding_rule<"));
  GW_ASSIGN_OR_RETURN(auto operands, ConsumeValues(&cursor));
  GW_RETURN_IF_ERROR(cursor.Expect("->"));
  GW_ASSIGN_OR_RETURN(auto results, ConsumeValues(&cursor));
  std::map<std::string, Factor> factors;
  GW_RETURN_IF_ERROR(ConsumeFactors(&cursor, &factors));
  GW_RETURN_IF_ERROR(cursor.ExpectEnd());

  OpRule rule;
  std::map<std::string, int> numbers;
  for (const auto& [name, factor] : factors) {
    numbers[name] = static_cast<int>(rule.factors.size());
    rule.factors.push_back(factor);
  }
  std::vector<Shape> operand_shapes;
  for (const hlo::Instruction* operand : instruction.operands()) operand_shapes.push_back(operand->shape());
  GW_ASSIGN_OR_RETURN(rule.operands, Number(operands, numbers, rule.factors, operand_shapes));
  GW_ASSIGN_OR_RETURN(rule.results, Number(results, numbers, rule.factors, Leaves(instruction.shape())));
  WholeWhereUnrelated(&rule);
  return rule;
}

}  // namespace gangway::rules

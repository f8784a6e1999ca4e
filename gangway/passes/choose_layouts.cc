#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gangway/passes/layout_mode.h"
#include "gangway/passes/passes.h"

namespace gangway::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

DimVector RowMajor(int64_t rank) {
  DimVector dims;
  for (int64_t dim = rank - 1; dim >= 0; --dim) dims.push_back(dim);
  return dims;
}

std::string ModeText(const DimVector& minor_to_major) {
  return absl::StrCat("{", absl::StrJoin(minor_to_major, ","), "}");
}

// The operand whose elements lie where the result's do, if there is one.
const Instruction* Source(const Instruction& instruction) {
  if (instruction.opcode() == Opcode::kTranspose || instruction.opcode() == Opcode::kCopy)
    return instruction.operand(0);
  const auto* call = instruction.attr_if<hlo::CustomCallAttr>();
  const bool annotates = call != nullptr && call->target == "Sharding";
  if (!annotates && !hlo::IsElementwise(instruction.opcode())) return nullptr;
  for (const Instruction* operand : instruction.operands()) {
    const bool spread = operand->opcode() == Opcode::kBroadcast || operand->opcode() == Opcode::kConstant;
    if (!spread && operand->shape().dims() == instruction.shape().dims()) return operand;
  }
  return nullptr;
}

// The layout in which a value can be had without moving what lies as the parameters do.
DimVector NaturalLayout(const Instruction* value, const hlo::ModuleConfig& config) {
  std::vector<const Instruction*> transposes;
  const int64_t rank = value->shape().rank();
  for (const Instruction* source = Source(*value); source != nullptr; source = Source(*value)) {
    if (value->opcode() == Opcode::kTranspose) transposes.push_back(value);
    value = source;
  }
  if (value->opcode() != Opcode::kParameter) return RowMajor(rank);
  const auto number = static_cast<size_t>(value->attr<hlo::ParameterAttr>().number);
  const bool asked = number < config.parameter_layout_modes.size();
  DimVector layout = MinorToMajor(asked ? config.parameter_layout_modes[number] : "", rank);
  for (auto transpose = transposes.rbegin(); transpose != transposes.rend(); ++transpose) {
    const DimVector& permutation = (*transpose)->attr<hlo::DimensionsAttr>().dims;
    for (int64_t& dim : layout) dim = std::find(permutation.begin(), permutation.end(), dim) - permutation.begin();
  }
  return layout;
}

}  // namespace

DimVector MinorToMajor(absl::string_view mode, int64_t rank) {
  DimVector dims;
  if (!absl::ConsumePrefix(&mode, "{")) return RowMajor(rank);
  for (absl::string_view number : absl::StrSplit(mode.substr(0, mode.find_first_of(":}")), ',')) {
    int64_t dim = -1;
    if (absl::SimpleAtoi(number, &dim) && dim >= 0 && dim < rank) dims.push_back(dim);
  }
  DimVector sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return static_cast<int64_t>(sorted.size()) == rank && dims.size() == sorted.size() ? dims : RowMajor(rank);
}

absl::StatusOr<bool> RunChooseLayouts(hlo::Module& module) {
  hlo::ModuleConfig& config = module.config();
  bool changed = false;
  for (std::string& mode : config.parameter_layout_modes) {
    if (mode != kAutoLayout) continue;
    mode = "default";
    changed = true;
  }
  const Instruction* root = module.entry()->root();
  for (size_t i = 0; i < config.result_layout_modes.size(); ++i) {
    std::string& mode = config.result_layout_modes[i];
    if (mode != kAutoLayout) continue;
    const bool is_tuple = root->shape().IsTuple();
    const bool seen = !is_tuple || (root->opcode() == Opcode::kTuple && i < root->operands().size());
    const Instruction* value = !seen ? nullptr : is_tuple ? root->operand(static_cast<int64_t>(i)) : root;
    mode = value != nullptr && value->shape().IsArray() ? ModeText(NaturalLayout(value, config)) : "default";
    changed = true;
  }
  return changed;
}

}  // namespace gangway::passes

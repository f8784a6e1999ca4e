#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gangway/hlo/literal_text.h"
#include "gangway/hlo/text.h"
#include "gangway/hlo/text_attributes.h"
#include "gangway/hlo/text_called.h"
#include "gangway/hlo/text_module.h"
#include "gangway/mesh/hlo_sharding.h"

namespace gangway::hlo {
namespace {

// Newer XLA prints `%while#3` for a get-tuple-element that says nothing else. The parser names these with a '#'.
bool IsInlineElement(const Instruction& instruction) {
  return instruction.opcode() == Opcode::kGetTupleElement && absl::StrContains(instruction.name(), '#') &&
         !instruction.IsRoot() && !instruction.has_sharding() && instruction.metadata().empty() &&
         instruction.frontend_attributes().empty() && instruction.control_predecessors().empty() &&
         instruction.backend_config().empty() && instruction.extra_text().empty();
}

std::string Reference(const Instruction& instruction) {
  if (IsInlineElement(instruction)) {
    return absl::StrCat(Reference(*instruction.operand(0)), "#", instruction.attr<TupleIndexAttr>().index);
  }
  return absl::StrCat("%", absl::StrReplaceAll(instruction.name(), {{"#", ".element."}}));
}

std::string PrintConstant(const ConstantAttr& attr) {
  if (attr.literal == nullptr) return "";
  return attr.elided ? "{...}" : PrintLiteral(*attr.literal);
}

// What stands in the parentheses.
std::string PrintArguments(const Instruction& instruction) {
  if (const auto* parameter = instruction.attr_if<ParameterAttr>()) return absl::StrCat(parameter->number);
  if (const auto* constant = instruction.attr_if<ConstantAttr>()) return PrintConstant(*constant);
  std::string text;
  for (int64_t i = 0; i < instruction.operand_count(); ++i) {
    if (i > 0) absl::StrAppend(&text, ", ");
    if (i > 0 && i % 5 == 0) absl::StrAppend(&text, "/*index=", i, "*/");
    absl::StrAppend(&text, Reference(*instruction.operand(i)));
  }
  return text;
}

std::string PrintNames(const std::vector<Instruction*>& instructions) {
  return absl::StrJoin(instructions, ", ", [](std::string* out, const Instruction* instruction) {
    absl::StrAppend(out, Reference(*instruction));
  });
}

void PrintInstruction(const Instruction& instruction, std::string* out) {
  absl::StrAppend(out, Reference(instruction), " = ", instruction.shape().ToString(/*with_layout=*/true), " ",
                  OpcodeName(instruction.opcode()), "(", PrintArguments(instruction), ")");
  AttributeWriter writer(out);
  const AttributeRow* row = AttributeRowOf(instruction.opcode());
  if (row != nullptr && !std::holds_alternative<std::monostate>(instruction.attributes())) {
    row->write(instruction, &writer);
  }
  WriteCalled(instruction, &writer);
  absl::StrAppend(out, instruction.extra_text());
  if (instruction.has_sharding()) {
    writer.Add("sharding", PrintHloShardings(*instruction.shardings(), instruction.shape().IsTuple()));
  }
  if (!instruction.frontend_attributes().empty()) {
    writer.Add("frontend_attributes", PrintFrontendAttributes(instruction.frontend_attributes()));
  }
  if (!instruction.control_predecessors().empty()) {
    writer.Add("control-predecessors", absl::StrCat("{", PrintNames(instruction.control_predecessors()), "}"));
  }
  if (!instruction.metadata().empty()) writer.Add("metadata", PrintMetadata(instruction.metadata()));
  const auto* custom = instruction.attr_if<CustomCallAttr>();
  const std::string& config = custom != nullptr ? custom->backend_config : instruction.backend_config();
  if (!config.empty()) writer.Add("backend_config", PrintStringOrBraced(config));
}

void PrintComputation(const Computation& computation, bool is_entry, std::string* out) {
  absl::StrAppend(out, is_entry ? "ENTRY %" : "%", computation.name(), " (");
  for (size_t i = 0; i < computation.parameters().size(); ++i) {
    const Instruction* parameter = computation.parameters()[i];
    if (parameter == nullptr) continue;
    absl::StrAppend(out, i > 0 ? ", " : "", parameter->name(), ": ", parameter->shape().ToString());
  }
  absl::StrAppend(out, ") -> ", computation.root() == nullptr ? "()" : computation.root()->shape().ToString(), " {\n");
  for (const auto& instruction : computation.instructions()) {
    if (IsInlineElement(*instruction)) continue;
    absl::StrAppend(out, instruction->IsRoot() ? "  ROOT " : "  ");
    PrintInstruction(*instruction, out);
    absl::StrAppend(out, "\n");
  }
  absl::StrAppend(out, "}");
}

}  // namespace

std::string PrintModule(const Module& module) {
  std::string out;
  PrintModuleLine(module, &out);
  PrintStackFrames(module.stack_frames(), &out);
  for (const auto& computation : module.computations()) {
    PrintComputation(*computation, computation.get() == module.entry(), &out);
    absl::StrAppend(&out, "\n\n");
  }
  return out;
}

std::string Instruction::ToString() const {
  std::string out;
  PrintInstruction(*this, &out);
  return out;
}

std::string Computation::ToString() const {
  std::string out;
  PrintComputation(*this, this == module_->entry(), &out);
  return out;
}

std::string Module::ToString() const { return PrintModule(*this); }

}  // namespace gangway::hlo

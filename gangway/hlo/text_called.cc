#include "gangway/hlo/text_called.h"

#include "gangway/hlo/module.h"

namespace gangway::hlo {
namespace {

// Keys of called computations in order; `list` is one key for all of them, `{%a, %b}`.
struct CalledKeys {
  std::vector<absl::string_view> keys;
  bool list = false;
};

CalledKeys KeysOf(Opcode opcode, const Instruction* first_operand) {
  switch (opcode) {
    case Opcode::kWhile:
      return {{"condition", "body"}};
    case Opcode::kSelectAndScatter:
      return {{"select", "scatter"}};
    case Opcode::kConditional:
      if (first_operand != nullptr && first_operand->shape().dtype() == DType::kPred) {
        return {{"true_computation", "false_computation"}};
      }
      return {{"branch_computations"}, /*list=*/true};
    case Opcode::kCustomCall:
      return {{"called_computations"}, /*list=*/true};
    case Opcode::kFusion:
    case Opcode::kAsyncStart:
    case Opcode::kAsyncUpdate:
    case Opcode::kAsyncDone:
      return {{"calls"}};
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
    case Opcode::kCall:
    case Opcode::kMap:
    case Opcode::kReduce:
    case Opcode::kReduceScatter:
    case Opcode::kReduceWindow:
    case Opcode::kScatter:
    case Opcode::kSort:
      return {{"to_apply"}};
    default:
      return {};
  }
}

absl::StatusOr<Computation*> ReadName(const Module& module, TextLexer* lexer) {
  TextLexer here = *lexer;
  GW_ASSIGN_OR_RETURN(absl::string_view name, lexer->Name());
  Computation* computation = module.FindComputation(name);
  if (computation == nullptr) return here.Error("the name of a computation above");
  return computation;
}

}  // namespace

absl::StatusOr<std::vector<Computation*>> ReadCalled(const AttributeContext& context, const Module& module,
                                                     AttributeText* text) {
  const CalledKeys keys = KeysOf(context.opcode, context.operands.empty() ? nullptr : context.operands[0]);
  std::vector<Computation*> called;
  for (absl::string_view key : keys.keys) {
    std::optional<TextLexer> lexer = text->Take(key);
    if (!lexer.has_value()) continue;
    if (keys.list) GW_RETURN_IF_ERROR(lexer->Expect("{"));
    for (bool first = true; !keys.list || !lexer->Consume("}"); first = false) {
      if (!first) GW_RETURN_IF_ERROR(lexer->Expect(","));
      GW_ASSIGN_OR_RETURN(Computation * computation, ReadName(module, &*lexer));
      called.push_back(computation);
      if (!keys.list) break;
    }
    GW_RETURN_IF_ERROR(lexer->ExpectEnd());
  }
  return called;
}

void WriteCalled(const Instruction& instruction, AttributeWriter* writer) {
  const std::vector<Computation*>& called = instruction.called();
  if (called.empty()) return;
  const CalledKeys keys =
      KeysOf(instruction.opcode(), instruction.operands().empty() ? nullptr : instruction.operand(0));
  if (keys.list) {
    std::string names = absl::StrJoin(
        called, ", ", [](std::string* out, const Computation* c) { absl::StrAppend(out, "%", c->name()); });
    writer->Add(keys.keys[0], absl::StrCat("{", names, "}"));
    return;
  }
  for (size_t i = 0; i < called.size(); ++i) {
    // A key is missing only for what Verify rejects; it is still shown.
    writer->Add(i < keys.keys.size() ? keys.keys[i] : "calls", absl::StrCat("%", called[i]->name()));
  }
}

}  // namespace gangway::hlo

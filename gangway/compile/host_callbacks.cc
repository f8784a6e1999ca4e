#include "gangway/compile/host_callbacks.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gangway/hlo/host_callback.h"

namespace gangway::compile {
namespace {

using hlo::Instruction;

// N of `{index = N : ui64}`; -1 when it is not there.
int64_t IndexOf(absl::string_view config) {
  constexpr absl::string_view kName = "index = ";
  const size_t at = config.find(kName);
  if (at == absl::string_view::npos) return -1;
  absl::string_view digits = config.substr(at + kName.size());
  digits = digits.substr(0, digits.find_first_not_of("0123456789"));
  int64_t index = -1;
  return absl::SimpleAtoi(digits, &index) ? index : -1;
}

absl::Status Name(Instruction* instruction, int count) {
  auto& call = instruction->mutable_attr<hlo::CustomCallAttr>();
  const int64_t index = call.api == hlo::CustomCallApi::kTypedFfi ? IndexOf(call.backend_config) : -1;
  if (index < 0 || index >= count) {
    return absl::InvalidArgumentError(absl::StrCat("instruction %", instruction->name(), ": custom call to '",
                                                   call.target, "' names none of the program's ", count,
                                                   " host callbacks"));
  }
  call.target = std::string(hlo::kHostCallback);
  call.backend_config = absl::StrCat("{callback = ", index, " : i64");
  if (auto device = instruction->frontend_attributes().find(std::string(hlo::kCallingDevice));
      device != instruction->frontend_attributes().end()) {
    absl::StrAppend(&call.backend_config, ", device = ", device->second, " : i64");
  }
  if (instruction->frontend_attributes().contains(std::string(hlo::kCallsWithParts))) {
    call.backend_config += ", with_extents = 1 : i64";
  }
  call.backend_config += "}";
  std::vector<Shape> shapes;
  for (const Instruction* operand : instruction->operands()) shapes.push_back(WithRowMajorLayout(operand->shape()));
  call.operand_shapes_with_layout = std::move(shapes);
  instruction->set_shape(WithRowMajorLayout(instruction->shape()));
  return absl::OkStatus();
}

}  // namespace

absl::Status NameHostCallbacks(hlo::Module* module, int count) {
  for (const auto& computation : module->computations()) {
    for (const auto& instruction : computation->instructions()) {
      const auto* call = instruction->attr_if<hlo::CustomCallAttr>();
      if (call == nullptr || !hlo::IsJaxHostCallback(call->target)) continue;
      if (absl::Status status = Name(instruction.get(), count); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace gangway::compile

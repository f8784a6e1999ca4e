#include "gangway/eval/op_table.h"

namespace gangway::eval {

const OpTable& OpTable::Get() {
  static const OpTable& table = *[] {
    auto* made = new OpTable;
    AddBatchNorm(made);
    AddCollective(made);
    AddControl(made);
    AddConvolution(made);
    AddCustomCall(made);
    AddDot(made);
    AddElementwise(made);
    AddFft(made);
    AddGather(made);
    AddLinalg(made);
    AddReduce(made);
    AddReshape(made);
    AddRng(made);
    AddSlice(made);
    AddSort(made);
    AddWindow(made);
    return made;
  }();
  return table;
}

absl::string_view UnsupportedReason(hlo::Opcode opcode) {
  const OpTable::Entry& entry = OpTable::Get()[opcode];
  if (const auto* unsupported = std::get_if<Unsupported>(&entry)) return unsupported->reason;
  return std::holds_alternative<std::monostate>(entry) ? "no function in the table" : "";
}

}  // namespace gangway::eval

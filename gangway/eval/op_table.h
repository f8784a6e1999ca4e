// How each opcode is evaluated. Internal to eval.
#pragma once

#include <array>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gangway/eval/interpreter.h"
#include "gangway/eval/value.h"
#include "gangway/hlo/instruction.h"

namespace gangway::eval {

// One application of an operation on one device.
struct Call {
  const hlo::Instruction& instruction;
  absl::Span<const Value> operands;
  Interpreter& interpreter;

  const Literal& array(int64_t i) const { return operands[i].array(); }
  const Shape& shape() const { return instruction.shape(); }
  template <typename T>
  const T& attr() const {
    return instruction.attr<T>();
  }
};

// One application on all devices that run it: operands[i][d] is operand i on the d-th of `devices`.
struct LockstepCall {
  const hlo::Instruction& instruction;
  absl::Span<const std::vector<Value>> operands;
  absl::Span<const int64_t> devices;
  Interpreter& interpreter;
};

using OpFunction = absl::StatusOr<Value> (*)(const Call&);  // depends on operands and attributes only
using LockstepFunction = absl::StatusOr<PerDevice> (*)(const LockstepCall&);
struct Unsupported {
  absl::string_view reason;
};

class OpTable {
 public:
  using Entry = std::variant<std::monostate, OpFunction, LockstepFunction, Unsupported>;

  // Filled by one Add* function per family.
  static const OpTable& Get();

  const Entry& operator[](hlo::Opcode opcode) const { return entries_[static_cast<int>(opcode)]; }
  void Set(hlo::Opcode opcode, OpFunction function) { entries_[static_cast<int>(opcode)] = function; }
  void SetLockstep(hlo::Opcode opcode, LockstepFunction function) { entries_[static_cast<int>(opcode)] = function; }
  void SetUnsupported(hlo::Opcode opcode, absl::string_view reason) {
    entries_[static_cast<int>(opcode)] = Unsupported{reason};
  }

 private:
  std::array<Entry, hlo::kOpcodeCount> entries_;
};

// One per file of the same name.
void AddBatchNorm(OpTable* table);
void AddCollective(OpTable* table);
void AddControl(OpTable* table);
void AddConvolution(OpTable* table);
void AddCustomCall(OpTable* table);
void AddDot(OpTable* table);
void AddElementwise(OpTable* table);
void AddFft(OpTable* table);
void AddGather(OpTable* table);
void AddLinalg(OpTable* table);
void AddReduce(OpTable* table);
void AddReshape(OpTable* table);
void AddRng(OpTable* table);
void AddSlice(OpTable* table);
void AddSort(OpTable* table);
void AddWindow(OpTable* table);

}  // namespace gangway::eval

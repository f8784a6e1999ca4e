#include "gangway/compile/lapack.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gangway/compile/lu.h"
#include "gangway/hlo/builder.h"

namespace gangway::compile {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

// "potrf" of "lapack_spotrf_ffi"; empty for other targets.
absl::string_view RoutineOf(absl::string_view target) {
  if (!absl::ConsumePrefix(&target, "lapack_") || !absl::ConsumeSuffix(&target, "_ffi") || target.empty()) return "";
  return target.substr(1);  // the letter of the element type
}

// A character attribute of the call, e.g. 'L' of `{uplo = 76 : ui8}`; 0 when absent.
char CharacterOf(absl::string_view config, absl::string_view name) {
  const size_t at = config.find(absl::StrCat(name, " = "));
  if (at == absl::string_view::npos) return 0;
  absl::string_view digits = config.substr(at + name.size() + 3);
  digits = digits.substr(0, digits.find(' '));
  int64_t value = 0;
  return absl::SimpleAtoi(digits, &value) ? static_cast<char>(value) : '\0';
}

Instruction* XlaCall(Builder& builder, std::string target, std::string config, std::vector<Instruction*> operands,
                     const Shape& shape) {
  hlo::CustomCallAttr attr;
  attr.target = std::move(target);
  attr.backend_config = std::move(config);
  return builder.Add(Opcode::kCustomCall, std::move(operands), std::move(attr), {}, shape);
}

// `results` and a status of all zeros as the call's last result.
Instruction* WithStatus(Builder& builder, std::vector<Instruction*> results, const Shape& call) {
  const Shape status = WithoutLayout(call.tuple().back());
  results.push_back(builder.BroadcastScalar(builder.Constant(Literal(Shape::Scalar(status.dtype()))), status));
  return builder.Tuple(std::move(results));
}

// Null when the routine is not one of ours.
Instruction* Replacement(const Instruction& call, Builder& builder) {
  const auto& attr = call.attr<hlo::CustomCallAttr>();
  const absl::string_view routine = RoutineOf(attr.target);
  const absl::string_view config = attr.backend_config;
  const Shape shape = WithoutLayout(call.shape());
  const bool lower = CharacterOf(config, "uplo") == 'L';
  if (routine == "potrf" && shape.tuple().size() == 2) {
    return WithStatus(builder, {builder.Add(Opcode::kCholesky, {call.operand(0)}, hlo::CholeskyAttr{lower})}, shape);
  }
  if (routine == "trsm" && call.operand_count() == 2) {
    hlo::TriangularSolveAttr solve;
    solve.left_side = CharacterOf(config, "side") == 'L';
    solve.lower = lower;
    solve.unit_diagonal = CharacterOf(config, "diag") == 'U';
    const char transpose = CharacterOf(config, "trans_x");
    solve.transpose_a = transpose == 'T'   ? hlo::Transposition::kTranspose
                        : transpose == 'C' ? hlo::Transposition::kAdjoint
                                           : hlo::Transposition::kNone;
    return builder.Add(Opcode::kTriangularSolve, {call.operand(0), call.operand(1)}, solve);
  }
  if (routine == "getrf" && shape.tuple().size() == 3 && shape.tuple()[0].rank() >= 2) {
    const LuResult lu = EmitLu(&builder, call.operand(0));
    return WithStatus(builder, {lu.lu, lu.pivots}, shape);
  }
  if (routine == "geqrf" && shape.tuple().size() == 2) return XlaCall(builder, "Qr", "", {call.operand(0)}, shape);
  if ((routine == "orgqr" || routine == "ungqr") && call.operand_count() == 2) {
    return XlaCall(builder, "ProductOfElementaryHouseholderReflectors", "", {call.operand(0), call.operand(1)}, shape);
  }
  if ((routine == "syevd" || routine == "heevd") && shape.tuple().size() == 3 && CharacterOf(config, "mode") == 'V') {
    const Shape found = Shape::Tuple({shape.tuple()[0], shape.tuple()[1]});
    // lower, sorted, sweeps, tolerance: what JAX asks of devices without LAPACK.
    Instruction* eigen = XlaCall(builder, "Eigh", absl::StrCat(lower ? 1 : 0, ",1,100,1e-6"), {call.operand(0)}, found);
    return WithStatus(builder, {builder.GetTupleElement(eigen, 0), builder.GetTupleElement(eigen, 1)}, shape);
  }
  return nullptr;
}

}  // namespace

void ReplaceLapackCalls(hlo::Module* module) {
  // A factorization adds computations of its own, which need no visit.
  for (hlo::Computation* computation : module->PostOrder()) {
    std::vector<Instruction*> calls;
    for (const auto& instruction : computation->instructions()) {
      const auto* call = instruction->attr_if<hlo::CustomCallAttr>();
      if (call != nullptr && !RoutineOf(call->target).empty()) calls.push_back(instruction.get());
    }
    Builder builder(computation);
    bool changed = false;
    for (Instruction* call : calls) {
      builder.set_metadata(call->metadata());
      Instruction* replacement = Replacement(*call, builder);
      if (replacement == nullptr) continue;
      call->ReplaceAllUsesWith(replacement);
      changed = true;
    }
    if (changed) {
      computation->SortTopologically();
      computation->RemoveDead();
    }
  }
  module->SortComputations();
}

}  // namespace gangway::compile

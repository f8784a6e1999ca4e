#include "gangway/compile/lapack.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/compile/lu.h"
#include "gangway/hlo/builder.h"
#include "gangway/hlo/lapack_call.h"

namespace gangway::compile {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

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
  const absl::string_view routine = hlo::LapackRoutine(attr.target);
  const absl::string_view config = attr.backend_config;
  const Shape shape = WithoutLayout(call.shape());
  const bool lower = hlo::LapackCharacter(config, "uplo") == 'L';
  if (routine == "potrf" && shape.tuple().size() == 2) {
    return WithStatus(builder, {builder.Add(Opcode::kCholesky, {call.operand(0)}, hlo::CholeskyAttr{lower})}, shape);
  }
  if (routine == "trsm" && call.operand_count() == 2) {
    hlo::TriangularSolveAttr solve;
    solve.left_side = hlo::LapackCharacter(config, "side") == 'L';
    solve.lower = lower;
    solve.unit_diagonal = hlo::LapackCharacter(config, "diag") == 'U';
    const char transpose = hlo::LapackCharacter(config, "trans_x");
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
  if ((routine == "syevd" || routine == "heevd") && shape.tuple().size() == 3 &&
      hlo::LapackCharacter(config, "mode") == 'V') {
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
      if (call != nullptr && !hlo::LapackRoutine(call->target).empty()) calls.push_back(instruction.get());
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

// OpContext: one operation being converted; what a converter works with.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gangway/stablehlo/op_view.h"
#include "gangway/stablehlo/translation.h"

namespace gangway::stablehlo {

class OpContext {
 public:
  // Resolves operands and result shapes.
  static absl::StatusOr<OpContext> Make(Translation& program, const Scope& scope, const OpView& op);

  const OpView& op() const { return op_; }
  const Scope& scope() const { return scope_; }
  Translation& program() const { return program_; }
  const std::vector<hlo::Instruction*>& operands() const { return operands_; }
  hlo::Instruction* operand(size_t i) const { return operands_[i]; }
  const std::vector<Shape>& result_shapes() const { return result_shapes_; }
  const Shape& result_shape() const { return result_shapes_.front(); }
  // The location's name with those of the calls around, e.g. "jit(step)/jit(relu)/max".
  const std::string& op_name() const { return metadata_.op_name; }
  // The shape of an instruction with all results: the result's, or a tuple of them.
  Shape CombinedShape() const;

  // Adds an instruction with this op's location. Inside a manual computation it is marked with the manual axes.
  hlo::Instruction* Emit(hlo::Opcode opcode, Shape shape, std::vector<hlo::Instruction*> operands,
                         hlo::Attributes attributes = {}, std::vector<hlo::Computation*> called = {});
  hlo::Instruction* EmitTuple(std::vector<hlo::Instruction*> elements);
  // A scalar constant.
  hlo::Instruction* EmitScalar(DType dtype, double value);
  hlo::Instruction* EmitReshape(hlo::Instruction* x, DimVector dims);
  // A "Sharding" custom call: the value with a constraint.
  hlo::Instruction* EmitSharding(hlo::Instruction* x, Sharding sharding);

  // Makes the instruction the op's results (elements of its tuple when there are several), with the op's own sharding
  // and frontend attributes.
  absl::Status Finish(hlo::Instruction* instruction);
  // Makes each value the result of that number; the op's own shardings are taken care of.
  absl::Status FinishEach(const std::vector<hlo::Instruction*>& values);
  // The same for values of instructions that stand for something else (the results of an inlined function, an operand):
  // the op's own shardings become constraints on them.
  absl::Status FinishValues(std::vector<hlo::Instruction*> values);
  absl::Status FinishWith(hlo::Opcode opcode, std::vector<hlo::Instruction*> operands, hlo::Attributes attributes = {},
                          std::vector<hlo::Computation*> called = {}) {
    return Finish(Emit(opcode, CombinedShape(), std::move(operands), std::move(attributes), std::move(called)));
  }

  // The integers of an operand that is a constant; Unimplemented when it is none.
  absl::StatusOr<DimVector> ConstantOperand(size_t i) const;

  // A region as a computation with one parameter per block argument, capturing nothing but constants.
  absl::StatusOr<hlo::Computation*> PureRegion(size_t region);

  // The sharding with the manual axes of this scope added. Fails when it is over another mesh than they are.
  absl::StatusOr<Sharding> WithManual(Sharding sharding) const;
  // The scope for a region or called function: manual also when the operands are.
  Scope Inner() const;

  // Values of `mhlo.sharding`, `sdy.sharding` or the frontend attribute `xla.sdy.sharding` for `shapes`; nullopt when
  // the op has none of them.
  absl::StatusOr<std::optional<Shardings>> OwnShardings(const std::vector<Shape>& shapes) const;
  // The one device on which the op's sharding puts it as a whole.
  absl::StatusOr<std::optional<int64_t>> RunsOn() const;
  absl::StatusOr<hlo::FrontendAttributes> OwnFrontendAttributes() const;

  static absl::Status Error(absl::string_view message) { return absl::InvalidArgumentError(message); }

 private:
  OpContext(Translation& program, const Scope& scope, const OpView& op) : program_(program), scope_(scope), op_(op) {}
  ManualAxes ManualOf(const std::vector<hlo::Instruction*>& operands) const;

  Translation& program_;
  const Scope& scope_;
  const OpView& op_;
  std::vector<hlo::Instruction*> operands_;
  std::vector<Shape> result_shapes_;
  hlo::OpMetadata metadata_;
};

}  // namespace gangway::stablehlo

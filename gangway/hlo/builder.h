// Builds instructions with their shapes inferred. The way compiler passes and tests make HLO.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/hlo/module.h"

namespace gangway::hlo {

// Adds to one computation; borrows it. A misuse (shapes that do not fit) is our own bug in a pass: it aborts with the
// operation named. Where operands come from a user's program use TryAdd, which returns the error. New instructions take
// `metadata` when it is set.
class Builder {
 public:
  explicit Builder(Computation* computation) : computation_(computation) {}
  Computation* computation() const { return computation_; }
  // Context for what is added next: metadata and frontend attributes of the instruction it stands for.
  void set_metadata(OpMetadata metadata) { metadata_ = std::move(metadata); }

  // With `wanted` the result must have that type, and gets its layouts.
  absl::StatusOr<Instruction*> TryAdd(Opcode opcode, std::vector<Instruction*> operands, Attributes attributes = {},
                                      std::vector<Computation*> called = {}, const Shape& wanted = {});
  Instruction* Add(Opcode opcode, std::vector<Instruction*> operands, Attributes attributes = {},
                   std::vector<Computation*> called = {}, const Shape& wanted = {});

  Instruction* Parameter(int64_t number, Shape shape, std::string name);
  Instruction* Constant(Literal literal);
  Instruction* Scalar(DType dtype, double value);        // constant
  Instruction* Index(int64_t value);                     // s32 constant
  Instruction* Splat(const Shape& shape, double value);  // broadcast of a scalar constant
  Instruction* Unary(Opcode opcode, Instruction* x);
  Instruction* Binary(Opcode opcode, Instruction* x, Instruction* y);
  Instruction* Compare(ComparisonDirection direction, Instruction* x, Instruction* y);
  Instruction* Select(Instruction* predicate, Instruction* on_true, Instruction* on_false);
  Instruction* Convert(Instruction* x, DType dtype);
  Instruction* Broadcast(Instruction* x, const Shape& shape, DimVector dims);
  Instruction* BroadcastScalar(Instruction* x, const Shape& shape);
  Instruction* Reshape(Instruction* x, DimVector dims);
  Instruction* Transpose(Instruction* x, DimVector permutation);
  Instruction* Slice(Instruction* x, DimVector starts, DimVector limits, DimVector strides = {});
  Instruction* DynamicSlice(Instruction* x, std::vector<Instruction*> starts, DimVector sizes);
  Instruction* DynamicUpdateSlice(Instruction* x, Instruction* update, std::vector<Instruction*> starts);
  Instruction* Pad(Instruction* x, Instruction* value, std::vector<PadDim> dims);
  Instruction* Concatenate(std::vector<Instruction*> parts, int64_t dim);
  Instruction* Iota(const Shape& shape, int64_t dim);
  Instruction* Reduce(Instruction* x, Instruction* init, DimVector dims, Computation* to_apply);
  Instruction* Dot(Instruction* lhs, Instruction* rhs, DotAttr attr, DType result);
  Instruction* Tuple(std::vector<Instruction*> elements);
  Instruction* GetTupleElement(Instruction* tuple, int64_t index);
  Instruction* PartitionId();

  // The scalar computation `op(x, y)` of a type, made once per module (add, multiply, maximum, minimum, and, or ...).
  Computation* ScalarComputation(Opcode opcode, DType dtype);

 private:
  Computation* computation_;
  OpMetadata metadata_;
};

}  // namespace gangway::hlo

// fft of one dimension that is split.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "gangway/partition/context.h"

namespace gangway::partition {

// Bailey's four-step transform (J. Supercomputing 4, 1990): the dimension is seen as rows of a matrix, whose columns
// are transformed, turned by a root of unity each, and whose rows are transformed. Three all-to-alls, however many
// shards there are.
class LineFft {
 public:
  LineFft(const hlo::Instruction& instruction, Context& context);

  // Of a complex transform of one dimension whose split can be dealt out; nothing else has a plan.
  bool Choose();
  double Cost();
  absl::Status Emit();

 private:
  // The dimension as [rows, columns], one of them split as the dimension is.
  Shape MatrixShape(int64_t rows, int64_t columns) const;
  Sharding MatrixSharding(int64_t split) const;
  hlo::Instruction* TransformLast(hlo::Instruction* x, int64_t length);
  hlo::Instruction* Roots(const Shape& shape);
  hlo::Instruction* Swapped(hlo::Instruction* x);

  const hlo::Instruction& instruction_;
  Context& context_;
  const LocalValue value_;
  const int64_t dim_;
  Sharding held_;
  int64_t rows_ = 0, columns_ = 0;
};

}  // namespace gangway::partition

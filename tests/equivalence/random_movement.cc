// Random programs: operations that move elements.
#include <algorithm>
#include <numeric>

#include "gangway/hlo/builder.h"
#include "tests/equivalence/random_generator.h"

namespace gangway::equivalence {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

Instruction* Generator::Broadcast() {
  Instruction* x = Any();
  if (x->shape().rank() >= 3) return nullptr;
  DimVector dims = x->shape().dims(), map;
  const int place = Below(x->shape().rank() + 1);
  for (int64_t d = 0; d < x->shape().rank(); ++d) map.push_back(d < place ? d : d + 1);
  dims.insert(dims.begin() + place, RandomExtent());
  return builder_->Broadcast(x, Shape(x->shape().dtype(), dims), map);
}

DimVector Generator::Permutation(int64_t rank) {
  DimVector permutation(rank);
  std::iota(permutation.begin(), permutation.end(), 0);
  std::shuffle(permutation.begin(), permutation.end(), random_);
  return permutation;
}

Instruction* Generator::Transpose() {
  Instruction* x = Any();
  return builder_->Transpose(x, Permutation(x->shape().rank()));
}

Instruction* Generator::Reshape() {
  Instruction* x = Any();
  int64_t left = x->shape().ElementCount();
  DimVector dims;
  while (left > 1 && dims.size() < 3) {
    std::vector<int64_t> divisors;
    for (int64_t n = 1; n <= left; ++n) {
      if (left % n == 0) divisors.push_back(n);
    }
    dims.push_back(divisors[Below(static_cast<int64_t>(divisors.size()))]);
    left /= dims.back();
  }
  dims.push_back(left);
  return builder_->Reshape(x, dims);
}

Instruction* Generator::Slice() {
  Instruction* x = Any();
  DimVector starts, limits, strides;
  for (int64_t extent : x->shape().dims()) {
    starts.push_back(Chance(50) ? 0 : Below(extent));
    limits.push_back(Chance(50) ? extent : starts.back() + 1 + Below(extent - starts.back()));
    strides.push_back(Chance(80) ? 1 : 2);
  }
  return builder_->Slice(x, starts, limits, strides);
}

Instruction* Generator::Pad() {
  Instruction* x = Any();
  std::vector<hlo::PadDim> pad;
  for (int64_t extent : x->shape().dims()) {
    hlo::PadDim p;
    if (Chance(50)) p = {Below(4) - 1, Below(4) - 1, Chance(20) ? 1 : 0};
    if (extent + (extent - 1) * p.interior + p.low + p.high <= 0) p = {};
    pad.push_back(p);
  }
  return builder_->Pad(x, builder_->Scalar(x->shape().dtype(), Below(3)), pad);
}

Instruction* Generator::Concatenate() {
  Instruction* x = Any();
  if (x->shape().rank() == 0) return nullptr;
  return builder_->Concatenate({x, Like(x->shape())}, Below(x->shape().rank()));
}

Instruction* Generator::Reverse() {
  Instruction* x = AnyOfRank(1);
  if (x == nullptr) return nullptr;
  DimVector dims;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    if (Chance(50)) dims.push_back(d);
  }
  return builder_->Add(Opcode::kReverse, {x}, hlo::DimensionsAttr{dims});
}

// The end of a dimension before its beginning, as jnp.roll writes it.
Instruction* Generator::Roll() {
  Instruction* x = AnyOfRank(1);
  if (x == nullptr) return nullptr;
  const int64_t dim = Below(x->shape().rank()), extent = x->shape().dim(dim);
  if (extent < 2) return nullptr;
  const int64_t cut = 1 + Below(extent - 1);
  DimVector starts(x->shape().rank(), 0), limits = x->shape().dims(), tail = starts, head = limits;
  tail[dim] = head[dim] = cut;
  return builder_->Concatenate({builder_->Slice(x, tail, limits), builder_->Slice(x, starts, head)}, dim);
}

Instruction* Generator::Iota() {
  Shape shape = RandomShape();
  if (shape.rank() == 0) shape = Shape(shape.dtype(), {4});
  return builder_->Iota(shape, Below(shape.rank()));
}

}  // namespace gangway::equivalence

// Random programs: loops, branches, calls, barriers, manual regions.
#include <numeric>
#include <utility>

#include "gangway/hlo/builder.h"
#include "gangway/mesh/geometry.h"
#include "tests/equivalence/random_generator.h"

namespace gangway::equivalence {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

Instruction* Generator::Within(hlo::Computation* computation, std::vector<Instruction*> values, bool control_flow,
                               const std::function<Instruction*()>& make) {
  Builder builder(computation);
  Builder* outer = std::exchange(builder_, &builder);
  std::vector<Instruction*> outer_pool = std::exchange(pool_, std::move(values));
  const bool outer_control_flow = std::exchange(options_.control_flow, control_flow);
  Instruction* made = make();
  options_.control_flow = outer_control_flow;
  pool_ = std::move(outer_pool);
  builder_ = outer;
  return made;
}

// A scalar truth about x, different for different values.
Instruction* Generator::Predicate(Instruction* x) {
  DimVector all(x->shape().rank());
  std::iota(all.begin(), all.end(), 0);
  const DType dtype = x->shape().dtype();
  Instruction* largest =
      builder_->Reduce(Tamed(x), builder_->Scalar(dtype, 0), all, builder_->ScalarComputation(Opcode::kMaximum, dtype));
  return builder_->Compare(hlo::ComparisonDirection::kGt, largest, builder_->Scalar(dtype, Chance(50) ? 0 : 0.5));
}

// x = f(x) a few times; the state has the counter, its limit, the value and one more that is only read. The limit is a
// constant or depends on data.
Instruction* Generator::Loop() {
  Instruction *x = Any(), *y = Any();
  Instruction* limit = builder_->Index(1 + Below(3));
  if (Chance(30)) limit = builder_->Select(Predicate(y), builder_->Index(Below(4)), builder_->Index(2));
  Instruction* initial = builder_->Tuple({builder_->Index(0), limit, x, y});
  hlo::Computation* condition = module_->AddComputation("condition");
  Builder compare(condition);
  Instruction* p = compare.Parameter(0, initial->shape(), "state");
  condition->set_root(
      compare.Compare(hlo::ComparisonDirection::kLt, compare.GetTupleElement(p, 0), compare.GetTupleElement(p, 1)));
  hlo::Computation* body = module_->AddComputation("body");
  Builder builder(body);
  p = builder.Parameter(0, initial->shape(), "state");
  Instruction *i = builder.GetTupleElement(p, 0), *a = builder.GetTupleElement(p, 2),
              *b = builder.GetTupleElement(p, 3);
  Instruction* next = Within(body, {a, b, i}, Chance(20), [&] {
    for (int n = 0; n < 3; ++n) Step();
    return builder_->Binary(Opcode::kAdd, Tamed(Like(x->shape())), a);
  });
  body->set_root(
      builder.Tuple({builder.Binary(Opcode::kAdd, i, builder.Index(1)), builder.GetTupleElement(p, 1), next, b}));
  return builder_->GetTupleElement(builder_->Add(Opcode::kWhile, {initial}, {}, {condition, body}), 2);
}

// Sums up what each step makes of the counter and values that stay, sometimes into one row of a stack.
Instruction* Generator::Accumulation() {
  Instruction *x = Any(), *y = Any();
  const int trips = 1 + Below(3);
  DimVector stack = x->shape().dims();
  stack.insert(stack.begin(), trips);
  const bool stacked = Chance(40) && stack.size() < 4;
  Instruction* start = stacked ? builder_->Splat(Shape(x->shape().dtype(), stack), 0)
                               : (Chance(60) ? builder_->Splat(x->shape(), 0) : Like(x->shape()));
  Instruction* initial = builder_->Tuple({builder_->Index(0), start, x, y});
  hlo::Computation* condition = module_->AddComputation("condition");
  Builder compare(condition);
  Instruction* p = compare.Parameter(0, initial->shape(), "state");
  condition->set_root(
      compare.Compare(hlo::ComparisonDirection::kLt, compare.GetTupleElement(p, 0), compare.Index(trips)));
  hlo::Computation* body = module_->AddComputation("body");
  Builder builder(body);
  p = builder.Parameter(0, initial->shape(), "state");
  Instruction *i = builder.GetTupleElement(p, 0), *sum = builder.GetTupleElement(p, 1);
  Instruction *a = builder.GetTupleElement(p, 2), *b = builder.GetTupleElement(p, 3);
  Instruction* next = Within(body, {a, b, i}, false, [&] {
    for (int n = 0; n < 2; ++n) Step();
    Instruction* term = Like(x->shape());
    if (Chance(40)) term = builder_->Binary(Opcode::kAdd, term, a);
    if (!stacked) return builder_->Binary(Opcode::kAdd, sum, Tamed(term));
    std::vector<Instruction*> starts(sum->shape().rank(), builder_->Index(0));
    starts[0] = i;
    DimVector row = sum->shape().dims();
    row[0] = 1;
    return builder_->DynamicUpdateSlice(sum, builder_->Reshape(term, row), starts);
  });
  body->set_root(builder.Tuple({builder.Binary(Opcode::kAdd, i, builder.Index(1)), next, a, b}));
  return builder_->GetTupleElement(builder_->Add(Opcode::kWhile, {initial}, {}, {condition, body}), 1);
}

// Two branches by a predicate or three by an index.
Instruction* Generator::Conditional() {
  Instruction *x = Any(), *y = Any();
  const bool by_index = Chance(40);
  Instruction* argument = builder_->Tuple({x, y});
  std::vector<hlo::Computation*> branches;
  for (int b = 0; b < (by_index ? 3 : 2); ++b) {
    hlo::Computation* branch = module_->AddComputation("branch");
    Builder builder(branch);
    Instruction* p = builder.Parameter(0, argument->shape(), "xy");
    Instruction *mine = builder.GetTupleElement(p, 0), *other = builder.GetTupleElement(p, 1);
    branch->set_root(Within(branch, {mine, other}, Chance(15), [&] {
      Step();
      return builder_->Binary(Opcode::kAdd, Like(x->shape()), builder_->Splat(x->shape(), b));
    }));
    branches.push_back(branch);
  }
  Instruction* selector = Predicate(x);
  if (by_index) selector = builder_->Select(selector, builder_->Index(Below(4)), builder_->Index(Below(3) - 1));
  std::vector<Instruction*> operands(branches.size() + 1, argument);
  operands[0] = selector;
  return builder_->Add(Opcode::kConditional, operands, {}, branches);
}

// One computation, called twice.
Instruction* Generator::Call() {
  Instruction *x = Any(), *y = Like(x->shape());
  hlo::Computation* callee = module_->AddComputation("callee");
  Builder builder(callee);
  Instruction* p = builder.Parameter(0, x->shape(), "x");
  callee->set_root(Within(callee, {p}, false, [&] {
    Step();
    return builder_->Binary(Opcode::kSubtract, Like(x->shape()), p);
  }));
  Keep(builder_->Add(Opcode::kCall, {y}, {}, {callee}));
  return builder_->Add(Opcode::kCall, {x}, {}, {callee});
}

Instruction* Generator::Barrier() {
  Instruction* barrier = builder_->Add(Opcode::kOptBarrier, {builder_->Tuple({Any(), Any()})});
  Keep(builder_->GetTupleElement(barrier, 1));
  return builder_->GetTupleElement(barrier, 0);
}

// shard_map over the first axis: a dimension's part on each device, sums over the axis inside.
Instruction* Generator::ManualRegion() {
  Instruction* x = AnyOfRank(1);
  const AxisRef axis = FullAxis(*mesh_, 0);
  if (x == nullptr || options_.shard_everything || !options_.manual_regions) return nullptr;
  const int64_t dim = Below(x->shape().rank());
  if (x->shape().dim(dim) % axis.size != 0) return nullptr;
  Sharding outside = Sharding::Replicated(mesh_, x->shape().rank()).Closed();
  outside.dims[dim].axes = {axis};
  Sharding inside = Sharding::Replicated(mesh_, x->shape().rank()).Closed();
  inside.manual = {axis};
  const auto call = [&](Instruction* operand, const char* target, const Shape& shape, const Sharding& sharding) {
    hlo::CustomCallAttr attr;
    attr.target = target;
    Instruction* made = builder_->Add(Opcode::kCustomCall, {operand}, attr, {}, shape);
    made->set_shardings(Shardings{sharding});
    return made;
  };
  const Shape local = ShardShape(WithoutLayout(x->shape()), outside);
  Instruction* value = call(call(x, "Sharding", x->shape(), outside), "SPMDFullToShardShape", local, inside);
  value = Tamed(value);
  if (Chance(60)) {
    hlo::CollectiveAttr attr;
    attr.groups.groups = ReplicaGroups(*mesh_, {axis});
    attr.channel_id = 1;
    attr.use_global_device_ids = true;
    value = builder_->Add(Opcode::kAllReduce, {value}, attr,
                          {builder_->ScalarComputation(Opcode::kAdd, value->shape().dtype())});
    value = builder_->Binary(Opcode::kAdd, value, value);
  }
  return call(call(value, "Sharding", local, inside), "SPMDShardToFullShape", x->shape(), outside);
}

}  // namespace gangway::equivalence

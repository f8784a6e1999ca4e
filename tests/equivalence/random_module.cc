#include "tests/equivalence/random_module.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/hlo/builder.h"

namespace gangway::equivalence {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

MeshRef RandomMesh(std::mt19937_64& random) {
  switch (random() % 6) {
    case 0:
      return std::make_shared<const Mesh>(*Mesh::Make({{"x", 2}}));
    case 1:
      return std::make_shared<const Mesh>(*Mesh::Make({{"x", 4}}));
    case 2:
      return std::make_shared<const Mesh>(*Mesh::Make({{"x", 2}, {"y", 2}}, {1, 3, 0, 2}));
    case 3:
      return std::make_shared<const Mesh>(*Mesh::Make({{"x", 4}, {"y", 2}}));
    case 4:
      return std::make_shared<const Mesh>(*Mesh::Make({{"x", 2}, {"y", 3}}));
    default:
      return std::make_shared<const Mesh>(*Mesh::Make({{"x", 2}, {"y", 2}, {"z", 2}}));
  }
}

class Generator {
 public:
  Generator(uint64_t seed, const RandomOptions& options)
      : random_(seed),
        options_(options),
        mesh_(RandomMesh(random_)),
        module_(std::make_unique<hlo::Module>(absl::StrCat("random_", seed))) {}

  std::unique_ptr<hlo::Module> Run() {
    module_->config().num_partitions = mesh_->size();
    module_->meshes() = {{"mesh", mesh_}};
    hlo::Computation* entry = module_->AddComputation("main");
    module_->set_entry(entry);
    Builder builder(entry);
    builder_ = &builder;
    const int parameters = 2 + Below(3);
    for (int i = 0; i < parameters; ++i) {
      Keep(builder.Parameter(i, RandomShape(), absl::StrCat("p", i)));
      // Programs take shards that divide; inside anything goes.
      if (Below(4) != 0) Annotate(pool_.back(), true);
    }
    for (int i = 0; i < options_.instructions; ++i) Step();
    std::vector<Instruction*> results;
    for (size_t i = 0; i < pool_.size(); ++i) {
      if (pool_[i]->users().empty() && pool_[i]->opcode() != Opcode::kParameter) results.push_back(pool_[i]);
    }
    if (results.empty()) results.push_back(pool_.back());
    entry->set_root(builder.Tuple(results));
    if (options_.shard_everything) ShardEverything();
    return std::move(module_);
  }

 private:
  int Below(int64_t n) { return n <= 0 ? 0 : static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  Instruction* Any() { return pool_[Below(static_cast<int64_t>(pool_.size()))]; }
  Instruction* Keep(Instruction* made) {
    if (made->shape().ElementCount() <= 4096) pool_.push_back(made);
    return made;
  }

  int64_t RandomExtent() {
    static constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 6, 7, 8, 8, 12, 12, 16};
    return kExtents[Below(12)];
  }
  Shape RandomShape() {
    DimVector dims;
    const int rank = Below(4);
    for (int d = 0; d < rank; ++d) dims.push_back(RandomExtent());
    return Shape(Chance(40) ? DType::kS32 : DType::kF32, dims);
  }

  Sharding RandomSharding(const Shape& shape, bool even) {
    Sharding sharding = Sharding::Replicated(mesh_, shape.rank()).Closed();
    if (shape.rank() == 0) return sharding;
    std::vector<int> axes(mesh_->rank());
    std::iota(axes.begin(), axes.end(), 0);
    std::shuffle(axes.begin(), axes.end(), random_);
    for (int axis : axes) {
      if (Chance(35)) continue;
      const int d = Below(shape.rank());
      AxisRef ref = FullAxis(*mesh_, axis);
      if (ref.size == 4 && Chance(25)) ref = Chance(50) ? AxisRef{axis, 1, 2} : AxisRef{axis, 2, 2};
      const int64_t count = ProductOf(sharding.dims[d].axes) * ref.size;
      if (count > shape.dim(d) || (even && shape.dim(d) % count != 0)) continue;
      sharding.dims[d].axes.push_back(ref);
    }
    return sharding;
  }

  void Annotate(Instruction* instruction, bool even) {
    instruction->set_shardings(Shardings{RandomSharding(instruction->shape(), even)});
  }

  // Every instruction of every computation that runs, tuples leaf by leaf.
  void ShardEverything() {
    for (const auto& computation : module_->computations()) {
      const bool entry = computation.get() == module_->entry();
      if (!entry && computation->root()->shape().rank() == 0 && computation->size() <= 3 &&
          !computation->root()->shape().IsTuple()) {
        continue;  // combiners
      }
      for (const auto& instruction : computation->instructions()) {
        const bool border = entry && (instruction->opcode() == Opcode::kParameter || instruction->IsRoot());
        Shardings shardings;
        for (const Shape& leaf : Leaves(instruction->shape())) shardings.push_back(RandomSharding(leaf, border));
        instruction->set_shardings(std::move(shardings));
      }
    }
  }

  // --- one step ----------------------------------------------------------------------------------------------------
  void Step() {
    Instruction* made = nullptr;
    switch (Below(options_.control_flow ? 26 : 24)) {
      case 0:
      case 1:
      case 2:
        made = Elementwise();
        break;
      case 3:
        made = Broadcast();
        break;
      case 4:
        made = Transpose();
        break;
      case 5:
      case 6:
        made = Reshape();
        break;
      case 7:
      case 8:
        made = Reduce();
        break;
      case 9:
      case 10:
      case 11:
        made = Dot();
        break;
      case 12:
        made = Slice();
        break;
      case 13:
        made = Pad();
        break;
      case 14:
        made = Concatenate();
        break;
      case 15:
        made = DynamicSlice();
        break;
      case 16:
        made = DynamicUpdateSlice();
        break;
      case 17:
        made = builder_->Iota(NonScalar(RandomShape()), 0);
        break;
      case 18:
        made = Gather();
        break;
      case 19:
        made = Scatter();
        break;
      case 20:
        made = Sort();
        break;
      case 21:
        made = ArgMax();
        break;
      case 22:
        made = Convolution();
        break;
      case 23:
        made = ReduceWindow();
        break;
      case 24:
        made = Loop();
        break;
      default:
        made = Conditional();
        break;
    }
    if (made == nullptr || made->shape().ElementCount() > 4096) return;
    if (!options_.shard_everything && Chance(25)) made = SharingCall(made);
    Keep(made);
  }

  static Shape NonScalar(Shape shape) { return shape.rank() == 0 ? Shape(shape.dtype(), {4}) : shape; }

  // A user's annotation: the custom call `Sharding`.
  Instruction* SharingCall(Instruction* x) {
    hlo::CustomCallAttr attr;
    attr.target = "Sharding";
    Instruction* call = builder_->Add(Opcode::kCustomCall, {x}, attr, {}, x->shape());
    Annotate(call, Chance(60));
    return call;
  }

  Instruction* Like(const Shape& shape) {
    for (int i = 0; i < 8; ++i) {
      Instruction* candidate = Any();
      if (Shape::Compatible(candidate->shape(), shape)) return candidate;
    }
    return builder_->Splat(shape, Below(5) - 2);
  }

  // Keeps numbers small: products of products would overflow floats.
  Instruction* Tamed(Instruction* x) {
    if (x->shape().dtype() == DType::kF32) return builder_->Unary(Opcode::kTanh, x);
    return builder_->Binary(Opcode::kAnd, x, builder_->Splat(x->shape(), 15));
  }

  Instruction* Elementwise() {
    Instruction* x = Any();
    static constexpr Opcode kOps[] = {Opcode::kAdd, Opcode::kSubtract, Opcode::kMultiply, Opcode::kMaximum,
                                      Opcode::kMinimum};
    switch (Below(6)) {
      case 0:
        return builder_->Unary(Opcode::kNegate, x);
      case 1:
        return builder_->Convert(x, x->shape().dtype() == DType::kF32 ? DType::kS32 : DType::kF32);
      case 2: {
        Instruction* y = Like(x->shape());
        return builder_->Select(builder_->Compare(hlo::ComparisonDirection::kLt, x, y), y, Like(x->shape()));
      }
      case 3:
        return Tamed(x);
      default:
        return builder_->Binary(kOps[Below(5)], x, Like(x->shape()));
    }
  }

  Instruction* Broadcast() {
    Instruction* x = Any();
    if (x->shape().rank() >= 3) return nullptr;
    DimVector dims = x->shape().dims(), map;
    const int place = Below(x->shape().rank() + 1);
    for (int64_t d = 0; d < x->shape().rank(); ++d) map.push_back(d < place ? d : d + 1);
    dims.insert(dims.begin() + place, RandomExtent());
    return builder_->Broadcast(x, Shape(x->shape().dtype(), dims), map);
  }

  DimVector Permutation(int64_t rank) {
    DimVector permutation(rank);
    std::iota(permutation.begin(), permutation.end(), 0);
    std::shuffle(permutation.begin(), permutation.end(), random_);
    return permutation;
  }

  Instruction* Transpose() {
    Instruction* x = Any();
    return builder_->Transpose(x, Permutation(x->shape().rank()));
  }

  Instruction* Reshape() {
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

  Instruction* Reduce() {
    Instruction* x = Any();
    DimVector dims;
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      if (Chance(50)) dims.push_back(d);
    }
    const Opcode combiner = Chance(60) ? Opcode::kAdd : Chance(50) ? Opcode::kMaximum : Opcode::kMinimum;
    const DType dtype = x->shape().dtype();
    Instruction* init = builder_->Scalar(dtype, combiner == Opcode::kAdd ? (Chance(70) ? 0 : 3) : Below(3) - 1);
    return builder_->Reduce(x, init, dims, builder_->ScalarComputation(combiner, dtype));
  }

  Instruction* Dot() {
    Instruction* x = Tamed(Any());
    if (x->shape().rank() == 0) return nullptr;
    // The right operand shares some dimensions of the left one.
    hlo::DotAttr attr;
    DimVector dims;
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      const int role = Below(3);
      if (role == 0) continue;
      (role == 1 ? attr.lhs_batch : attr.lhs_contracting).push_back(d);
      (role == 1 ? attr.rhs_batch : attr.rhs_contracting).push_back(static_cast<int64_t>(dims.size()));
      dims.push_back(x->shape().dim(d));
    }
    if (dims.size() < 3) dims.push_back(RandomExtent());
    Instruction* y = Tamed(Like(Shape(x->shape().dtype(), dims)));
    if (Chance(30)) y = builder_->Add(Opcode::kAdd, {y, builder_->Iota(y->shape(), 0)});
    return builder_->Dot(x, y, attr, x->shape().dtype());
  }

  Instruction* Slice() {
    Instruction* x = Any();
    DimVector starts, limits, strides;
    for (int64_t extent : x->shape().dims()) {
      starts.push_back(Chance(50) ? 0 : Below(extent));
      limits.push_back(Chance(50) ? extent : starts.back() + 1 + Below(extent - starts.back()));
      strides.push_back(Chance(80) ? 1 : 2);
    }
    return builder_->Slice(x, starts, limits, strides);
  }

  Instruction* Pad() {
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

  Instruction* Concatenate() {
    Instruction* x = Any();
    if (x->shape().rank() == 0) return nullptr;
    return builder_->Concatenate({x, Like(x->shape())}, Below(x->shape().rank()));
  }

  std::vector<Instruction*> Starts(const Shape& shape) {
    std::vector<Instruction*> starts;
    for (int64_t extent : shape.dims()) {
      // Some are out of bounds, some come from data.
      Instruction* start = builder_->Index(Below(extent + 4) - 2);
      for (Instruction* candidate : pool_) {
        if (candidate->shape() == Shape::Scalar(DType::kS32) && Chance(40)) start = candidate;
      }
      starts.push_back(start);
    }
    return starts;
  }

  DimVector Part(const Shape& shape) {
    DimVector sizes;
    for (int64_t extent : shape.dims()) sizes.push_back(Chance(50) ? extent : 1 + Below(extent));
    return sizes;
  }

  Instruction* DynamicSlice() {
    Instruction* x = Any();
    return builder_->DynamicSlice(x, Starts(x->shape()), Part(x->shape()));
  }

  Instruction* DynamicUpdateSlice() {
    Instruction* x = Any();
    Instruction* update = Like(Shape(x->shape().dtype(), Part(x->shape())));
    if (Chance(50)) update = builder_->Binary(Opcode::kAdd, update, builder_->Splat(update->shape(), 3));
    return builder_->DynamicUpdateSlice(x, update, Starts(x->shape()));
  }

  // Indices of shape [n, 1] into dimension `dim`, some out of bounds.
  Instruction* Indices(int64_t n, int64_t extent) {
    Instruction* iota = builder_->Iota(Shape(DType::kS32, {n, 1}), 0);
    Instruction* scaled = builder_->Binary(Opcode::kMultiply, iota, builder_->Splat(iota->shape(), 5));
    return builder_->Binary(
        Opcode::kSubtract,
        builder_->Binary(Opcode::kRemainder, scaled, builder_->Splat(iota->shape(), static_cast<double>(extent + 2))),
        builder_->Splat(iota->shape(), 1));
  }

  Instruction* Gather() {
    Instruction* x = Any();
    const int64_t rank = x->shape().rank();
    if (rank == 0) return nullptr;
    const int64_t dim = Below(rank), n = RandomExtent();
    hlo::GatherAttr attr;
    attr.index_vector_dim = 1;
    attr.start_index_map = {dim};
    attr.collapsed_slice_dims = {dim};
    attr.slice_sizes = x->shape().dims();
    attr.slice_sizes[dim] = 1;
    if (Chance(20)) {  // a window along another dimension
      for (int64_t d = 0; d < rank; ++d) {
        if (d != dim) attr.slice_sizes[d] = 1 + Below(x->shape().dim(d));
      }
    }
    for (int64_t d = 1; d < rank; ++d) attr.offset_dims.push_back(d);
    return builder_->Add(Opcode::kGather, {x, Indices(n, x->shape().dim(dim))}, attr);
  }

  Instruction* Scatter() {
    Instruction* x = Any();
    const int64_t rank = x->shape().rank();
    if (rank == 0) return nullptr;
    const int64_t dim = Below(rank), n = RandomExtent();
    hlo::ScatterAttr attr;
    attr.index_vector_dim = 1;
    attr.scatter_dims_to_operand_dims = {dim};
    attr.inserted_window_dims = {dim};
    DimVector update = {n};
    for (int64_t d = 0; d < rank; ++d) {
      if (d == dim) continue;
      attr.update_window_dims.push_back(static_cast<int64_t>(update.size()));
      update.push_back(x->shape().dim(d));
    }
    Instruction* updates = Like(Shape(x->shape().dtype(), update));
    const Opcode combiner = Chance(70) ? Opcode::kAdd : Opcode::kMaximum;
    return builder_->Add(Opcode::kScatter, {x, Indices(n, x->shape().dim(dim)), updates}, attr,
                         {builder_->ScalarComputation(combiner, x->shape().dtype())});
  }

  hlo::Computation* LessThan(DType dtype) {
    hlo::Computation* compare = module_->AddComputation("less");
    Builder builder(compare);
    Instruction* a = builder.Parameter(0, Shape::Scalar(dtype), "a");
    Instruction* b = builder.Parameter(1, Shape::Scalar(dtype), "b");
    compare->set_root(builder.Compare(hlo::ComparisonDirection::kLt, a, b));
    return compare;
  }

  Instruction* Sort() {
    Instruction* x = Any();
    if (x->shape().rank() == 0) return nullptr;
    return builder_->Add(Opcode::kSort, {x}, hlo::SortAttr{Below(x->shape().rank()), true},
                         {LessThan(x->shape().dtype())});
  }

  // A reduction of values and positions as one.
  Instruction* ArgMax() {
    Instruction* x = Any();
    if (x->shape().rank() == 0) return nullptr;
    const int64_t dim = Below(x->shape().rank());
    const DType dtype = x->shape().dtype();
    hlo::Computation* combiner = module_->AddComputation("argmax");
    Builder builder(combiner);
    Instruction* va = builder.Parameter(0, Shape::Scalar(dtype), "va");
    Instruction* ia = builder.Parameter(1, Shape::Scalar(DType::kS32), "ia");
    Instruction* vb = builder.Parameter(2, Shape::Scalar(dtype), "vb");
    Instruction* ib = builder.Parameter(3, Shape::Scalar(DType::kS32), "ib");
    Instruction* gt = builder.Compare(hlo::ComparisonDirection::kGt, va, vb);
    Instruction* eq = builder.Compare(hlo::ComparisonDirection::kEq, va, vb);
    Instruction* lt = builder.Compare(hlo::ComparisonDirection::kLt, ia, ib);
    Instruction* first = builder.Binary(Opcode::kOr, gt, builder.Binary(Opcode::kAnd, eq, lt));
    combiner->set_root(builder.Tuple({builder.Select(first, va, vb), builder.Select(first, ia, ib)}));
    Instruction* iota = builder_->Iota(WithDType(x->shape(), DType::kS32), dim);
    Instruction* reduce =
        builder_->Add(Opcode::kReduce, {x, iota, builder_->Scalar(dtype, -1e9), builder_->Scalar(DType::kS32, 1e9)},
                      hlo::DimensionsAttr{{dim}}, {combiner});
    Keep(builder_->GetTupleElement(reduce, 1));
    return builder_->GetTupleElement(reduce, 0);
  }

  hlo::WindowDim RandomWindow(int64_t extent, bool dilate_base) {
    hlo::WindowDim window;
    window.size = 1 + Below(3);
    window.stride = 1 + Below(2);
    window.pad_low = Below(3);
    window.pad_high = Below(3);
    window.window_dilation = Chance(80) ? 1 : 2;
    if (dilate_base && Chance(20)) window.base_dilation = 2;
    const int64_t base = (extent - 1) * window.base_dilation + 1 + window.pad_low + window.pad_high;
    if (base < (window.size - 1) * window.window_dilation + 1) return {};
    return window;
  }

  // Layout bf0, 0io or any other order of the input; one or two spatial dimensions.
  Instruction* Convolution() {
    const int64_t spatial = 1 + Below(2);
    hlo::ConvolutionAttr attr;
    DimVector input(spatial + 2), kernel(spatial + 2);
    const DimVector in = Permutation(spatial + 2), ker = Permutation(spatial + 2), out = Permutation(spatial + 2);
    attr.input_batch = in[0], attr.input_feature = in[1];
    attr.kernel_input_feature = ker[0], attr.kernel_output_feature = ker[1];
    attr.output_batch = out[0], attr.output_feature = out[1];
    const int64_t groups = Chance(70) ? 1 : 2, kind = Below(2);
    (kind == 0 ? attr.feature_groups : attr.batch_groups) = groups;
    input[in[0]] = (1 + Below(4)) * attr.batch_groups;
    kernel[ker[0]] = 1 + Below(4);
    input[in[1]] = kernel[ker[0]] * attr.feature_groups;
    kernel[ker[1]] = (1 + Below(4)) * groups;
    for (int64_t d = 0; d < spatial; ++d) {
      input[in[d + 2]] = RandomExtent();
      attr.window.push_back(RandomWindow(input[in[d + 2]], true));
      kernel[ker[d + 2]] = attr.window.back().size;
      attr.input_spatial.push_back(in[d + 2]);
      attr.kernel_spatial.push_back(ker[d + 2]);
      attr.output_spatial.push_back(out[d + 2]);
    }
    Instruction* x = Tamed(Filled(Shape(DType::kF32, input)));
    return builder_->Add(Opcode::kConvolution, {x, Tamed(Filled(Shape(DType::kF32, kernel)))}, attr);
  }

  // An array of that shape that is not constant.
  Instruction* Filled(const Shape& shape) {
    Instruction* x = Like(shape);
    return builder_->Binary(Opcode::kAdd, x, builder_->Iota(shape, Below(shape.rank())));
  }

  Instruction* ReduceWindow() {
    Instruction* x = Any();
    if (x->shape().rank() == 0) return nullptr;
    hlo::WindowAttr attr;
    for (int64_t extent : x->shape().dims())
      attr.window.push_back(Chance(40) ? hlo::WindowDim{} : RandomWindow(extent, false));
    const DType dtype = x->shape().dtype();
    const Opcode combiner = Chance(50) ? Opcode::kAdd : Opcode::kMaximum;
    return builder_->Add(Opcode::kReduceWindow, {x, builder_->Scalar(dtype, combiner == Opcode::kAdd ? 0 : -100)}, attr,
                         {builder_->ScalarComputation(combiner, dtype)});
  }

  // x = f(x) a few times; the carried tuple has the counter, the value and one more that is only read.
  Instruction* Loop() {
    Instruction *x = Any(), *y = Any();
    const Shape state = Shape::Tuple({Shape::Scalar(DType::kS32), x->shape(), y->shape()});
    hlo::Computation* condition = module_->AddComputation("condition");
    {
      Builder builder(condition);
      Instruction* p = builder.Parameter(0, state, "state");
      condition->set_root(
          builder.Compare(hlo::ComparisonDirection::kLt, builder.GetTupleElement(p, 0), builder.Index(3)));
    }
    hlo::Computation* body = module_->AddComputation("body");
    Builder builder(body);
    Instruction* p = builder.Parameter(0, state, "state");
    Instruction* i = builder.GetTupleElement(p, 0);
    Instruction* a = builder.GetTupleElement(p, 1);
    Instruction* b = builder.GetTupleElement(p, 2);
    // Steps inside use the body's values.
    std::vector<Instruction*> outer_pool = {a, b, i};
    std::swap(pool_, outer_pool);
    Builder* outer = builder_;
    builder_ = &builder;
    const RandomOptions outer_options = options_;
    options_.control_flow = Chance(20);
    for (int n = 0; n < 3; ++n) Step();
    Instruction* next = Tamed(Like(x->shape()));
    next = builder.Binary(Opcode::kAdd, next, a);
    options_ = outer_options;
    builder_ = outer;
    std::swap(pool_, outer_pool);
    body->set_root(builder.Tuple({builder.Binary(Opcode::kAdd, i, builder.Index(1)), next, b}));
    Instruction* loop =
        builder_->Add(Opcode::kWhile, {builder_->Tuple({builder_->Index(0), x, y})}, {}, {condition, body});
    return builder_->GetTupleElement(loop, 1);
  }

  Instruction* Conditional() {
    Instruction* x = Any();
    std::vector<hlo::Computation*> branches;
    for (int b = 0; b < 2; ++b) {
      hlo::Computation* branch = module_->AddComputation("branch");
      Builder builder(branch);
      Instruction* p = builder.Parameter(0, x->shape(), "x");
      std::vector<Instruction*> outer_pool = {p};
      std::swap(pool_, outer_pool);
      Builder* outer = builder_;
      builder_ = &builder;
      const RandomOptions outer_options = options_;
      options_.control_flow = false;
      Step();
      Instruction* result = Like(x->shape());
      branch->set_root(builder.Binary(Opcode::kAdd, result, builder.Splat(x->shape(), b)));
      options_ = outer_options;
      builder_ = outer;
      std::swap(pool_, outer_pool);
      branches.push_back(branch);
    }
    Instruction* sum = Tamed(x);
    DimVector all(x->shape().rank());
    std::iota(all.begin(), all.end(), 0);
    const DType dtype = x->shape().dtype();
    Instruction* total =
        builder_->Reduce(sum, builder_->Scalar(dtype, 0), all, builder_->ScalarComputation(Opcode::kMaximum, dtype));
    Instruction* predicate = builder_->Compare(hlo::ComparisonDirection::kGt, total, builder_->Scalar(dtype, 0.5));
    return builder_->Add(Opcode::kConditional, {predicate, x, x}, {}, branches);
  }

  std::mt19937_64 random_;
  RandomOptions options_;
  MeshRef mesh_;
  std::unique_ptr<hlo::Module> module_;
  Builder* builder_ = nullptr;
  std::vector<Instruction*> pool_;
};

}  // namespace

std::unique_ptr<hlo::Module> RandomModule(uint64_t seed, const RandomOptions& options) {
  return Generator(seed, options).Run();
}

}  // namespace gangway::equivalence

#include "tests/equivalence/random_module.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/equivalence/random_generator.h"

namespace gangway::equivalence {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

namespace {

constexpr int64_t kMaxElements = 4096;

// 1 to 16 devices, some in an order of their own.
MeshRef RandomMesh(std::mt19937_64& random) {
  static const std::vector<std::vector<MeshAxis>> kMeshes = {
      {{"x", 1}},
      {{"x", 2}},
      {{"x", 3}},
      {{"x", 4}},
      {{"x", 8}},
      {{"x", 2}, {"y", 2}},
      {{"x", 4}, {"y", 2}},
      {{"x", 2}, {"y", 4}},
      {{"x", 2}, {"y", 3}},
      {{"x", 3}, {"y", 2}},
      {{"x", 2}, {"y", 2}, {"z", 2}},
      {{"x", 4}, {"y", 4}},
      {{"x", 2}, {"y", 2}, {"z", 2}, {"w", 2}},
      {{"x", 4}, {"y", 2}},
      {{"x", 2}, {"y", 2}, {"z", 2}},
      {{"x", 2}, {"y", 2}},
  };
  const std::vector<MeshAxis>& axes = kMeshes[random() % kMeshes.size()];
  std::vector<int64_t> devices;
  if (random() % 4 == 0) {
    int64_t size = 1;
    for (const MeshAxis& axis : axes) size *= axis.size;
    devices.resize(size);
    std::iota(devices.begin(), devices.end(), 0);
    std::shuffle(devices.begin(), devices.end(), random);
  }
  return std::make_shared<const Mesh>(*Mesh::Make(axes, devices));
}

}  // namespace

const std::vector<Generator::Family>& Generator::Families() {
  using G = Generator;
  static const std::vector<Family> families = {
      {6, &G::Elementwise}, {2, &G::Choice},
      {2, &G::Broadcast},   {2, &G::Transpose},
      {4, &G::Reshape},     {4, &G::Reduce},
      {6, &G::Dot},         {2, &G::Slice},
      {2, &G::Pad},         {2, &G::Concatenate},
      {1, &G::Reverse},     {1, &G::Roll},
      {1, &G::Iota},        {2, &G::DynamicSlice},
      {2, &G::Gather},      {2, &G::DynamicUpdateSlice},
      {2, &G::Scatter},     {1, &G::SortPairs},
      {1, &G::Sort},        {1, &G::GatherInBatches},
      {1, &G::ArgMax},      {1, &G::TopK},
      {2, &G::Convolution}, {1, &G::ReduceWindow},
      {1, &G::Cumulative},  {1, &G::SelectAndScatter},
      {1, &G::Cholesky},    {1, &G::TriangularSolve},
      {1, &G::Fft},         {1, &G::RandomBits},
  };
  return families;
}

const std::vector<Generator::Family>& Generator::ControlFamilies() {
  using G = Generator;
  static const std::vector<Family> families = [] {
    std::vector<Family> all = Families();
    all.insert(all.end(), {{2, &G::Loop},
                           {2, &G::Accumulation},
                           {2, &G::Conditional},
                           {1, &G::Call},
                           {1, &G::Barrier},
                           {1, &G::ManualRegion}});
    return all;
  }();
  return families;
}

Generator::Generator(uint64_t seed, const RandomOptions& options)
    : random_(seed),
      options_(options),
      mesh_(RandomMesh(random_)),
      module_(std::make_unique<hlo::Module>(absl::StrCat("random_", seed))) {}

std::unique_ptr<hlo::Module> Generator::Run() {
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
  for (Instruction* value : pool_) {
    if (value->users().empty() && value->opcode() != Opcode::kParameter) results.push_back(value);
  }
  if (results.empty()) results.push_back(pool_.back());
  entry->set_root(builder.Tuple(results));
  if (options_.shard_everything) ShardEverything();
  module_->SortComputations();
  return std::move(module_);
}

Instruction* Generator::Keep(Instruction* made) {
  if (made->shape().ElementCount() <= kMaxElements) pool_.push_back(made);
  return made;
}

DType Generator::RandomType() {
  static constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF32, DType::kF32, DType::kF32,
                                     DType::kS32, DType::kS32, DType::kS32, DType::kU8,  DType::kS64};
  return kTypes[Below(10)];
}

int64_t Generator::RandomExtent() {
  static constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 6, 7, 8, 8, 12, 12, 16};
  return kExtents[Below(12)];
}

Instruction* Generator::AnyOfRank(int64_t at_least) {
  for (int i = 0; i < 8; ++i) {
    if (Instruction* x = Any(); x->shape().rank() >= at_least) return x;
  }
  return nullptr;
}

void Generator::Step() {
  const std::vector<Family>& families = options_.control_flow ? ControlFamilies() : Families();
  int total = 0;
  for (const Family& family : families) total += family.weight;
  int draw = Below(total);
  size_t chosen = 0;
  while ((draw -= families[chosen].weight) >= 0) ++chosen;
  Instruction* made = (this->*families[chosen].make)();
  if (made == nullptr || made->shape().ElementCount() > kMaxElements) return;
  if (!options_.shard_everything && Chance(25)) made = SharingCall(made);
  Keep(made);
}

Shape Generator::RandomShape() {
  DimVector dims;
  const int rank = Below(4);
  for (int d = 0; d < rank; ++d) dims.push_back(RandomExtent());
  return Shape(RandomType(), dims);
}

Sharding Generator::RandomSharding(const Shape& shape, bool even) {
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
    if (even && shape.dim(d) % count != 0) continue;
    // Now and then some shards are empty.
    if (count > shape.dim(d) && (shape.dim(d) == 1 || !Chance(50))) continue;
    sharding.dims[d].axes.push_back(ref);
  }
  return sharding;
}

void Generator::Annotate(Instruction* instruction, bool even) {
  Sharding sharding = RandomSharding(instruction->shape(), even);
  for (DimSharding& dim : sharding.dims) dim.open = !even && Chance(20);
  instruction->set_shardings(Shardings{sharding});
}

// Every instruction of every computation that runs, tuples leaf by leaf.
void Generator::ShardEverything() {
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

// A user's annotation: the custom call `Sharding`.
Instruction* Generator::SharingCall(Instruction* x) {
  hlo::CustomCallAttr attr;
  attr.target = "Sharding";
  Instruction* call = builder_->Add(Opcode::kCustomCall, {x}, attr, {}, x->shape());
  Annotate(call, Chance(60));
  return call;
}

Instruction* Generator::Like(const Shape& shape) {
  for (int i = 0; i < 8; ++i) {
    Instruction* candidate = Any();
    if (Shape::Compatible(candidate->shape(), shape)) return candidate;
  }
  return builder_->Splat(shape, Below(5) - (IsUnsigned(shape.dtype()) ? 0 : 2));
}

// An array of that shape that is not constant.
Instruction* Generator::Filled(const Shape& shape) {
  Instruction* x = Like(shape);
  return builder_->Binary(Opcode::kAdd, x, builder_->Iota(shape, Below(shape.rank())));
}

std::unique_ptr<hlo::Module> RandomModule(uint64_t seed, const RandomOptions& options) {
  return Generator(seed, options).Run();
}

}  // namespace gangway::equivalence

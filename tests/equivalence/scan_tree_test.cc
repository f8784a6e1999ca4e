// Associative scans as jax writes them, by functions of one and of several arrays: what becomes of them computes the
// same, whole and partitioned.
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/eval/evaluate.h"
#include "gangway/hlo/builder.h"
#include "gangway/hlo/scan_call.h"
#include "gangway/passes/passes.h"
#include "gtest/gtest.h"
#include "tests/equivalence/equivalence.h"

namespace gangway::equivalence {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;
using Arrays = std::vector<Instruction*>;
using Function = std::function<Arrays(Builder&, const Arrays&, const Arrays&)>;

constexpr int64_t kDim = 1;  // [3, extent]

Arrays Cut(Builder& builder, const Arrays& arrays, int64_t begin, int64_t end, int64_t stride) {
  Arrays result;
  for (Instruction* x : arrays) {
    const bool whole = begin == 0 && stride == 1 && end == x->shape().dim(kDim);
    result.push_back(whole ? x : builder.Slice(x, {0, begin}, {x->shape().dim(0), end}, {1, stride}));
  }
  return result;
}

Instruction* Spread(Builder& builder, Instruction* x, int64_t low, int64_t extent) {
  const int64_t spread = 2 * x->shape().dim(kDim) - 1;
  return builder.Pad(x, builder.Scalar(x->shape().dtype(), 0), {{}, {low, extent - low - spread, 1}});
}

// jax.lax.associative_scan.
Arrays Scan(Builder& builder, const Function& combine, const Arrays& e) {
  const int64_t n = e[0]->shape().dim(kDim);
  if (n < 2) return e;
  const Arrays odd = Scan(builder, combine, combine(builder, Cut(builder, e, 0, n - 1, 2), Cut(builder, e, 1, n, 2)));
  const int64_t before = n % 2 == 0 ? n / 2 - 1 : n / 2;
  const Arrays first = Cut(builder, e, 0, 1, 1);
  Arrays rest;
  if (before > 0) rest = combine(builder, Cut(builder, odd, 0, before, 1), Cut(builder, e, 2, n, 2));
  Arrays result;
  for (size_t i = 0; i < e.size(); ++i) {
    Instruction* even = rest.empty() ? first[i] : builder.Concatenate({first[i], rest[i]}, kDim);
    const Opcode join = e[i]->shape().dtype() == DType::kPred ? Opcode::kOr : Opcode::kAdd;
    result.push_back(builder.Binary(join, Spread(builder, even, 0, n), Spread(builder, odd[i], 1, n)));
  }
  return result;
}

struct Case {
  std::string name;
  Function combine;
  std::vector<DType> types;
  std::vector<int> results;  // scans that are read
};

std::vector<Case> Cases() {
  const auto bin = [](Builder& b, Opcode op, Instruction* x, Instruction* y) { return b.Binary(op, x, y); };
  return {
      {"recurrence",
       [=](Builder& b, const Arrays& p, const Arrays& q) -> Arrays {
         return {bin(b, Opcode::kMultiply, p[0], q[0]),
                 bin(b, Opcode::kAdd, bin(b, Opcode::kMultiply, q[0], p[1]), q[1])};
       },
       {DType::kF32, DType::kF32},
       {1}},
      {"recurrence, both read",
       [=](Builder& b, const Arrays& p, const Arrays& q) -> Arrays {
         return {bin(b, Opcode::kMultiply, p[0], q[0]),
                 bin(b, Opcode::kAdd, bin(b, Opcode::kMultiply, q[0], p[1]), q[1])};
       },
       {DType::kF32, DType::kF32},
       {0, 1}},
      {"complex product",
       [=](Builder& b, const Arrays& p, const Arrays& q) -> Arrays {
         return {
             bin(b, Opcode::kSubtract, bin(b, Opcode::kMultiply, p[0], q[0]), bin(b, Opcode::kMultiply, p[1], q[1])),
             bin(b, Opcode::kAdd, bin(b, Opcode::kMultiply, p[0], q[1]), bin(b, Opcode::kMultiply, p[1], q[0]))};
       },
       {DType::kF32, DType::kF32},
       {0, 1}},
      {"by segments",
       [=](Builder& b, const Arrays& p, const Arrays& q) -> Arrays {
         return {bin(b, Opcode::kOr, p[0], q[0]), b.Select(q[0], q[1], bin(b, Opcode::kAdd, p[1], q[1]))};
       },
       {DType::kPred, DType::kF32},
       {1}},
      {"one array with a constant",
       [=](Builder& b, const Arrays& p, const Arrays& q) -> Arrays {  // (1 + x)(1 + y) - 1
         Instruction* both = bin(b, Opcode::kMultiply, p[0], q[0]);
         Instruction* half = b.Splat(both->shape(), 1);
         return {bin(b, Opcode::kAdd, bin(b, Opcode::kAdd, p[0], q[0]), bin(b, Opcode::kMultiply, both, half))};
       },
       {DType::kF32},
       {0}},
  };
}

std::unique_ptr<hlo::Module> TreeOf(const Case& scan, int64_t extent, int64_t shards) {
  auto module = std::make_unique<hlo::Module>("scan");
  hlo::Computation* entry = module->AddComputation("main");
  module->set_entry(entry);
  module->config().num_partitions = shards;
  const auto mesh = std::make_shared<const Mesh>(*Mesh::Make({{"x", shards}}));
  Sharding split = Sharding::Replicated(mesh, 2).Closed();
  if (extent % shards == 0) split.dims[kDim].axes = {FullAxis(*mesh, 0)};
  Builder builder(entry);
  Arrays elements;
  for (size_t i = 0; i < scan.types.size(); ++i) {
    elements.push_back(
        builder.Parameter(static_cast<int64_t>(i), Shape(scan.types[i], {3, extent}), absl::StrCat("p", i)));
    elements.back()->set_shardings(Shardings{split});
  }
  const Arrays scans = Scan(builder, scan.combine, elements);
  Arrays read;
  for (int i : scan.results) read.push_back(scans[i]);
  entry->set_root(builder.Tuple(read));
  entry->root()->set_shardings(Shardings(read.size(), split));
  entry->RemoveDead();
  return module;
}

int ScanCalls(const hlo::Module& module) {
  int calls = 0;
  for (const auto& instruction : module.entry()->instructions()) calls += hlo::ScanDimension(*instruction).has_value();
  return calls;
}

TEST(ScanTree, BecomesOneCall) {
  for (const Case& scan : Cases()) {
    for (int64_t extent = 4; extent < 40; ++extent) {
      SCOPED_TRACE(absl::StrCat(scan.name, " of ", extent));
      const auto module = TreeOf(scan, extent, 1);
      ASSERT_TRUE(passes::RunRecognizeScans(*module).ok());
      EXPECT_EQ(ScanCalls(*module), 1) << module->ToString();
    }
  }
}

TEST(ScanTree, KeepsWhatItComputes) {
  for (const Case& scan : Cases()) {
    for (int64_t extent : {4, 5, 7, 16, 24, 33}) {
      SCOPED_TRACE(absl::StrCat(scan.name, " of ", extent));
      const auto module = TreeOf(scan, extent, 1);
      const auto before = module->Clone();
      ASSERT_TRUE(passes::RunRecognizeScans(*module).ok());
      std::mt19937_64 random(7);
      std::vector<Literal> arguments;
      for (const Instruction* parameter : before->entry()->parameters()) {
        Literal& literal = arguments.emplace_back(WithoutLayout(parameter->shape()));
        const DType dtype = literal.shape().dtype();
        for (int64_t i = 0; i < literal.shape().ElementCount(); ++i) {
          const int64_t drawn = static_cast<int64_t>(random() % 5);
          StoreDouble(dtype, dtype == DType::kPred ? drawn == 0 : static_cast<double>(drawn) / 4,
                      literal.data() + i * ByteWidth(dtype));
        }
      }
      const auto want = eval::Evaluate(*before, arguments), got = eval::Evaluate(*module, arguments);
      ASSERT_TRUE(want.ok()) << want.status();
      ASSERT_TRUE(got.ok()) << got.status();
      for (size_t leaf = 0; leaf < want->elements().size(); ++leaf) {
        const Literal &w = want->elements()[leaf], &g = got->elements()[leaf];
        for (int64_t i = 0; i < w.shape().ElementCount(); ++i) {
          const double expected = ElementAsDouble(w.shape().dtype(), w.data() + i * ByteWidth(w.shape().dtype()));
          EXPECT_NEAR(ElementAsDouble(g.shape().dtype(), g.data() + i * ByteWidth(g.shape().dtype())), expected,
                      1e-5 * std::max(1.0, std::abs(expected)));
        }
      }
    }
  }
}

TEST(ScanTree, ShardsAreScannedAlone) {
  for (const Case& scan : Cases()) {
    for (int64_t shards : {2, 4, 8}) {
      for (int64_t extent : {16, 24, 21, 9}) {
        SCOPED_TRACE(absl::StrCat(scan.name, " of ", extent, " over ", shards));
        const auto module = TreeOf(scan, extent, shards);
        ASSERT_TRUE(passes::RunRecognizeScans(*module).ok());
        for (const auto& instruction : module->entry()->instructions()) {
          if (!hlo::ScanDimension(*instruction)) continue;
          Sharding split = Sharding::Replicated(module->entry()->parameter(0)->sharding().mesh, 2).Closed();
          split.dims[kDim].axes = {FullAxis(*split.mesh, 0)};  // uneven too
          instruction->set_shardings(Shardings(Leaves(instruction->shape()).size(), split));
        }
        const absl::Status status = CheckEquivalent(*module, {});
        ASSERT_TRUE(status.ok()) << status.message();
      }
    }
  }
}

}  // namespace
}  // namespace gangway::equivalence

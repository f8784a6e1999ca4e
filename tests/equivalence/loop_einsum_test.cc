// Products with gathered operands or scattered results, apart and as loops that pass shards on.
#include "gangway/passes/loop_einsum.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/compile/einsum_loops.h"
#include "gangway/eval/evaluate.h"
#include "gangway/hlo/text.h"
#include "gangway/hlo/verifier.h"
#include "gangway/passes/loop_scattered_einsum.h"
#include "gtest/gtest.h"

namespace gangway::equivalence {
namespace {

std::unique_ptr<hlo::Module> Parse(const std::string& text) {
  auto module = hlo::ParseModule(text);
  EXPECT_TRUE(module.ok()) << module.status() << "\n" << text;
  return *std::move(module);
}

// On every device arguments of its own.
std::vector<std::vector<Literal>> Arguments(const hlo::Module& module) {
  std::mt19937_64 random(5);
  std::vector<std::vector<Literal>> arguments(module.config().num_partitions);
  for (std::vector<Literal>& own : arguments) {
    for (const hlo::Instruction* parameter : module.entry()->parameters()) {
      Literal& literal = own.emplace_back(WithoutLayout(parameter->shape()));
      for (int64_t i = 0; i < literal.shape().ElementCount(); ++i) {
        StoreDouble(DType::kF32, static_cast<double>(random() % 9) - 4, literal.data() + i * 4);
      }
    }
  }
  return arguments;
}

void ExpectSame(const hlo::Module& before, const hlo::Module& after, int64_t devices) {
  ASSERT_TRUE(hlo::Verify(after).ok()) << hlo::Verify(after) << after.ToString();
  const auto arguments = Arguments(before);
  const auto want = eval::EvaluateSpmd(before, arguments, devices);
  const auto got = eval::EvaluateSpmd(after, arguments, devices);
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_TRUE(got.ok()) << got.status() << after.ToString();
  for (int64_t d = 0; d < devices; ++d) EXPECT_EQ((*want)[d].bytes(), (*got)[d].bytes()) << "device " << d;
}

void Check(int64_t devices, const std::string& types, const std::string& groups, const std::string& rest) {
  const std::string text =
      absl::StrCat("HloModule m, num_partitions=", devices, "\nENTRY e {\n", types,
                   "  g = ", rest.substr(0, rest.find(';')), ", channel_id=3, replica_groups=", groups,
                   ", use_global_device_ids=true\n  ROOT d = ", rest.substr(rest.find(';') + 1), "\n}\n");
  SCOPED_TRACE(text);
  const auto before = Parse(text), after = before->Clone();
  auto changed = passes::RunLoopEinsums(*after);
  ASSERT_TRUE(changed.ok() && *changed) << changed.status();
  EXPECT_EQ(after->ToString().find(" all-gather("), std::string::npos);
  ExpectSame(*before, *after, devices);
}

struct Ring {
  int64_t devices, shards;
  std::string groups;
};

std::vector<Ring> Rings() {
  return {{2, 2, "[1,2]<=[2]"},           {3, 3, "{{2,0,1}}"},  {4, 4, "[1,4]<=[4]"},
          {8, 4, "[2,4]<=[4,2]T(1,0)"},   {8, 8, "[1,8]<=[8]"}, {6, 3, "{{5,1,3},{0,4,2}}"},
          {8, 4, "{{7,2,0,5},{1,3,6,4}}"}};
}

// `dot` of x and w with a dimension of `tile` elements for each shard, scattered along `dim`.
void CheckScattered(const Ring& ring, const std::string& types, const std::string& dot, const std::string& part,
                    int64_t dim) {
  const std::string text = absl::StrCat(
      "HloModule m, num_partitions=", ring.devices,
      "\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\nENTRY e {\n", types,
      "  d = ", dot, "\n  ROOT r = ", part, " reduce-scatter(d), channel_id=3, replica_groups=", ring.groups,
      ", dimensions={", dim, "}, use_global_device_ids=true, to_apply=add\n}\n");
  SCOPED_TRACE(text);
  const auto before = Parse(text), after = before->Clone();
  auto changed = passes::RunLoopScatteredEinsums(*after);
  ASSERT_TRUE(changed.ok() && *changed) << changed.status();
  EXPECT_EQ(after->ToString().find(" reduce-scatter("), std::string::npos);
  ExpectSame(*before, *after, ring.devices);
}

TEST(LoopEinsum, RowsColumnsAndContractedDimensions) {
  for (const Ring& mesh : Rings()) {
    const std::string n = absl::StrCat(2 * mesh.shards);
    Check(mesh.devices, "  x = f32[2,5] parameter(0)\n  w = f32[5,7] parameter(1)\n", mesh.groups,
          "f32[" + n + ",5] all-gather(x), dimensions={0};f32[" + n +
              ",7] dot(g, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
    Check(mesh.devices, "  x = f32[3,5] parameter(0)\n  w = f32[5,2] parameter(1)\n", mesh.groups,
          "f32[5," + n + "] all-gather(w), dimensions={1};f32[3," + n +
              "] dot(x, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
    Check(mesh.devices, "  x = f32[3,2] parameter(0)\n  w = f32[" + n + ",4] parameter(1)\n", mesh.groups,
          "f32[3," + n +
              "] all-gather(x), dimensions={1};f32[3,4] dot(g, w), lhs_contracting_dims={1}, "
              "rhs_contracting_dims={0}");
    Check(mesh.devices, "  x = f32[4," + n + ",3] parameter(0)\n  w = f32[5,2,4] parameter(1)\n", mesh.groups,
          "f32[5," + n +
              ",4] all-gather(w), dimensions={1};f32[4,3,5] dot(x, g), lhs_batch_dims={0}, "
              "rhs_batch_dims={2}, lhs_contracting_dims={1}, rhs_contracting_dims={1}");
  }
}

// Parts of an odd size travel one way only; the others in halves, both ways where the ring is even and large enough.
TEST(LoopEinsum, ScatteredRowsColumnsAndBatches) {
  for (const Ring& ring : Rings()) {
    for (const int64_t tile : {2, 3}) {
      const std::string n = absl::StrCat(tile * ring.shards), t = absl::StrCat(tile);
      CheckScattered(ring, absl::StrCat("  x = f32[", n, ",5] parameter(0)\n  w = f32[5,7] parameter(1)\n"),
                     absl::StrCat("f32[", n, ",7] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
                     absl::StrCat("f32[", t, ",7]"), 0);
      CheckScattered(ring, absl::StrCat("  x = f32[5,3] parameter(0)\n  w = f32[", n, ",5] parameter(1)\n"),
                     absl::StrCat("f32[3,", n, "] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={1}"),
                     absl::StrCat("f32[3,", t, "]"), 1);
      CheckScattered(ring, absl::StrCat("  x = f32[3,", n, ",4] parameter(0)\n  w = f32[4,2,", n, "] parameter(1)\n"),
                     absl::StrCat("f32[", n, ",3,2] dot(x, w), lhs_batch_dims={1}, rhs_batch_dims={2}, ",
                                  "lhs_contracting_dims={2}, rhs_contracting_dims={0}"),
                     absl::StrCat("f32[", t, ",3,2]"), 0);
    }
  }
}

passes::GatheredEinsum Einsum(const hlo::Module& module) {
  auto einsum = passes::AsGatheredEinsum(module.entry()->root());
  EXPECT_TRUE(einsum.has_value());
  return *einsum;
}

// A loop pays where shards travel while others are multiplied, and where memory counts; else messages are for nothing.
TEST(LoopEinsum, CostDecides) {
  const auto product = [](int64_t rows, int64_t inner, int64_t columns) {
    return Parse(absl::StrCat("HloModule m, num_partitions=8\nENTRY e {\n  x = f32[", rows, ",", inner,
                              "] parameter(0)\n  w = f32[", inner, ",", columns, "] parameter(1)\n  g = f32[", 8 * rows,
                              ",", inner, "] all-gather(x), channel_id=1, replica_groups=[1,8]<=[8], ",
                              "dimensions={0}, use_global_device_ids=true\n  ROOT d = f32[", 8 * rows, ",", columns,
                              "] dot(g, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"));
  };
  const auto small = product(16, 64, 64), middle = product(512, 1024, 1024), huge = product(16384, 4096, 16);
  const auto loops = [](const hlo::Module& module, bool overlaps) {
    const compile::EinsumCosts costs = compile::CostsOf(Einsum(module), overlaps);
    return costs.looped < costs.apart;
  };
  EXPECT_FALSE(loops(*small, false));
  EXPECT_FALSE(loops(*small, true));
  EXPECT_FALSE(loops(*middle, false));
  EXPECT_TRUE(loops(*middle, true));
  EXPECT_TRUE(loops(*huge, false));  // 2 GiB that no device has to hold
}

}  // namespace
}  // namespace gangway::equivalence

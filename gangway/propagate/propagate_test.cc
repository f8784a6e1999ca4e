#include "gangway/propagate/propagate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gangway/hlo/text.h"
#include "gangway/mesh/geometry.h"

namespace gangway::propagate {
namespace {

constexpr char kHeader[] =
    "HloModule m, allow_spmd_sharding_propagation_to_parameters={true}, "
    "allow_spmd_sharding_propagation_to_output={true}, num_partitions=$N\n\n"
    "add { p0 = f32[] parameter(0) p1 = f32[] parameter(1) ROOT p2 = f32[] add(p0, p1) }\n";

// Shardings by instruction name, axes only: "{x}{y,z}"; tuples leaf by leaf.
struct Completed {
  std::unique_ptr<hlo::Module> module;
  PropagationReport report;
  std::map<std::string, std::string> of;
  std::string error;
};

std::string AxesOf(const Sharding& sharding) {
  std::string text;
  for (const DimSharding& dim : sharding.dims) text += AxesToString(*sharding.mesh, dim.axes);
  text = absl::StrReplaceAll(text, {{"'", ""}});
  if (!sharding.manual.empty()) absl::StrAppend(&text, " manual");
  return text.empty() ? "scalar" : text;
}

// `@[...]` in the text stands for a sharding over the given mesh.
Completed Complete(absl::string_view mesh, int partitions, absl::string_view text, PropagateOptions options = {}) {
  Completed out;
  auto module = hlo::ParseModule(absl::StrReplaceAll(
      absl::StrCat(kHeader, text),
      {{"$N", absl::StrCat(partitions)}, {"@[", absl::StrCat("sharding={", mesh, ", [")}, {"]@", "]}"}}));
  if (!module.ok()) {
    out.error = std::string(module.status().message());
    return out;
  }
  out.module = *std::move(module);
  absl::Status status = Propagate(*out.module, options, &out.report);
  if (!status.ok()) {
    out.error = std::string(status.message());
    return out;
  }
  for (const auto& computation : out.module->computations()) {
    for (const auto& instruction : computation->instructions()) {
      if (!instruction->has_sharding()) continue;
      out.of[instruction->name()] =
          absl::StrJoin(*instruction->shardings(), " ",
                        [](std::string* o, const Sharding& sharding) { absl::StrAppend(o, AxesOf(sharding)); });
    }
  }
  return out;
}

constexpr char kXy[] = "mesh['x'=2,'y'=2]";
constexpr char kDataModel[] = "mesh['data'=4,'model'=2]";

TEST(Propagate, MergesCompatibleTilings) {
  auto done = Complete(kXy, 4, R"(ENTRY e {
  a = f32[8,8] parameter(0), @[{'x'}, {}]@
  b = f32[8,8] parameter(1), @[{}, {'y'}]@
  c = f32[8,8] add(a, b)
  ROOT d = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})");
  ASSERT_EQ(done.error, "");
  EXPECT_EQ(done.of["c"], "{x}{y}");
  EXPECT_EQ(done.of["d"], "{x}{y}");
  EXPECT_EQ(done.of["a"], "{x}{}");
}

TEST(Propagate, GoesBackwards) {
  auto done = Complete(kXy, 4, R"(ENTRY e {
  a = f32[8,4] parameter(0)
  t = f32[4,8] transpose(a), dimensions={1,0}
  n = f32[4,8] negate(t)
  ROOT c = f32[4,8] custom-call(n), custom_call_target="Sharding", @[{'x'}, {'y'}]@
})");
  ASSERT_EQ(done.error, "");
  EXPECT_EQ(done.of["a"], "{y}{x}");
  EXPECT_EQ(done.of["n"], "{x}{y}");
}

TEST(Propagate, ClosedAndOpenDimensions) {
  auto done = Complete(kXy, 4, R"(ENTRY e {
  a = f32[8,8] parameter(0), @[{'x'}, {'y'}]@
  closed = f32[8,8] custom-call(a), custom_call_target="Sharding", @[{}, {'y'}]@
  open = f32[8,8] custom-call(a), custom_call_target="Sharding", @[{?}, {}]@
  unspecified = f32[8,8] custom-call(a), custom_call_target="Sharding", backend_config="unspecified_dims=[1]", @[{}, {}]@
  kept = f32[8,8] custom-call(a), custom_call_target="Sharding", sharding={mesh['x'=2,'y'=2], [{?}, {?}], replicated={'x'}}
  ROOT r = (f32[8,8], f32[8,8], f32[8,8], f32[8,8]) tuple(closed, open, unspecified, kept)
})");
  ASSERT_EQ(done.error, "");
  EXPECT_EQ(done.of["closed"], "{}{y}");
  EXPECT_EQ(done.of["open"], "{x}{}");
  EXPECT_EQ(done.of["unspecified"], "{}{y}");
  EXPECT_EQ(done.of["kept"], "{}{y}");
  EXPECT_EQ(done.of["r"], "{}{y} {x}{} {}{y} {}{y}");
}

TEST(Propagate, PrioritiesOfTheUser) {
  const char* text = R"(ENTRY e {
  a = f32[8,8] parameter(0), @[{'x'}$A, {}]@
  b = f32[8,8] parameter(1), @[{'y'}$B, {}]@
  ROOT c = f32[8,8] add(a, b)
})";
  EXPECT_EQ(Complete(kXy, 4, absl::StrReplaceAll(text, {{"$A", "p1"}, {"$B", "p0"}})).of["c"], "{y}{}");
  EXPECT_EQ(Complete(kXy, 4, absl::StrReplaceAll(text, {{"$A", "p0"}, {"$B", "p1"}})).of["c"], "{x}{}");
}

TEST(Propagate, ConflictsAreReported) {
  auto done = Complete(kXy, 4, R"(ENTRY e {
  a = f32[8] parameter(0), @[{'x'}]@
  b = f32[8] parameter(1), @[{'y'}]@
  ROOT c = f32[8] add(a, b)
})");
  ASSERT_EQ(done.report.conflicts.size(), 1u);
  EXPECT_EQ(done.of["a"], "{x}");
  EXPECT_EQ(done.of["b"], "{y}");
  EXPECT_EQ(done.report.conflicts[0].instruction, "b");
}

TEST(Propagate, ReshapesSplitAndMerge) {
  auto done = Complete(kDataModel, 8, R"(ENTRY e {
  a = f32[8,16,4] parameter(0), @[{'data'}, {}, {'model'}]@
  merged = f32[128,4] reshape(a)
  heads = f32[128,2,2] reshape(merged)
  b = f32[16] parameter(1), @[{'data','model'}]@
  split = f32[2,8] reshape(b)
  ROOT r = (f32[128,2,2], f32[2,8]) tuple(heads, split)
})");
  ASSERT_EQ(done.error, "");
  EXPECT_EQ(done.of["merged"], "{data}{model}");
  EXPECT_EQ(done.of["heads"], "{data}{model}{}");
  EXPECT_EQ(done.of["split"], "{data:(1)2}{data:(2)2,model}");
}

TEST(Propagate, NotOntoDimensionsSmallerThanTheShards) {
  auto done = Complete(kDataModel, 8, R"(ENTRY e {
  a = f32[3,8] parameter(0), @[{'data'}, {}]@
  n = f32[3,8] negate(a)
  b = f32[5,8] parameter(1), @[{'data'}, {}]@
  m = f32[5,8] negate(b)
  ROOT r = (f32[3,8], f32[5,8]) tuple(n, m)
})");
  ASSERT_EQ(done.error, "");
  EXPECT_EQ(done.of["a"], "{data}{}");
  EXPECT_EQ(done.of["n"], "{}{}");
  EXPECT_EQ(done.of["m"], "{data}{}");
  EXPECT_TRUE(done.report.would_be_empty);
}

TEST(Propagate, EmptyShardsOnRequest) {
  auto done = Complete(kDataModel, 8, R"(ENTRY e {
  a = f32[3,8] parameter(0), @[{'data'}, {}]@
  n = f32[3,8] negate(a)
  b = f32[1,8] parameter(1), @[{'data'}, {}]@
  m = f32[1,8] negate(b)
  ROOT r = (f32[3,8], f32[1,8]) tuple(n, m)
})",
                       {.empty_shards = true});
  ASSERT_EQ(done.error, "");
  EXPECT_EQ(done.of["n"], "{data}{}");
  EXPECT_EQ(done.of["m"], "{}{}");
  EXPECT_FALSE(done.report.would_be_empty);
}

TEST(Propagate, ClientsHoldEqualShards) {
  auto done = Complete(kXy, 4, R"(ENTRY e {
  a = f32[9] parameter(0), @[{'x'}]@
  n = f32[9] negate(a)
  b = f32[9] parameter(1)
  m = f32[9] add(n, b)
  ROOT r = (f32[9], f32[9]) tuple(n, m)
})");
  ASSERT_EQ(done.error, "");
  EXPECT_EQ(done.of["a"], "{x}");
  EXPECT_EQ(done.of["m"], "{x}");
  EXPECT_EQ(done.of["b"], "{}");
  EXPECT_EQ(done.of["r"], "{} {}");
}

TEST(Propagate, ThroughLoopsElementByElement) {
  auto done = Complete(kXy, 4, R"(
body {
  s = (s32[], f32[8,8], f32[4,8,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  h = f32[8,8] get-tuple-element(s), index=1
  w = f32[4,8,8] get-tuple-element(s), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  wi = f32[1,8,8] dynamic-slice(w, i, zero, zero), dynamic_slice_sizes={1,8,8}
  wm = f32[8,8] reshape(wi)
  next = f32[8,8] dot(h, wm), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  j = s32[] add(i, one)
  ROOT out = (s32[], f32[8,8], f32[4,8,8]) tuple(j, next, w)
}
cond {
  s = (s32[], f32[8,8], f32[4,8,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[8,8] parameter(0), @[{'x'}, {}]@
  w = f32[4,8,8] parameter(1), @[{}, {}, {'y'}]@
  z = s32[] constant(0)
  t = (s32[], f32[8,8], f32[4,8,8]) tuple(z, x, w)
  l = (s32[], f32[8,8], f32[4,8,8]) while(t), condition=cond, body=body
  ROOT r = f32[8,8] get-tuple-element(l), index=1
})");
  ASSERT_EQ(done.error, "");
  EXPECT_EQ(done.of["wm"], "{}{y}");
  EXPECT_EQ(done.of["h"], "{x}{y}");
  EXPECT_EQ(done.of["l"], "scalar {x}{y} {}{}{y}");
  EXPECT_EQ(done.of["out"], "scalar {x}{y} {}{}{y}");
  EXPECT_EQ(done.of["r"], "{x}{y}");
}

// A layer as fully sharded data parallel programs write it: batch and weights both over data.
constexpr char kLayer[] = R"(ENTRY e {
  tokens = s32[32,64] parameter(0), @[{'data'}, {}]@
  table = f32[256,128] parameter(1), @[{'model'}, {'data'}]@
  w1 = f32[128,512] parameter(2), @[{'data'}, {'model'}]@
  w2 = f32[512,128] parameter(3), @[{'model'}, {'data'}]@
  embedded = f32[32,64,128] gather(table, tokens), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,128}
  up = f32[32,64,512] dot(embedded, w1), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  act = f32[32,64,512] tanh(up)
  down = f32[32,64,128] dot(act, w2), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  sum = f32[32,64,128] add(embedded, down)
  logits = f32[32,64,256] dot(sum, table), lhs_contracting_dims={2}, rhs_contracting_dims={1}
  grad = f32[128,512] dot(embedded, act), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}
  updated = f32[128,512] subtract(w1, grad)
  ROOT r = (f32[32,64,256], f32[128,512]) tuple(logits, updated)
})";

TEST(Propagate, FullyShardedWeightsKeepOffTheActivations) {
  auto done = Complete(kDataModel, 8, kLayer);
  ASSERT_EQ(done.error, "");
  EXPECT_EQ(done.of["embedded"], "{data}{}{}");
  EXPECT_EQ(done.of["up"], "{data}{}{model}");
  EXPECT_EQ(done.of["act"], "{data}{}{model}");
  EXPECT_EQ(done.of["down"], "{data}{}{}");
  EXPECT_EQ(done.of["sum"], "{data}{}{}");
  EXPECT_EQ(done.of["logits"], "{data}{}{model}");
  EXPECT_EQ(done.of["grad"], "{data}{model}");
  EXPECT_EQ(done.of["updated"], "{data}{model}");
}

TEST(Propagate, ManualRegions) {
  auto done = Complete(kXy, 4, R"(ENTRY e {
  a = f32[8,8] parameter(0), @[{'x'}, {'y'}]@
  in = f32[8,8] custom-call(a), custom_call_target="Sharding", @[{'x', ?}, {?}]@
  local = f32[4,8] custom-call(in), custom_call_target="SPMDFullToShardShape", sharding={mesh['x'=2,'y'=2], [{?}, {?}], manual={'x'}}
  n = f32[4,8] negate(local)
  out = f32[8,8] custom-call(n), custom_call_target="SPMDShardToFullShape", @[{'x', ?}, {?}]@
  ROOT r = f32[8,8] negate(out)
})");
  ASSERT_EQ(done.error, "");
  EXPECT_EQ(done.of["local"], "{}{y} manual");
  EXPECT_EQ(done.of["n"], "{}{y} manual");
  EXPECT_EQ(done.of["r"], "{x}{y}");
}

TEST(Propagate, GroupsAndBarriers) {
  auto done = Complete(kXy, 4, R"(ENTRY e {
  a = f32[8,8] parameter(0), @[{'x'}, {}]@
  b = f32[8,8] parameter(1)
  n = f32[8,8] negate(b)
  g1 = () custom-call(a), custom_call_target="xla.sdy.ShardingGroup", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.sharding_group_id="7 : i64"}
  g2 = () custom-call(n), custom_call_target="xla.sdy.ShardingGroup", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.sharding_group_id="7 : i64"}
  stop = f32[8,8] custom-call(n), custom_call_target="xla.sdy.PropagationBarrier", frontend_attributes={xla.sdy.allowed_direction="2 : i32"}
  pass = f32[8,8] custom-call(n), custom_call_target="xla.sdy.PropagationBarrier", frontend_attributes={xla.sdy.allowed_direction="1 : i32"}
  ROOT r = (f32[8,8], f32[8,8]) tuple(stop, pass)
})");
  ASSERT_EQ(done.error, "");
  EXPECT_EQ(done.of["n"], "{x}{}");
  EXPECT_EQ(done.of["b"], "{x}{}");
  EXPECT_EQ(done.of["r"], "{}{} {x}{}");
}

TEST(Propagate, OneMeshFromTileAssignments) {
  auto done = Complete("", 8, R"(ENTRY e {
  a = f32[8,8] parameter(0), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  b = f32[8,8] parameter(1), sharding={devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}
  c = f32[8,8] parameter(2), sharding={devices=[8,1]<=[8]}
  s = f32[8,8] add(a, b)
  ROOT r = (f32[8,8], f32[8,8]) tuple(s, c)
})");
  ASSERT_EQ(done.error, "");
  EXPECT_EQ(done.of["s"], "{_0}{_1}");
  EXPECT_EQ(done.of["c"], "{_0,_1}{}");
}

TEST(Propagate, UnsaidParametersAndResultsAreReplicated) {
  auto done = Complete(kXy, 4, R"(ENTRY e {
  a = f32[8] parameter(0), @[{'x'}]@
  b = f32[8] parameter(1)
  ROOT c = f32[8] add(a, b)
})",
                       {.propagate_to_parameters = {false}, .propagate_to_output = {false}, .record_origins = false});
  ASSERT_EQ(done.error, "");
  EXPECT_EQ(done.of["b"], "{}");
  EXPECT_EQ(done.of["c"], "{x}");
  EXPECT_EQ(AxesOf(done.module->entry()->root()->sharding()), "{}");
}

TEST(Propagate, OriginsOnRequest) {
  const char* text = R"(ENTRY e {
  a = f32[8] parameter(0), @[{'x'}]@
  ROOT c = f32[8] negate(a)
})";
  EXPECT_TRUE(Complete(kXy, 4, text).report.origins.empty());
  PropagateOptions options;
  options.record_origins = true;
  auto done = Complete(kXy, 4, text, options);
  ASSERT_FALSE(done.report.origins.empty());
  EXPECT_EQ(done.report.origins[0].instruction, "c");
  EXPECT_EQ(done.report.origins[0].from, "a");
}

TEST(Propagate, EveryInstructionIsLegal) {
  auto done = Complete(kDataModel, 8, kLayer);
  for (const auto& instruction : done.module->entry()->instructions()) {
    ASSERT_TRUE(instruction->has_sharding()) << instruction->name();
    if (!instruction->shape().IsArray()) continue;
    EXPECT_TRUE(ValidateSharding(instruction->sharding(), instruction->shape()).ok()) << instruction->name();
  }
}

}  // namespace
}  // namespace gangway::propagate

#include "gangway/explain/explain.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gangway/explain/spec.h"
#include "gangway/hlo/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::explain {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// `@[{'x'}, {}]@` stands for a sharding over the mesh.
absl::StatusOr<Explanation> TryExplain(absl::string_view entry, ExplainOptions options) {
  const std::string text = absl::StrReplaceAll(entry, {{"@[", "sharding={mesh['data'=4,'model'=2], ["}, {"]@", "]}"}});
  absl::StatusOr<std::unique_ptr<hlo::Module>> module = hlo::ParseModule(absl::StrCat("HloModule m\n\n", text));
  EXPECT_TRUE(module.ok()) << module.status();
  options.machine = *cost::MachineByName("h100");
  options.min_tensor_bytes = 1;
  return Explain(*std::move(module), options);
}

Explanation ExplainText(absl::string_view entry, int64_t devices = 8, double remedy_seconds = 60) {
  ExplainOptions options;
  options.compile.num_partitions = devices;
  options.remedy_seconds = remedy_seconds;
  absl::StatusOr<Explanation> explanation = TryExplain(entry, options);
  EXPECT_TRUE(explanation.ok()) << explanation.status();
  return *std::move(explanation);
}

constexpr char kGather[] = R"(ENTRY e {
  w = f32[64,64] parameter(0), @[{}, {'model'}]@
  x = f32[256,64] parameter(1), @[{'data'}, {}]@
  n = f32[64,64] negate(w)
  ROOT y = f32[256,64] dot(x, n), lhs_contracting_dims={1}, rhs_contracting_dims={0}, @[{'data'}, {}]@
})";

TEST(ExplainTest, AGatherNamesWhoWantedItAndWhereItsShardingsComeFrom) {
  const Explanation explanation = ExplainText(kGather);
  ASSERT_THAT(explanation.collectives, SizeIs(1));
  const Collective& gather = explanation.collectives[0];
  EXPECT_EQ(gather.axes, "'model'");
  EXPECT_EQ(gather.executions, 1);
  EXPECT_GT(gather.bytes, 0);
  EXPECT_EQ(gather.bytes, explanation.bytes);
  ASSERT_THAT(gather.causes, SizeIs(1));
  EXPECT_TRUE(gather.causes[0].is_reshard);
  EXPECT_THAT(gather.causes[0].from, HasSubstr("'model'"));
}

TEST(ExplainTest, ARemedyIsOneThatWasTried) {
  const Explanation explanation = ExplainText(kGather);
  ASSERT_THAT(explanation.collectives, SizeIs(1));
  ASSERT_TRUE(explanation.collectives[0].remedy.has_value()) << ToText(explanation);
  EXPECT_LT(explanation.collectives[0].remedy->bytes_after, explanation.bytes);
}

TEST(ExplainTest, ARemedyAppliedRemovesTheCollective) {
  const Explanation before = ExplainText(kGather);
  ASSERT_TRUE(!before.collectives.empty() && before.collectives[0].remedy.has_value()) << ToText(before);
  const Remedy& remedy = *before.collectives[0].remedy;
  ExplainOptions options;
  options.compile.num_partitions = 8;
  options.annotations = {{remedy.place.instruction, remedy.spec}};
  const absl::StatusOr<Explanation> after = TryExplain(kGather, options);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->bytes, remedy.bytes_after);
}

TEST(ExplainTest, AnnotationsThatDoNotFitAreNamed) {
  for (const auto& [instruction, spec] : std::vector<std::pair<std::string, std::string>>{
           {"nobody", "P()"}, {"n", "P('data'"}, {"n", "P('nowhere')"}, {"n", "P(None, None, 'data')"}}) {
    ExplainOptions options;
    options.compile.num_partitions = 8;
    options.annotations = {{instruction, spec}};
    const absl::Status status = TryExplain(kGather, options).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(instruction)) << spec;
  }
}

// The neighbours' rows: no array moves as a whole, and to have the rows whole would cost more.
TEST(ExplainTest, OperationsThatCommunicateThemselvesAreTriedToo) {
  const Explanation explanation = ExplainText(R"(ENTRY e {
  x = f32[1,4096,64] parameter(0), @[{}, {'data'}, {}]@
  k = f32[3,64,64] parameter(1), @[{}, {}, {}]@
  ROOT y = f32[1,4096,64] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, @[{}, {'data'}, {}]@
})");
  ASSERT_FALSE(explanation.collectives.empty());
  for (const Collective& collective : explanation.collectives) {
    EXPECT_EQ(collective.kind, "collective-permute");
    EXPECT_TRUE(collective.remedies_tried);
    EXPECT_FALSE(collective.remedy.has_value());
  }
}

// Neighbours are needed along a dimension that need not be split.
TEST(ExplainTest, AnotherDimensionIsTriedForOperationsThatCommunicate) {
  ExplainOptions options;
  options.compile.num_partitions = 8;
  options.compile.propagate_to_output = {true};
  options.remedy_seconds = 60;
  const absl::StatusOr<Explanation> explanation = TryExplain(R"(ENTRY e {
  x = f32[64,4096,64] parameter(0), @[{}, {'data'}, {}]@
  k = f32[3,64,64] parameter(1), @[{}, {}, {}]@
  ROOT y = f32[64,4096,64] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f
})",
                                                             options);
  ASSERT_TRUE(explanation.ok() && !explanation->collectives.empty());
  const std::optional<Remedy>& remedy = explanation->collectives[0].remedy;
  ASSERT_TRUE(remedy.has_value()) << ToText(*explanation);
  EXPECT_TRUE(remedy->pays());
  EXPECT_EQ(remedy->place.instruction, "x");
  EXPECT_EQ(remedy->spec, "P('data')");
}

TEST(ExplainTest, ASumThatEverybodyTakesMayBeScattered) {
  const Explanation explanation = ExplainText(R"(ENTRY e {
  x = f32[4096,4096] parameter(0), @[{}, {'data'}]@
  w = f32[4096,8] parameter(1), @[{'data'}, {}]@
  ROOT y = f32[4096,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, @[{}, {}]@
})");
  ASSERT_FALSE(explanation.collectives.empty());
  ASSERT_EQ(explanation.collectives[0].kind, "all-reduce");
  ASSERT_TRUE(explanation.collectives[0].remedy.has_value()) << ToText(explanation);
  EXPECT_TRUE(explanation.collectives[0].remedy->pays());
  EXPECT_EQ(explanation.collectives[0].remedy->spec, "P('data')");
}

TEST(RemedyTest, APriceIsTold) {
  Remedy remedy;
  remedy.bytes_before = 1 << 20, remedy.bytes_after = 1 << 10;
  remedy.seconds_before = 1e-3, remedy.seconds_after = 8e-3;
  EXPECT_FALSE(remedy.pays()) << "everybody computes everything";
  EXPECT_EQ(remedy.PriceText(),
            "the program then receives 1.00 KiB instead of 1.00 MiB, 8.00 ms modelled instead of 1.00 ms");
  remedy.seconds_after = 1e-3;
  EXPECT_TRUE(remedy.pays());
  EXPECT_EQ(remedy.PriceText(), "the program then receives 1.00 KiB instead of 1.00 MiB");
}

TEST(ExplainTest, RemediesForSomeCollectivesOnly) {
  ExplainOptions options;
  options.compile.num_partitions = 8;
  options.remedies_for = {"another"};
  const absl::StatusOr<Explanation> explanation = TryExplain(kGather, options);
  ASSERT_TRUE(explanation.ok() && !explanation->collectives.empty());
  EXPECT_FALSE(explanation->collectives[0].remedies_tried);
}

TEST(SpecTest, RoundTrip) {
  const auto mesh = std::make_shared<const Mesh>(*Mesh::Make({{"x", 4}, {"y", 2}}));
  for (const char* text : {"P()", "P('x')", "P(None, 'y')", "P(('x','y'))", "P('y', None, 'x')", "P('x':(2)2, 'y')"}) {
    const absl::StatusOr<Sharding> sharding = ParseSpec(text, mesh, 3);
    ASSERT_TRUE(sharding.ok()) << text << ": " << sharding.status();
    EXPECT_EQ(SpecOf(*sharding), text);
  }
  EXPECT_EQ(SpecOf(*ParseSpec("P( ('x', ), None, )", mesh, 3)), "P('x')");
  for (const char* text : {"", "P", "P(", "P('x', 'x')", "P('x',,)", "P(None,None,None,None)", "P() P()"}) {
    EXPECT_FALSE(ParseSpec(text, mesh, 3).ok()) << text;
  }
}

TEST(ExplainTest, NoTimeNoRemedies) {
  const Explanation explanation = ExplainText(kGather, 8, /*remedy_seconds=*/0);
  ASSERT_THAT(explanation.collectives, SizeIs(1));
  EXPECT_FALSE(explanation.collectives[0].remedies_tried);
}

TEST(ExplainTest, LoopBodiesCountAsOftenAsTheyRun) {
  const Explanation explanation = ExplainText(R"(sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

body {
  p = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  v = f32[64,64] get-tuple-element(p), index=1
  none = f32[] constant(0)
  total = f32[] reduce(v, none), dimensions={0,1}, to_apply=sum
  totals = f32[64,64] broadcast(total), dimensions={}
  less = f32[64,64] subtract(v, totals)
  t = f32[64,64] tanh(less)
  ROOT r = (s32[], f32[64,64]) tuple(next, t)
}

condition {
  p = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY e {
  v = f32[64,64] parameter(0), @[{}, {'model'}]@
  zero = s32[] constant(0)
  init = (s32[], f32[64,64]) tuple(zero, v)
  loop = (s32[], f32[64,64]) while(init), condition=condition, body=body
  ROOT r = f32[64,64] get-tuple-element(loop), index=1, @[{}, {'model'}]@
})");
  ASSERT_EQ(explanation.collectives.size(), 1u) << ToText(explanation);
  EXPECT_EQ(explanation.collectives[0].executions, 5) << ToText(explanation);
}

TEST(ExplainTest, OneDeviceHasNothingToExplain) {
  const Explanation explanation = ExplainText("ENTRY e {\n  ROOT x = f32[4] parameter(0)\n}", 1);
  EXPECT_THAT(explanation.collectives, IsEmpty());
  EXPECT_THAT(ToText(explanation), HasSubstr("no collectives"));
}

TEST(ExplainTest, PathsLeadBackToTheAnnotation) {
  const Explanation explanation = ExplainText(kGather);
  for (const Tensor& tensor : explanation.tensors) {
    if (tensor.place.instruction != "n") continue;
    ASSERT_THAT(tensor.paths, SizeIs(1));
    EXPECT_EQ(tensor.paths[0].places.front().instruction, "w");
    EXPECT_EQ(tensor.paths[0].places.back().instruction, "n");
    return;
  }
  FAIL() << "no tensor n";
}

TEST(ExplainTest, PathsPassLoops) {
  const Explanation explanation = ExplainText(R"(body {
  p = (s32[], f32[64,64], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  v = f32[64,64] get-tuple-element(p), index=1
  w = f32[64,64] get-tuple-element(p), index=2
  t = f32[64,64] tanh(v)
  n = f32[64,64] negate(w)
  ROOT r = (s32[], f32[64,64], f32[64,64]) tuple(next, t, n)
}

condition {
  p = (s32[], f32[64,64], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY e {
  left = f32[64,64] parameter(0), @[{'data'}, {}]@
  right = f32[64,64] parameter(1), @[{}, {'data'}]@
  zero = s32[] constant(0)
  init = (s32[], f32[64,64], f32[64,64]) tuple(zero, left, right)
  loop = (s32[], f32[64,64], f32[64,64]) while(init), condition=condition, body=body
  a = f32[64,64] get-tuple-element(loop), index=1
  b = f32[64,64] get-tuple-element(loop), index=2
  s = f32[64,64] exponential(a)
  q = f32[64,64] cosine(b)
  ROOT r = (f32[64,64], f32[64,64]) tuple(s, q)
})");
  std::map<std::string, std::string> found;
  for (const Tensor& tensor : explanation.tensors) {
    if (!tensor.paths.empty()) found[tensor.place.instruction] = tensor.paths[0].places.front().instruction;
  }
  EXPECT_EQ(found["t"], "left");
  EXPECT_EQ(found["n"], "right");
  EXPECT_EQ(found["s"], "left");
  EXPECT_EQ(found["q"], "right");
}

TEST(ExplainTest, TheLargestReplicatedTensorIsFound) {
  const Explanation explanation = ExplainText(R"(ENTRY e {
  a = f32[64,64] parameter(0), @[{}, {}]@
  b = f32[8] parameter(1), @[{}]@
  c = f32[128,64] parameter(2), @[{'data'}, {}]@
  ROOT r = (f32[64,64], f32[8], f32[128,64]) tuple(a, b, c)
})");
  const Tensor* largest = LargestReplicated(explanation);
  ASSERT_NE(largest, nullptr);
  EXPECT_EQ(largest->place.instruction, "a");
}

TEST(ExplainTest, PagesStandAlone) {
  const std::string html = ToHtml(ExplainText(kGather));
  EXPECT_THAT(html, HasSubstr("<!DOCTYPE html>"));
  for (const char* outside : {"http", "src=", "<script", "@import"}) {
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  }
}

}  // namespace
}  // namespace gangway::explain

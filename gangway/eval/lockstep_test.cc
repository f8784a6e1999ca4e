#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gangway/eval/evaluate.h"
#include "gangway/hlo/builder.h"

namespace gangway::eval {
namespace {

using hlo::Builder;
using hlo::CollectiveAttr;
using hlo::Opcode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A program of one parameter on every device; the body is built by the test.
class LockstepTest : public ::testing::Test {
 protected:
  LockstepTest() : builder_(module_.AddComputation("main")) { module_.set_entry(builder_.computation()); }

  hlo::Instruction* Parameter(Shape shape) { return builder_.Parameter(0, std::move(shape), "x"); }

  static CollectiveAttr Groups(std::vector<std::vector<int64_t>> groups, std::optional<int64_t> dimension = {}) {
    CollectiveAttr attr;
    attr.groups.groups = std::move(groups);
    attr.dimension = dimension;
    attr.channel_id = 1;
    attr.use_global_device_ids = true;
    return attr;
  }

  // Runs on one f32 row per device and returns the rows.
  absl::StatusOr<std::vector<std::vector<float>>> Run(const std::vector<std::vector<float>>& rows,
                                                      const EvaluateOptions& options = {}) {
    std::vector<std::vector<Literal>> arguments;
    for (const std::vector<float>& row : rows) {
      arguments.push_back({Literal::FromSpan<float>(DType::kF32, {static_cast<int64_t>(row.size())}, row)});
    }
    absl::StatusOr<std::vector<Literal>> results =
        EvaluateSpmd(module_, arguments, static_cast<int64_t>(rows.size()), options);
    if (!results.ok()) return results.status();
    std::vector<std::vector<float>> out;
    for (const Literal& result : *results)
      out.emplace_back(result.values<float>().begin(), result.values<float>().end());
    return out;
  }

  hlo::Module module_{"test"};
  Builder builder_;
};

TEST_F(LockstepTest, AllReduceAddsWithinGroups) {
  hlo::Instruction* x = Parameter(Shape(DType::kF32, {2}));
  hlo::Computation* add = builder_.ScalarComputation(Opcode::kAdd, DType::kF32);
  builder_.computation()->set_root(builder_.Add(Opcode::kAllReduce, {x}, Groups({{0, 2}, {1, 3}}), {add}));
  auto rows = Run({{1, 2}, {3, 4}, {5, 6}, {7, 8}});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(*rows, ElementsAre(ElementsAre(6, 8), ElementsAre(10, 12), ElementsAre(6, 8), ElementsAre(10, 12)));
}

TEST_F(LockstepTest, AllGatherJoinsInGroupOrder) {
  hlo::Instruction* x = Parameter(Shape(DType::kF32, {1}));
  builder_.computation()->set_root(
      builder_.Add(Opcode::kAllGather, {x}, Groups({{1, 0}}, 0), {}, Shape(DType::kF32, {2})));
  auto rows = Run({{1}, {2}});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(*rows, ElementsAre(ElementsAre(2, 1), ElementsAre(2, 1)));
}

TEST_F(LockstepTest, ReduceScatterLeavesEachMemberItsPart) {
  hlo::Instruction* x = Parameter(Shape(DType::kF32, {2}));
  hlo::Computation* add = builder_.ScalarComputation(Opcode::kAdd, DType::kF32);
  builder_.computation()->set_root(
      builder_.Add(Opcode::kReduceScatter, {x}, Groups({{0, 1}}, 0), {add}, Shape(DType::kF32, {1})));
  auto rows = Run({{1, 2}, {3, 4}});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(*rows, ElementsAre(ElementsAre(4), ElementsAre(6)));
}

TEST_F(LockstepTest, AllToAllTransposesParts) {
  hlo::Instruction* x = Parameter(Shape(DType::kF32, {4}));
  builder_.computation()->set_root(
      builder_.Add(Opcode::kAllToAll, {x}, Groups({{0, 1}}, 0), {}, Shape(DType::kF32, {4})));
  auto rows = Run({{1, 2, 3, 4}, {5, 6, 7, 8}});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(*rows, ElementsAre(ElementsAre(1, 2, 5, 6), ElementsAre(3, 4, 7, 8)));
}

TEST_F(LockstepTest, PermuteGivesZerosToThoseWithoutSource) {
  hlo::Instruction* x = Parameter(Shape(DType::kF32, {1}));
  CollectiveAttr attr;
  attr.source_target_pairs = {{0, 1}, {1, 2}};
  attr.channel_id = 1;
  builder_.computation()->set_root(builder_.Add(Opcode::kCollectivePermute, {x}, attr));
  auto rows = Run({{1}, {2}, {3}});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(*rows, ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST_F(LockstepTest, PartitionIdDiffers) {
  Parameter(Shape(DType::kF32, {1}));
  hlo::Instruction* id = builder_.Convert(builder_.PartitionId(), DType::kF32);
  builder_.computation()->set_root(builder_.Reshape(id, {1}));
  auto rows = Run({{0}, {0}, {0}});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(*rows, ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST_F(LockstepTest, WithoutChannelGroupsNameReplicas) {
  hlo::Instruction* x = Parameter(Shape(DType::kF32, {1}));
  hlo::Computation* add = builder_.ScalarComputation(Opcode::kAdd, DType::kF32);
  CollectiveAttr attr;
  attr.groups.groups = {{0, 1}};
  builder_.computation()->set_root(builder_.Add(Opcode::kAllReduce, {x}, attr, {add}));
  EXPECT_THAT(Run({{1}, {2}}).status().message(), HasSubstr("names 1 of 1 replicas"));
  module_.config().num_replicas = 2;
  auto rows = Run({{1}, {2}});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(*rows, ElementsAre(ElementsAre(3), ElementsAre(3)));
}

// while (x[0] < 10) x = body(x)
class LoopTest : public LockstepTest {
 protected:
  static constexpr int kLimit = 10;
  void Loop(const std::function<hlo::Instruction*(Builder&, hlo::Instruction*)>& body) {
    Shape shape(DType::kF32, {1});
    Builder condition(module_.AddComputation("condition"));
    hlo::Instruction* state = condition.Parameter(0, shape, "c");
    condition.computation()->set_root(condition.Compare(hlo::ComparisonDirection::kLt, condition.Reshape(state, {}),
                                                        condition.Scalar(DType::kF32, kLimit)));
    Builder step(module_.AddComputation("body"));
    step.computation()->set_root(body(step, step.Parameter(0, shape, "b")));
    hlo::Instruction* x = Parameter(shape);
    builder_.computation()->set_root(
        builder_.Add(Opcode::kWhile, {x}, {}, {condition.computation(), step.computation()}));
  }
};

TEST_F(LoopTest, DevicesLeaveOnTheirOwn) {
  Loop([](Builder& b, hlo::Instruction* x) { return b.Binary(Opcode::kAdd, x, b.Splat(x->shape(), 4)); });
  auto rows = Run({{0}, {1}, {9}, {11}});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(*rows, ElementsAre(ElementsAre(12), ElementsAre(13), ElementsAre(13), ElementsAre(11)));
}

TEST_F(LoopTest, CollectiveWhoseGroupIsSplitIsAnError) {
  Loop([this](Builder& b, hlo::Instruction* x) {
    return b.Add(Opcode::kAllReduce, {x}, Groups({{0, 1}}), {b.ScalarComputation(Opcode::kAdd, DType::kF32)});
  });
  EXPECT_THAT(Run({{3}, {11}}).status().message(), HasSubstr("divergent control flow"));
  EXPECT_TRUE(Run({{3}, {4}}).ok());
}

TEST_F(LoopTest, StepsAreLimited) {
  Loop([](Builder& b, hlo::Instruction* x) { return b.Unary(Opcode::kNegate, x); });
  EvaluateOptions options;
  options.max_while_steps = 100;
  absl::Status status = Run({{1}}, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("while"));
}

TEST_F(LockstepTest, CustomCallsAreHooked) {
  hlo::Instruction* x = Parameter(Shape(DType::kF32, {1}));
  hlo::CustomCallAttr attr;
  attr.target = "twice";
  builder_.computation()->set_root(builder_.Add(Opcode::kCustomCall, {x}, attr, {}, x->shape()));
  EXPECT_THAT(Run({{1}}).status().message(), HasSubstr("'twice'"));
  EvaluateOptions options;
  options.custom_calls["twice"] = [](const hlo::Instruction&, absl::Span<const Value> operands) {
    return Value(Literal::FromSpan<float>(DType::kF32, {1}, {2 * operands[0].array().values<float>()[0]}));
  };
  auto rows = Run({{1}, {4}}, options);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(*rows, ElementsAre(ElementsAre(2), ElementsAre(8)));
}

TEST_F(LockstepTest, ArgumentsMustFit) {
  builder_.computation()->set_root(Parameter(Shape(DType::kF32, {2})));
  EXPECT_THAT(Run({{1}}).status().message(), HasSubstr("takes f32[2]"));
  EXPECT_FALSE(EvaluateSpmd(module_, {}, 1).ok());
  EXPECT_FALSE(Evaluate(module_, {}).ok());
}

TEST(OpTableTest, EveryOpcodeHasAFunctionOrAReason) {
  int supported = 0;
  for (const hlo::OpcodeInfo& info : hlo::AllOpcodes()) {
    absl::string_view reason = UnsupportedReason(info.opcode);
    EXPECT_NE(reason, "no function in the table") << info.name;
    supported += reason.empty();
  }
  EXPECT_GE(supported, 110);
}

}  // namespace
}  // namespace gangway::eval

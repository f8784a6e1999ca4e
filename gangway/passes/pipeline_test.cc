#include "gangway/passes/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gangway/hlo/builder.h"

namespace gangway::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PipelineTest : public ::testing::Test {
 protected:
  PipelineTest() {
    hlo::Builder builder(module_.AddComputation("main"));
    module_.set_entry(builder.computation());
    hlo::Instruction* x = builder.Parameter(0, Shape(DType::kF32, {2}), "x");
    builder.Unary(hlo::Opcode::kNegate, x);  // dead
    builder.computation()->set_root(builder.Binary(hlo::Opcode::kAdd, x, builder.Splat(x->shape(), 0)));
    pipeline_.Add("nothing", [](hlo::Module&) -> absl::StatusOr<bool> { return false; });
    EXPECT_TRUE(pipeline_.AddByName("dce").ok());
    EXPECT_TRUE(pipeline_.AddByName("simplify").ok());
  }

  hlo::Module module_{"test"};
  Pipeline pipeline_;
};

TEST_F(PipelineTest, DumpsTheInputAndWhatChanged) {
  std::vector<std::string> dumped;
  PipelineOptions options;
  options.verify = true;
  options.dump = [&](int64_t step, absl::string_view name, const hlo::Module&) {
    dumped.push_back(absl::StrCat(step, name));
  };
  auto records = pipeline_.Run(module_, options);
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_THAT(dumped, ElementsAre("0input", "2dce", "3simplify"));
  EXPECT_FALSE((*records)[0].changed);
  EXPECT_TRUE((*records)[2].changed);
  EXPECT_EQ(module_.entry()->root(), module_.entry()->parameter(0));
}

TEST_F(PipelineTest, SkipsByName) {
  PipelineOptions options;
  options.skip = {"dce"};
  auto records = pipeline_.Run(module_, options);
  ASSERT_TRUE(records.ok());
  EXPECT_TRUE((*records)[1].skipped);
  EXPECT_TRUE((*records)[2].changed);
}

TEST_F(PipelineTest, BisectionRunsTheFirstStepsOnly) {
  PipelineOptions options;
  options.bisect_limit = 2;
  auto records = pipeline_.Run(module_, options);
  ASSERT_TRUE(records.ok());
  EXPECT_FALSE((*records)[1].skipped);
  EXPECT_TRUE((*records)[2].skipped);
}

TEST_F(PipelineTest, ErrorsNameTheStep) {
  pipeline_.Add("broken", [](hlo::Module&) -> absl::StatusOr<bool> { return absl::InternalError("no"); });
  EXPECT_THAT(pipeline_.Run(module_).status().message(), HasSubstr("pass broken: no"));
  EXPECT_THAT(pipeline_.AddByName("fast").message(), HasSubstr("dce, cse"));
}

TEST_F(PipelineTest, RepeatsUntilNothingChanges) {
  int runs = 0;
  Pipeline::Step step = UntilStable({RunDce, RunSimplify}, 8);
  Pipeline pipeline;
  pipeline.Add("all", [&](hlo::Module& module) {
    ++runs;
    return step(module);
  });
  ASSERT_TRUE(pipeline.Run(module_).ok());
  auto again = pipeline.Run(module_);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE((*again)[0].changed);
}

}  // namespace
}  // namespace gangway::passes

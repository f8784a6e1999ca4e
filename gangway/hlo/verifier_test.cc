#include "gangway/hlo/verifier.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gangway/hlo/attribute_family.h"
#include "gangway/hlo/builder.h"
#include "gangway/hlo/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::hlo {
namespace {

using ::testing::HasSubstr;

std::string Fault(const std::string& text) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModule("HloModule m\n" + text);
  if (!module.ok()) return absl::StrCat("parser: ", module.status().message());
  return std::string(Verify(**module).message());
}

std::string Body(const std::string& instructions) { return "ENTRY e {\n" + instructions + "\n}\n"; }

TEST(VerifierTest, XlaDumpsAreWellFormed) {
  for (const auto& entry : std::filesystem::directory_iterator("gangway/hlo/testdata")) {
    std::ifstream in(entry.path(), std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModule(text.str());
    ASSERT_TRUE(module.ok()) << entry.path() << module.status();
    // The families_* files only show texts; their instructions need not fit together.
    if (entry.path().filename().string().rfind("families", 0) == 0) continue;
    EXPECT_EQ(Verify(**module), absl::OkStatus()) << entry.path();
  }
}

TEST(VerifierTest, NamesTheFaultyInstruction) {
  EXPECT_EQ(Fault(Body("x = f32[2] parameter(0)\n y = f32[3] negate(x)")),
            "computation %e: instruction %y: has shape f32[3], its operands make f32[2]");
  EXPECT_THAT(Fault(Body("x = f32[2] parameter(0)\n y = f32[2] add(x)")),
              HasSubstr("instruction %y: add(f32[2]): takes 2 operands, not 1"));
  EXPECT_THAT(Fault(Body("x = f32[2] parameter(0)\n y = f32[2] while(x)")), HasSubstr("calls 0 computations, needs 2"));
  EXPECT_THAT(Fault(Body("x = f32[2] parameter(0), sharding={mesh['a'=2], [{'a'}]}")), "");
  EXPECT_THAT(Fault(Body("x = f32[4] parameter(0)\n y = f32[4] collective-permute(x), "
                         "source_target_pairs={{0,1},{0,2}}")),
              HasSubstr("{0,2} is wrong or repeats a device"));
}

TEST(VerifierTest, OrderAndParameters) {
  Module module("m");
  Computation* entry = module.AddComputation("main");
  EXPECT_THAT(Verify(module).message(), HasSubstr("has no entry"));
  module.set_entry(entry);
  EXPECT_THAT(Verify(module).message(), HasSubstr("has no root"));
  Builder builder(entry);
  Instruction* x = builder.Parameter(0, Shape(DType::kF32, {4}), "x");
  Instruction* a = builder.Unary(Opcode::kNegate, x);
  Instruction* b = builder.Unary(Opcode::kNegate, x);
  a->ReplaceOperand(0, b);
  entry->set_root(a);
  EXPECT_THAT(Verify(module).message(), HasSubstr("uses %negate.1, which is not defined before it"));
  entry->SortTopologically();
  EXPECT_EQ(Verify(module), absl::OkStatus());
  module.config().aliases.push_back({{}, 1, {}, false});
  EXPECT_THAT(Verify(module).message(), HasSubstr("input_output_alias: no parameter 1"));
  module.config().aliases.clear();
  x->mutable_attributes() = DimensionsAttr{};
  EXPECT_THAT(Verify(module).message(), HasSubstr("attributes of another family"));
}

}  // namespace
}  // namespace gangway::hlo

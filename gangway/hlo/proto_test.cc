#include "gangway/hlo/proto.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gangway/hlo/builder.h"
#include "gangway/hlo/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla/service/hlo.pb.h"

namespace gangway::hlo {
namespace {

using ::testing::HasSubstr;

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// What the proto has no field for: the HloModule line beyond donation, and attributes kept as text.
void ForgetTextOnly(Module* module) {
  ModuleConfig& config = module->config();
  config.num_partitions = config.num_replicas = 1;
  config.propagate_to_parameters.clear();
  config.propagate_to_output.clear();
  config.extra_text.clear();
  for (const auto& computation : module->computations()) {
    for (const auto& instruction : computation->instructions()) instruction->set_extra_text("");
  }
}

// The text without instructions whose meaning is text only; true when nothing was taken out.
std::string WithoutLines(const std::string& text, const std::string& part) {
  std::istringstream in(text);
  std::string kept, line;
  while (std::getline(in, line)) {
    if (line.find(part) == std::string::npos) kept += line + "\n";
  }
  return kept;
}

TEST(ProtoTest, TextToProtoToText) {
  for (const auto& entry : std::filesystem::directory_iterator("gangway/hlo/testdata")) {
    if (entry.path().extension() != ".txt") continue;
    const std::string text = WithoutLines(ReadFile(entry.path()), " domain(");
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModule(text);
    ASSERT_TRUE(module.ok()) << entry.path() << module.status();
    absl::StatusOr<std::string> bytes = SerializeModule(**module);
    ASSERT_TRUE(bytes.ok()) << entry.path() << bytes.status();
    absl::StatusOr<std::unique_ptr<Module>> read = DeserializeModule(*bytes);
    ASSERT_TRUE(read.ok()) << entry.path() << read.status();
    ForgetTextOnly(module->get());
    ForgetTextOnly(read->get());
    std::istringstream expected(PrintModule(**module)), actual(PrintModule(**read));
    std::string want, got;
    while (std::getline(expected, want)) {
      std::getline(actual, got);
      ASSERT_EQ(got, want) << entry.path();
    }
  }
}

std::string ErrorOf(const xla::HloModuleProto& proto) {
  return std::string(DeserializeModule(proto.SerializeAsString()).status().message());
}

TEST(ProtoTest, MalformedProtosAreErrors) {
  Module module("m");
  Builder builder(module.AddComputation("main"));
  Instruction* x = builder.Parameter(0, Shape(DType::kF32, {4}), "x");
  Instruction* c = builder.Constant(Literal::FromSpan<float>(DType::kF32, {4}, {1, 2, 3, 4}));
  builder.computation()->set_root(builder.Binary(Opcode::kAdd, x, c));
  module.set_entry(builder.computation());
  xla::HloModuleProto good;
  ASSERT_TRUE(good.ParseFromString(SerializeModule(module).value()));
  ASSERT_EQ(ErrorOf(good), "");

  EXPECT_THAT(DeserializeModule("\xff\xff").status().message(), HasSubstr("not an HloModuleProto"));
  xla::HloModuleProto bad = good;
  bad.set_entry_computation_id(77);
  EXPECT_THAT(ErrorOf(bad), HasSubstr("entry computation is missing"));
  bad = good;
  bad.mutable_computations(0)->mutable_instructions(1)->mutable_literal()->mutable_f32s()->RemoveLast();
  EXPECT_THAT(ErrorOf(bad), HasSubstr("instruction %constant: literal f32[4] with 3 elements"));
  bad = good;
  bad.mutable_computations(0)->mutable_instructions(2)->set_operand_ids(0, 5);
  EXPECT_THAT(ErrorOf(bad), HasSubstr("instruction %add: names instruction 5 which does not precede it"));
  bad = good;
  bad.mutable_computations(0)->mutable_instructions(2)->set_opcode("frob");
  EXPECT_THAT(ErrorOf(bad), HasSubstr("unknown operation 'frob'"));
  bad = good;
  bad.mutable_computations(0)->mutable_instructions(0)->set_parameter_number(1 << 30);
  EXPECT_THAT(ErrorOf(bad), HasSubstr("parameter number"));
  bad = good;
  bad.mutable_computations(0)->mutable_instructions(2)->add_called_computation_ids(good.entry_computation_id());
  EXPECT_THAT(ErrorOf(bad), HasSubstr("does not precede it"));
  bad = good;
  bad.mutable_computations(0)->mutable_instructions(0)->mutable_shape()->set_dimensions(0, -1);
  EXPECT_THAT(ErrorOf(bad), HasSubstr("negative dimension"));
}

}  // namespace
}  // namespace gangway::hlo

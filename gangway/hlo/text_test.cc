#include "gangway/hlo/text.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::hlo {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string ReadGzip(const fs::path& path) {
  FILE* pipe = popen(("gzip -dc '" + path.string() + "'").c_str(), "r");
  std::string text;
  char buffer[1 << 16];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  pclose(pipe);
  return text;
}

// print(parse(text)) is text, byte for byte.
void ExpectRoundTrip(const std::string& text, const std::string& what) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModule(text);
  ASSERT_TRUE(module.ok()) << what << ": " << module.status();
  std::string printed = PrintModule(**module);
  if (printed == text) return;
  std::istringstream expected(text), actual(printed);
  std::string want, got;
  for (int line = 1; std::getline(expected, want); ++line) {
    std::getline(actual, got);
    ASSERT_EQ(got, want) << what << " line " << line;
  }
  FAIL() << what << ": more text than was read";
}

TEST(TextTest, TestdataRoundTrips) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator("gangway/hlo/testdata")) {
    if (entry.path().extension() != ".txt") continue;
    ExpectRoundTrip(ReadFile(entry.path()), entry.path().filename());
    ++files;
  }
  EXPECT_GE(files, 4);
}

// XLA's own dumps; present only beside a checkout that has the shared material.
TEST(TextTest, XlaDumpsRoundTrip) {
  const char* named = std::getenv("GANGWAY_HLO_DUMPS");
  const fs::path folder = named != nullptr ? named : "../shared/quality/hlo";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not there";
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".gz") continue;
    ExpectRoundTrip(ReadGzip(entry.path()), entry.path().filename());
    ++files;
  }
  EXPECT_EQ(files, 62);
}

std::string Error(const std::string& text) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModule(text);
  return module.ok() ? "no error" : std::string(module.status().message());
}

std::string Body(const std::string& instructions) { return "HloModule m\nENTRY e {\n" + instructions + "\n}\n"; }

TEST(TextTest, ErrorsNameLineAndInstruction) {
  EXPECT_THAT(Error(""), HasSubstr("line 1: expected HloModule"));
  EXPECT_THAT(Error("HloModule m"), HasSubstr("expected a computation"));
  EXPECT_THAT(Error(Body("  x = f32[2] parameter(0)\n  y = f32[2] add(x, z)")),
              HasSubstr("instruction %y: line 4: expected the name of an instruction above at 'z)'"));
  EXPECT_THAT(Error(Body("x = f32[2] frobnicate()")), HasSubstr("expected an operation at 'frobnicate()'"));
  EXPECT_THAT(Error(Body("x = f32[2] constant({1})")), HasSubstr("expected ',' at '})'"));
  EXPECT_THAT(Error(Body("x = s8[] constant(128)")), HasSubstr("a number of type s8"));
  EXPECT_THAT(Error(Body("x = f32[2] parameter(1)")), HasSubstr("a parameter number"));
  EXPECT_THAT(Error(Body("x = f32[2] iota()")), HasSubstr("attribute iota_dimension is missing"));
  EXPECT_THAT(Error(Body("x = f32[2] iota(), iota_dimension=0, iota_dimension=1")), HasSubstr("only once"));
  EXPECT_THAT(Error(Body("x = f32[2] parameter(0), sharding={devices=[3]0,1,1}")), HasSubstr("instruction %x"));
  EXPECT_THAT(Error(Body("x = f32[2] call(), to_apply=%g")), HasSubstr("the name of a computation above"));
  EXPECT_THAT(Error(Body("x = (f32[]) parameter(0)\n y = f32[] negate(%x#1)")), HasSubstr("an element of (f32[])"));
}

TEST(TextTest, ReadsTextWrittenByHand) {
  const char* text = R"(HloModule m  // no layouts, no signatures

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(f32[] a, f32[] b)
}

main {
  x = f32[4,2]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}
  zero = f32[] constant(0)
  /* reduce over
     rows */ sums = f32[2] reduce(x, zero), dimensions={0},
      to_apply=add
}
)";
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModule(text);
  ASSERT_TRUE(module.ok()) << module.status();
  const Computation& entry = *(*module)->entry();
  EXPECT_EQ(entry.name(), "main");
  EXPECT_EQ(entry.root()->ToString(), "%sums = f32[2] reduce(%x, %zero), dimensions={0}, to_apply=%add");
  EXPECT_EQ(entry.parameter(0)->sharding().ShardCount(0), 2);
}

TEST(TextTest, MeshesTravelAsAnAttribute) {
  Module module("m");
  Mesh mesh = Mesh::Make({{"x", 2}, {"y", 2}}).value();
  module.meshes().emplace_back("mesh", std::make_shared<const Mesh>(mesh));
  module.config().num_partitions = 4;
  Computation* entry = module.AddComputation("main");
  Instruction* x = entry->Add(Opcode::kParameter, Shape(DType::kF32, {4}), {}, ParameterAttr{0}, "x");
  entry->set_root(x);
  Sharding sharding = Sharding::Replicated(module.meshes()[0].second, 1);
  sharding.dims[0].axes = {FullAxis(mesh, 1)};
  x->set_shardings(Shardings{sharding});
  module.set_entry(entry);
  absl::StatusOr<std::unique_ptr<Module>> read = ParseModule(PrintModule(module));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ((*read)->meshes().size(), 1u);
  EXPECT_EQ(*(*read)->meshes()[0].second, mesh);
  EXPECT_EQ((*read)->entry()->root()->sharding().mesh, (*read)->meshes()[0].second);
  EXPECT_EQ(PrintModule(**read), PrintModule(module));
}

}  // namespace
}  // namespace gangway::hlo

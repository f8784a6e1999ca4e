// Programs on one device: launches, donation, errors.
#include <fstream>
#include <limits>
#include <string>

#include "gangway/device/cts/testing.h"

namespace gangway::device {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;

class ExecuteTest : public ConformanceTest {};
INSTANTIATE_TEST_SUITE_P(Cts, ExecuteTest, ::testing::ValuesIn(Backends()), BackendName);

constexpr absl::string_view kAddOne = R"(HloModule add_one
ENTRY e {
  p = f32[2]{0} parameter(0)
  one = f32[] constant(1)
  ones = f32[2]{0} broadcast(one), dimensions={}
  ROOT sum = f32[2]{0} add(p, ones)
})";

constexpr absl::string_view kDonates = R"(HloModule donates, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  p = f32[4096]{0} parameter(0)
  q = f32[4096]{0} parameter(1)
  ROOT sum = f32[4096]{0} add(p, q)
})";

// Hosted, so it fails where there is no gang.
std::string FailingProgram() {
  return "HloModule fails\nENTRY e {\n  p = f32[2]{0} parameter(0)\n  ROOT r = " +
         HostedCall("all_reduce", "f32[2]{0}", "f32[2]{0}", "p", "key = 1 : i64, kind = \"sum\", " + OneGroup(1)) +
         "\n}\n";
}

TEST_P(ExecuteTest, SignatureAndResults) {
  Start(1);
  auto program = Compile(R"(HloModule pair
ENTRY e {
  a = f32[2,2]{1,0} parameter(0)
  b = s32[] parameter(1)
  t = f32[2,2]{1,0} transpose(a), dimensions={1,0}
  ROOT r = (f32[2,2]{1,0}, s32[]) tuple(t, b)
})");
  ASSERT_EQ(program->outputs().size(), 2u);
  EXPECT_EQ(program->outputs()[0], (ArrayType{DType::kF32, {2, 2}}));
  EXPECT_EQ(program->outputs()[1], (ArrayType{DType::kS32, {}}));
  EXPECT_EQ(program->name(), "program_under_test");
  Execution execution = program->Execute(
      device(0), {Put<float>(0, DType::kF32, {2, 2}, {1, 2, 3, 4}), Put<int32_t>(0, DType::kS32, {}, {9})}, {});
  EXPECT_THAT(Get<float>(execution.outputs[0]), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(Get<int32_t>(execution.outputs[1]), ElementsAre(9));
  EXPECT_EQ(Outcome(execution.done), absl::OkStatus());
}

// However a compiler lays out what it folds.
TEST_P(ExecuteTest, ConstantsAreFoldedInTheirOrder) {
  Start(1);
  auto program = Compile(R"(HloModule constants
ENTRY e {
  c = f32[2,2,3]{2,1,0} constant({ { {1, 2, 3}, {4, 5, 6} }, { {7, 8, 9}, {10, 11, 12} } })
  t = f32[3,2,2]{2,1,0} transpose(c), dimensions={2,0,1}
  n = f32[3,2,2]{2,1,0} negate(t)
  m = f32[2,3]{1,0} constant({ {1, 2, 3}, {4, 5, 6} })
  i = s32[2,1]{1,0} constant({ {2}, {0} })
  g = f32[2,2]{1,0} gather(m, i), offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={2,1}
  h = f32[2,2]{1,0} negate(g)
  ROOT r = (f32[3,2,2]{2,1,0}, f32[2,2]{1,0}) tuple(n, h)
})");
  Execution execution = program->Execute(device(0), {}, {});
  EXPECT_THAT(Get<float>(execution.outputs[0]), ElementsAre(-1, -4, -7, -10, -2, -5, -8, -11, -3, -6, -9, -12));
  EXPECT_THAT(Get<float>(execution.outputs[1]), ElementsAre(-3, -1, -6, -4));
}

// A program may lay its results out as it likes.
TEST_P(ExecuteTest, NarrowResultsComeInAnyLayout) {
  Start(1);
  auto program = Compile(R"(HloModule turned, entry_computation_layout={(s4[2,2,3]{2,1,0})->s4[2,2,3]{2,0,1}}
ENTRY e {
  a = s4[2,2,3]{2,1,0} parameter(0)
  ROOT t = s4[2,2,3]{2,0,1} transpose(a), dimensions={1,0,2}
})");
  const BufferRef a = Put<int8_t>(0, DType::kS4, {2, 2, 3}, {1, -2, 3, -4, 5, -6, 7, -8, 0, -1, 2, -3});
  Execution execution = program->Execute(device(0), {a}, {});
  EXPECT_THAT(Get<int8_t>(execution.outputs[0]), ElementsAre(1, -2, 3, 7, -8, 0, -4, 5, -6, -1, 2, -3));
}

TEST_P(ExecuteTest, NotANumberIsNotLost) {
  Start(1);
  auto program = Compile(R"(HloModule extremes
max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}
min {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] minimum(a, b)
}
ENTRY e {
  p = f32[64,4]{1,0} parameter(0)
  least = f32[] constant(-inf)
  most = f32[] constant(inf)
  zero = f32[] constant(0)
  zeros = f32[64,4]{1,0} broadcast(zero), dimensions={}
  largest = f32[4]{0} reduce(p, least), dimensions={0}, to_apply=max
  smallest = f32[4]{0} reduce(p, most), dimensions={0}, to_apply=min
  positive = f32[64,4]{1,0} maximum(p, zeros)
  negative = f32[64,4]{1,0} minimum(zeros, p)
  ROOT r = (f32[4]{0}, f32[4]{0}, f32[64,4]{1,0}, f32[64,4]{1,0}) tuple(largest, smallest, positive, negative)
})");
  std::vector<float> values(256, 1.0f);
  for (int at : {0, 129, 254}) values[at] = std::numeric_limits<float>::quiet_NaN();  // columns 0, 1, 2
  Execution execution = program->Execute(device(0), {Put<float>(0, DType::kF32, {64, 4}, values)}, {});
  for (int output : {0, 1}) {
    EXPECT_THAT(Get<float>(execution.outputs[output]), ElementsAre(IsNan(), IsNan(), IsNan(), 1));
  }
  for (int output : {2, 3}) EXPECT_THAT(Get<float>(execution.outputs[output])[129], IsNan());
}

TEST_P(ExecuteTest, NoInputsAndNoOutputs) {
  Start(1);
  Execution none = Compile("HloModule none\nENTRY e {\n  ROOT r = () tuple()\n}\n")->Execute(device(0), {}, {});
  EXPECT_TRUE(none.outputs.empty());
  EXPECT_EQ(Outcome(none.done), absl::OkStatus());
}

TEST_P(ExecuteTest, OneExecutableRunsOnEveryDevice) {
  Start(4);
  auto program = Compile(kAddOne);
  std::vector<Execution> executions;
  for (int d = 0; d < 4; ++d) {
    executions.push_back(program->Execute(device(d), {Put<float>(d, DType::kF32, {2}, {1.0f * d, 0})}, {}));
  }
  for (int d = 0; d < 4; ++d) EXPECT_EQ(Get<float>(executions[d].outputs[0])[0], d + 1.0f);
}

// 40 conditionals, one in the other.
std::string NestedConditionals() {
  std::string text = "HloModule nested\ninner0 {\n  p = f32[2]{0} parameter(0)\n  ROOT s = f32[2]{0} add(p, p)\n}\n";
  for (int i = 1; i <= 40; ++i) {
    absl::StrAppend(
        &text, "other", i, " {\n  ROOT p = f32[2]{0} parameter(0)\n}\n", i == 40 ? "ENTRY e" : "",
        i == 40 ? "" : absl::StrCat("inner", i),
        " {\n  p = f32[2]{0} parameter(0)\n  f = f32[1]{0} slice(p), slice={[0:1]}\n  v = f32[] reshape(f)\n"
        "  n = f32[] constant(",
        100 + i, ")\n  less = pred[] compare(v, n), direction=LT\n  ROOT r = f32[2]{0} conditional(less, p, p), ",
        "true_computation=inner", i - 1, ", false_computation=other", i, "\n}\n");
  }
  return text;
}

TEST_P(ExecuteTest, NestedProgramsRunOnEveryDevice) {
  Start(3);
  auto program = Compile(NestedConditionals());
  for (int d = 0; d < 3; ++d) {
    Execution execution = program->Execute(device(d), {Put<float>(d, DType::kF32, {2}, {1, 2.0f * d})}, {});
    ASSERT_EQ(Outcome(execution.done), absl::OkStatus());
    EXPECT_THAT(Get<float>(execution.outputs[0]), ElementsAre(2, 4.0f * d));
  }
}

TEST_P(ExecuteTest, LaunchesThatFeedEachOtherAreQueuedWithoutWaiting) {
  Start(1);
  auto program = Compile(kAddOne);
  BufferRef value = Put<float>(0, DType::kF32, {2}, {0, 0});
  for (int i = 0; i < 200; ++i) value = program->Execute(device(0), {value}, {}).outputs[0];
  EXPECT_THAT(Get<float>(value), ElementsAre(200, 200));
}

TEST_P(ExecuteTest, ProgramsMayBeDroppedWhileQueued) {
  Start(1);
  auto program = Compile(kAddOne);
  BufferRef value = Put<float>(0, DType::kF32, {2}, {0, 0});
  for (int i = 0; i < 20; ++i) value = program->Execute(device(0), {value}, {}).outputs[0];
  program.reset();
  EXPECT_THAT(Get<float>(value), ElementsAre(20, 20));
}

TEST_P(ExecuteTest, DonatedInputsAreTakenUnlessKept) {
  Start(1);
  auto program = Compile(kDonates);
  const std::vector<float> ones(4096, 1);
  BufferRef a = Put(0, DType::kF32, {4096}, ones), b = Put(0, DType::kF32, {4096}, ones);
  ExecuteOptions keep;
  keep.keep_inputs = {0};
  Execution kept = program->Execute(device(0), {a, b}, keep);
  ASSERT_EQ(Outcome(kept.done), absl::OkStatus());
  EXPECT_FALSE(a->deleted());
  EXPECT_EQ(Get<float>(a)[5], 1);
  Execution taken = program->Execute(device(0), {a, b}, {});
  ASSERT_EQ(Outcome(taken.done), absl::OkStatus());
  EXPECT_TRUE(a->deleted());
  EXPECT_FALSE(b->deleted());
  EXPECT_EQ(Get<float>(taken.outputs[0])[5], 2);
  EXPECT_EQ(Outcome(program->Execute(device(0), {a, b}, {}).done).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(ExecuteTest, MalformedProgramsDoNotCompile) {
  Start(1);
  auto garbage = client_->Compile({"garbage", "\x12\x34not a module", 1});
  ASSERT_FALSE(garbage.ok());
  EXPECT_THAT(std::string(garbage.status().message()), HasSubstr("program garbage"));
  std::string truncated = Hlo(kAddOne);
  truncated.resize(truncated.size() / 2);
  EXPECT_FALSE(client_->Compile({"truncated", truncated, 1}).ok());
}

// A compiler that knows no way to copy packed elements into another layout says so, and goes on.
TEST_P(ExecuteTest, AProgramThatDoesNotCompileIsNotTheEnd) {
  Start(1);
  const std::string turns = Hlo(R"(HloModule turns, entry_computation_layout={(s4[2,2,3]{2,1,0})->s4[2,2,3]{2,0,1}}
ENTRY e {
  a = s4[2,2,3]{2,1,0} parameter(0)
  ROOT c = s4[2,2,3]{2,0,1} copy(a)
})");
  for (int i = 0; i < 3; ++i) {
    auto program = client_->Compile({"turns", turns, 1});
    if (program.ok()) continue;
    EXPECT_THAT(std::string(program.status().message()), HasSubstr("program turns"));
  }
  EXPECT_THAT(
      Get<float>(Compile(kAddOne)->Execute(device(0), {Put<float>(0, DType::kF32, {2}, {1, 2})}, {}).outputs[0]),
      ElementsAre(2, 3));
}

TEST_P(ExecuteTest, WrongInputsFailTheLaunchNotTheProcess) {
  Start(2);
  auto program = Compile(kAddOne);
  BufferRef good = Put<float>(0, DType::kF32, {2}, {1, 2});
  auto fails = [&](const std::vector<BufferRef>& inputs) {
    Execution execution = program->Execute(device(0), inputs, {});
    const absl::Status status = Outcome(execution.done);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("program_under_test"));
    EXPECT_EQ(Outcome(execution.outputs[0]->Ready()), status);
  };
  fails({});
  fails({good, good});
  fails({Put<float>(0, DType::kF32, {3}, {1, 2, 3})});
  fails({Put<float>(1, DType::kF32, {2}, {1, 2})});
  EXPECT_THAT(Get<float>(program->Execute(device(0), {good}, {}).outputs[0]), ElementsAre(2, 3));
}

TEST_P(ExecuteTest, AProducersErrorReachesEveryConsumer) {
  Start(1);
  auto program = Compile(kAddOne);
  auto failing = Compile(FailingProgram());
  Execution failed = failing->Execute(device(0), {Put<float>(0, DType::kF32, {2}, {1, 2})}, {});
  Execution after = program->Execute(device(0), {failed.outputs[0]}, {});
  Execution later = program->Execute(device(0), {after.outputs[0]}, {});
  float unused[2];
  for (const absl::Status& status :
       {Outcome(failed.done), Outcome(after.done), Outcome(later.done), Outcome(later.outputs[0]->ToHost(unused))}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("gang")) << status;
  }
}

// What no host has, once as a result and once as a temporary. The program after it runs.
TEST_P(ExecuteTest, MemoryThatIsNotThereIsExhausted) {
  if (GetParam().name == "sim") GTEST_SKIP() << "evaluates on the host, which it shares";
  Start(1);
  constexpr char kHuge[] =
      "HloModule huge\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT b = f32[4194304,4194304]{1,0} broadcast(p), "
      "dimensions={}\n}\n";
  constexpr char kHugeInside[] =
      "HloModule inside\nless {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), "
      "direction=LT\n}\nENTRY e {\n  p = f32[] parameter(0)\n  b = f32[17592186044416]{0} broadcast(p), "
      "dimensions={}\n  i = f32[17592186044416]{0} iota(), iota_dimension=0\n  m = f32[17592186044416]{0} cosine(i)\n"
      "  n = f32[17592186044416]{0} multiply(b, m)\n  s = f32[17592186044416]{0} sort(n), dimensions={0}, "
      "to_apply=less\n  t = f32[1]{0} slice(s), slice={[7:8]}\n  ROOT r = f32[] reshape(t)\n}\n";
  for (const char* text : {kHuge, kHugeInside}) {
    Execution execution = Compile(text)->Execute(device(0), {Put<float>(0, DType::kF32, {}, {1})}, {});
    const absl::Status status = Outcome(execution.done);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("Out of memory"));
  }
  EXPECT_THAT(
      Get<float>(Compile(kAddOne)->Execute(device(0), {Put<float>(0, DType::kF32, {2}, {1, 2})}, {}).outputs[0]),
      ElementsAre(2, 3));
}

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size, resident;
  statm >> size >> resident;
  return resident * 4096;
}

TEST_P(ExecuteTest, ManyLaunchesLeaveNothingBehind) {
  Start(1);
  auto program = Compile(kDonates);
  const std::vector<float> ones(4096, 1);
  BufferRef b = Put(0, DType::kF32, {4096}, ones);
  auto run = [&](int launches) {
    BufferRef value = Put(0, DType::kF32, {4096}, ones);
    for (int i = 0; i < launches; ++i) {
      Execution execution = program->Execute(device(0), {value, b}, {});
      value = execution.outputs[0];
      if (i % 50 == 0) {
        ASSERT_EQ(Outcome(execution.done), absl::OkStatus());
      }
    }
    ASSERT_EQ(Outcome(value->Ready()), absl::OkStatus());
  };
  run(200);
  const int64_t before = ResidentBytes();
  run(3000);
  // 3000 outputs of 16 KiB would be 48 MB.
  EXPECT_LT(ResidentBytes() - before, int64_t{8} << 20);
}

// Calls to files come with whatever types a client likes.
TEST_P(ExecuteTest, ACallToAFileOfAnotherTypeIsAnError) {
  if (GetParam().name == "sim") GTEST_SKIP() << "has no files";
  Start(1);
  for (const char* target : {"file_write", "file_commit"}) {
    const bool writes = std::string(target) == "file_write";
    const std::string text =
        absl::StrCat("HloModule calls\nENTRY e {\n  p = u8[4]{0} parameter(0)\n  n = s64[2]{0} parameter(1)\n",
                     "  ROOT r = u8[0]{0} custom-call(p, n", writes ? ", p" : "", "), custom_call_target=\"gangway.",
                     target, "\", operand_layout_constraints={u8[4]{0}, s64[2]{0}", writes ? ", u8[4]{0}" : "",
                     "}, custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI\n}\n");
    auto program = Compile(text);
    Execution execution = program->Execute(
        device(0), {Put<uint8_t>(0, DType::kU8, {4}, {0, 0, 0, 0}), Put<int64_t>(0, DType::kS64, {2}, {0, 0})}, {});
    EXPECT_THAT(std::string(Outcome(execution.done).message()), HasSubstr("gives an s32[]")) << target;
  }
}

}  // namespace
}  // namespace gangway::device

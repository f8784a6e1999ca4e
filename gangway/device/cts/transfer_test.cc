// Arrays to devices and back.
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "gangway/device/cts/testing.h"

namespace gangway::device {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TransferTest : public ConformanceTest {};
INSTANTIATE_TEST_SUITE_P(Cts, TransferTest, ::testing::ValuesIn(Backends()), BackendName);

constexpr absl::string_view kAddOne = R"(HloModule add_one
ENTRY e {
  p = f32[4]{0} parameter(0)
  one = f32[] constant(1)
  ones = f32[4]{0} broadcast(one), dimensions={}
  ROOT sum = f32[4]{0} add(p, ones)
})";

TEST_P(TransferTest, EveryElementTypeComesBackAsItWas) {
  Start(1);
  int moved = 0;
  for (const DTypeInfo& info : AllDTypes()) {
    if (!IsElement(info.dtype)) continue;
    const int width = ByteWidth(info.dtype);
    std::vector<char> data(6 * width);
    // Small non-negative bit patterns are values of every type.
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i % 2);
    auto buffer = client_->FromHost(device(0), {{info.dtype, {2, 3}}, data.data(), {}, nullptr});
    if (!buffer.ok()) {
      EXPECT_EQ(buffer.status().code(), absl::StatusCode::kUnimplemented) << info.name << buffer.status();
      continue;
    }
    ++moved;
    EXPECT_EQ((*buffer)->size_bytes(), static_cast<int64_t>(data.size())) << info.name;
    EXPECT_EQ((*buffer)->type(), (ArrayType{info.dtype, {2, 3}}));
    EXPECT_EQ(Get<char>(*buffer), data) << info.name;
  }
  EXPECT_GE(moved, 28);  // all that JAX has
}

TEST_P(TransferTest, NarrowSignedElementsKeepTheirSign) {
  Start(1);
  const std::vector<int8_t> values = {-8, -1, 0, 7, 3};
  EXPECT_EQ(Get<int8_t>(Put(0, DType::kS4, {5}, values)), values);
}

TEST_P(TransferTest, ScalarsAndEmptyArrays) {
  Start(1);
  EXPECT_THAT(Get<float>(Put<float>(0, DType::kF32, {}, {2.5f})), ElementsAre(2.5f));
  EXPECT_THAT(Get<float>(Put<float>(0, DType::kF32, {0, 3}, {})), ElementsAre());
}

TEST_P(TransferTest, StridesAreFollowed) {
  Start(1);
  const std::vector<int32_t> data = {0, 1, 2, 3, 4, 5};  // 2 x 3
  HostArray transposed{{DType::kS32, {3, 2}}, data.data(), {4, 12}, nullptr};
  EXPECT_THAT(Get<int32_t>(*client_->FromHost(device(0), transposed)), ElementsAre(0, 3, 1, 4, 2, 5));
  HostArray column{{DType::kS32, {2}}, data.data() + 1, {12}, nullptr};
  EXPECT_THAT(Get<int32_t>(*client_->FromHost(device(0), column)), ElementsAre(1, 4));
  HostArray bad{{DType::kS32, {2}}, data.data(), {4, 4}, nullptr};
  EXPECT_EQ(client_->FromHost(device(0), bad).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(TransferTest, WithoutAnOwnerTheDataIsCopiedBeforeTheCallReturns) {
  Start(1);
  std::vector<int32_t> data(1 << 16, 7);
  BufferRef buffer = Put(0, DType::kS32, {1 << 16}, data);
  std::fill(data.begin(), data.end(), 0);
  EXPECT_EQ(Get<int32_t>(buffer)[1234], 7);
}

TEST_P(TransferTest, AnOwnerIsLetGoWithTheBuffer) {
  Start(1);
  auto owner = std::make_shared<std::vector<float>>(1 << 16, 3.0f);
  std::weak_ptr<std::vector<float>> alive = owner;
  auto buffer = client_->FromHost(device(0), {{DType::kF32, {1 << 16}}, owner->data(), {}, owner});
  ASSERT_TRUE(buffer.ok());
  owner.reset();
  EXPECT_EQ(Get<float>(*buffer)[77], 3.0f);
  buffer->reset();
  for (int i = 0; i < 1000 && !alive.expired(); ++i) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(alive.expired());
}

TEST_P(TransferTest, ViewShowsTheBytesInPlace) {
  Start(1);
  BufferRef buffer = Put<float>(0, DType::kF32, {2}, {1, 2});
  auto view = buffer->View().Await(absl::Now() + kDeadline, "the view");
  ASSERT_TRUE(view.ok()) << view.status();
  ASSERT_EQ(view->size(), 8u);
  float values[2];
  std::memcpy(values, view->data(), 8);
  EXPECT_THAT(values, ElementsAre(1, 2));
}

TEST_P(TransferTest, CopiesGoToOtherDevicesAlsoOfWhatIsNotThereYet) {
  Start(3);
  auto add_one = Compile(kAddOne);
  BufferRef in = Put<float>(0, DType::kF32, {4}, {1, 2, 3, 4});
  Execution first = add_one->Execute(device(0), {in}, {});
  BufferRef copy = first.outputs[0]->CopyTo(device(2));
  EXPECT_EQ(&copy->device(), &device(2));
  Execution second = add_one->Execute(device(2), {copy}, {});
  EXPECT_THAT(Get<float>(second.outputs[0]), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(Get<float>(in->CopyTo(device(1))), ElementsAre(1, 2, 3, 4));
}

TEST_P(TransferTest, DeletedBuffersAreGoneButQueuedLaunchesStillSeeThem) {
  Start(1);
  auto add_one = Compile(kAddOne);
  BufferRef in = Put<float>(0, DType::kF32, {4}, {1, 2, 3, 4});
  EXPECT_FALSE(in->deleted());
  std::vector<Execution> queued;
  for (int i = 0; i < 10; ++i) queued.push_back(add_one->Execute(device(0), {in}, {}));
  in->Delete();
  EXPECT_TRUE(in->deleted());
  for (Execution& execution : queued) EXPECT_THAT(Get<float>(execution.outputs[0]), ElementsAre(2, 3, 4, 5));
  float unused[4];
  EXPECT_EQ(Outcome(in->ToHost(unused)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Outcome(in->CopyTo(device(0))->Ready()).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Outcome(add_one->Execute(device(0), {in}, {}).done).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(TransferTest, OutputsCanBeDeletedBeforeTheyExist) {
  Start(1);
  auto add_one = Compile(kAddOne);
  Execution execution = add_one->Execute(device(0), {Put<float>(0, DType::kF32, {4}, {1, 2, 3, 4})}, {});
  execution.outputs[0]->Delete();
  EXPECT_EQ(Outcome(execution.done), absl::OkStatus());
}

}  // namespace
}  // namespace gangway::device

// The program API's C++ client against a server with one worker and a PJRT plugin.
#include "gangway/client/client.h"

#include <grpcpp/grpcpp.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gangway/v1/program_service.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/hand_made.h"
#include "tests/runtime/served_cluster.h"

namespace gangway::client {
namespace {

using testing::HasSubstr;

constexpr int kDevices = 4;
constexpr absl::Duration kLong = absl::Seconds(60);

// Whether x < 3.
constexpr char kBelowThree[] = R"(HloModule below_three, entry_computation_layout={(f32[])->pred[]}

ENTRY %main (x: f32[]) -> pred[] {
  %x = f32[] parameter(0)
  %three = f32[] constant(3)
  ROOT %y = pred[] compare(%x, %three), direction=LT
}
)";

// Of 4 TiB.
constexpr char kHuge[] = R"(HloModule huge, entry_computation_layout={(f32[])->f32[1048576,1048576]{1,0}}

ENTRY %main (x: f32[]) -> f32[1048576,1048576] {
  %x = f32[] parameter(0)
  ROOT %y = f32[1048576,1048576]{1,0} broadcast(%x), dimensions={}
}
)";

class ClientTest : public testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddWorkerThread("w0", kDevices);
    ASSERT_TRUE(cluster_.WaitForDevices(kDevices));
  }
  static absl::StatusOr<float> Read(const Array& array) {
    auto value = array.Fetch().Await(absl::Now() + kLong, "a value");
    if (!value.ok()) return value.status();
    return value->values<float>()[0];
  }
  // Waits until the server knows that many arrays.
  bool ArraysBecome(int64_t count) {
    for (int i = 0; i < 500; ++i) {
      if (cluster_.Stats().arrays == count) return true;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return false;
  }

  ServedCluster cluster_;
};

TEST_F(ClientTest, FunctionsRunOneByOneAndChained) {
  auto client = cluster_.Connect("test");
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(client->num_devices(), kDevices);
  auto slice = client->MakeSlice({.devices = kDevices, .island = {}, .policy = ""});
  ASSERT_TRUE(slice.ok()) << slice.status();
  auto step = client->Compile(AllReduceAddOne(kDevices), *slice);  // x -> 4 x + 1
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->name(), "all_reduce_add_one");
  auto x = step->Put(Literal::Scalar(DType::kF32, 1.0f), 0);
  ASSERT_TRUE(x.ok());
  auto once = step->Call({*x});
  ASSERT_TRUE(once.ok());
  EXPECT_EQ(*Read((*once)[0]), 5);

  ProgramBuilder builder(1);
  Value value = builder.input(0);
  for (int i = 0; i < 3; ++i) value = (*builder.Call(*step, {value}))[0];
  builder.Return({value, builder.input(0)});
  auto chain = client->Define(builder);
  ASSERT_TRUE(chain.ok()) << chain.status();
  for (Dispatch dispatch : {Dispatch::kParallel, Dispatch::kSequential}) {
    auto results = chain->Run({*x}, dispatch);
    ASSERT_TRUE(results.ok());
    EXPECT_EQ(*Read((*results)[0]), 85);
    EXPECT_EQ(*Read((*results)[1]), 1);
    EXPECT_TRUE((*results)[0].Ready().Await(absl::Now() + kLong, "ready").ok());
  }
  // Only x and the one call's result are still held; told along with a request.
  ASSERT_TRUE(client->MakeSlice({.devices = 1, .island = {}, .policy = ""}).ok());
  EXPECT_TRUE(ArraysBecome(2));
}

TEST_F(ClientTest, ArgumentsMayLieAnywhereAndSlicesGoBack) {
  auto client = cluster_.Connect("test");
  ASSERT_TRUE(client.ok());
  const SliceRequest alone = {.devices = kDevices / 2, .island = {}, .policy = "first_fit"};
  auto here = client->MakeSlice(alone), there = client->MakeSlice(alone);
  ASSERT_TRUE(here.ok() && there.ok()) << here.status() << there.status();
  EXPECT_FALSE(client->MakeSlice(alone).ok());
  auto step = client->Compile(AllReduceAddOne(kDevices / 2), *here);  // x -> kDevices / 2 x + 1
  auto far = client->Compile(AllReduceAddOne(kDevices / 2), *there);
  ASSERT_TRUE(step.ok() && far.ok()) << step.status() << far.status();
  auto x = step->Put(Literal::Scalar(DType::kF32, 1.0f), 0);
  auto y = far->Call({(*step->Call({*x}))[0]});
  ASSERT_TRUE(y.ok());
  const float half = kDevices / 2;
  EXPECT_EQ(*Read((*y)[0]), half * (half + 1) + 1);
  EXPECT_EQ(client->FreeSlice(*here), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(client->FreeSlice(*here)));
  EXPECT_EQ(*client->MakeSlice(alone), *here);
  EXPECT_EQ(*Read((*step->Call({*x}))[0]), half + 1) << "what was compiled goes on";
}

TEST_F(ClientTest, DeviceValuesDecide) {
  auto client = cluster_.Connect("test");
  ASSERT_TRUE(client.ok());
  auto pair = client->MakeSlice({.devices = 1, .island = {}, .policy = ""});
  auto step = client->Compile(AllReduceAddOne(1), *pair);  // x -> x + 1
  auto below = client->Compile(kBelowThree, *pair);
  ASSERT_TRUE(step.ok() && below.ok()) << step.status() << below.status();

  ProgramBuilder builder(1);
  const Value x = builder.input(0);
  auto add_one = [&](ProgramBuilder inner) {
    inner.Return(*inner.Call(*step, {inner.input(0)}));
    return inner;
  };
  ProgramBuilder condition = builder.Inner({x}), same = builder.Inner({x});
  condition.Return(*condition.Call(*below, {condition.input(0)}));
  same.Return({same.input(0)});
  auto top = builder.While(condition, add_one(builder.Inner({x})), {x});
  ASSERT_TRUE(top.ok()) << top.status();
  auto is_below = builder.Call(*below, {x});
  auto last = builder.Cond((*is_below)[0], add_one(builder.Inner(*top)), same, *top);
  ASSERT_TRUE(last.ok()) << last.status();
  builder.Return(*last);
  auto program = client->Define(builder);
  ASSERT_TRUE(program.ok()) << program.status();
  for (auto [from, to] : {std::pair(0.0f, 4.0f), std::pair(7.0f, 7.0f)}) {
    auto results = program->Run({*step->Put(Literal::Scalar(DType::kF32, from), 0)});
    ASSERT_TRUE(results.ok());
    EXPECT_EQ(*Read((*results)[0]), to);
  }
}

TEST_F(ClientTest, MistakesAreNamed) {
  auto client = cluster_.Connect("test");
  ASSERT_TRUE(client.ok());
  EXPECT_THAT(std::string(client->MakeSlice({.devices = 99, .island = {}, .policy = ""}).status().message()),
              HasSubstr("no island has 99"));
  const Slice one = {{0}};
  EXPECT_FALSE(client->Compile("nonsense", one).ok());
  auto step = client->Compile(AllReduceAddOne(1), one);
  ASSERT_TRUE(step.ok());
  EXPECT_THAT(std::string(step->Put(Literal::Scalar(DType::kS32, 1), 0).status().message()), HasSubstr("got s32[]"));
  EXPECT_FALSE(step->Put(Literal::Scalar(DType::kF32, 1.0f), 1).ok());
  EXPECT_THAT(std::string(step->Call({}).status().message()), HasSubstr("takes 1 arguments, got 0"));
  ProgramBuilder builder(1);
  EXPECT_THAT(std::string(builder.Call(*step, {Value{5}}).status().message()), HasSubstr("value 5 is none"));
  // Neither the device nor a message holds it; the server does not even try.
  auto huge = client->Compile(kHuge, one);
  ASSERT_TRUE(huge.ok()) << huge.status();
  auto results = huge->Call({*step->Put(Literal::Scalar(DType::kF32, 1.0f), 0)});
  ASSERT_TRUE(results.ok());
  EXPECT_THAT(std::string(Read((*results)[0]).status().message()), HasSubstr("no message holds so much"));
  // A server that goes away is an error of what waits, and of what comes after.
  auto x = step->Put(Literal::Scalar(DType::kF32, 1.0f), 0);
  cluster_.StopServing();
  EXPECT_THAT(std::string(Read(*x).status().message()), HasSubstr("connection to the server broke"));
  ConnectOptions nowhere;
  nowhere.address = cluster_.address();
  nowhere.timeout = absl::Milliseconds(100);
  EXPECT_THAT(std::string(Client::Connect(nowhere).status().message()), HasSubstr("no Gangway server answers"));
}

// What a stream says that sends this, if anything, and how it ends.
std::pair<std::vector<v1::Response>, grpc::Status> Stream(const std::string& address,
                                                          const std::optional<v1::Request>& request) {
  auto stub = v1::Gangway::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  auto stream = stub->Session(&context);
  if (request.has_value()) stream->Write(*request);
  std::vector<v1::Response> responses;
  v1::Response response;
  while (stream->Read(&response)) responses.push_back(response);
  return {std::move(responses), stream->Finish()};
}

// Two places, taken by those who say nothing, ask before they open, or show a wrong token.
TEST(PlacesTest, NobodyKeepsOneWithoutBeingLetIn) {
  controller::ControllerOptions options;
  options.tenants = *controller::TenantTable::Make({{.name = "red", .token = "secret"}});
  ServedCluster cluster(options, {.max_sessions = 2, .open_within = absl::Milliseconds(200)});
  v1::Request open, wait;
  open.mutable_open()->set_token("guessed");
  wait.mutable_wait();
  for (int round = 0; round < 3; ++round) {
    std::thread other([&] { EXPECT_FALSE(Stream(cluster.address(), std::nullopt).second.ok()); });
    EXPECT_FALSE(Stream(cluster.address(), std::nullopt).second.ok());
    other.join();
    const auto [refused, end] = Stream(cluster.address(), open);
    ASSERT_EQ(refused.size(), 1);
    EXPECT_EQ(refused[0].code(), static_cast<int>(absl::StatusCode::kPermissionDenied));
    const auto [early, its_end] = Stream(cluster.address(), wait);
    ASSERT_EQ(early.size(), 1);
    EXPECT_THAT(early[0].message(), HasSubstr("the first request must open the session"));
  }
  EXPECT_TRUE(
      Client::Connect({.address = cluster.address(), .name = "a client", .tenant = "", .token = "secret"}).ok());
}

}  // namespace
}  // namespace gangway::client

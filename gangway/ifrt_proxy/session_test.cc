#include "gangway/ifrt_proxy/session.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gangway/ifrt_proxy/fake_controller.h"
#include "gangway/ifrt_proxy/protocol.h"
#include "gangway/ifrt_proxy/sealed_program.h"
#include "gangway/ifrt_proxy/string_arrays.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla/python/ifrt/sharding_serdes.pb.h"
#include "xla/python/ifrt_proxy/common/array_util.pb.h"
#include "xla/python/pjrt_ifrt/xla_compiler.pb.h"

namespace gangway::ifrt_proxy {
namespace {

using ::testing::HasSubstr;

xla::ifrt::ShardingProto OnDevice(int device) {
  xla::ifrt::SingleDeviceShardingProto single;
  single.set_device_id(device);
  xla::ifrt::ShardingProto sharding;
  sharding.mutable_serialized_sharding()->set_type_name("xla::ifrt::SingleDeviceSharding");
  sharding.mutable_serialized_sharding()->set_data(single.SerializeAsString());
  return sharding;
}

class SessionTest : public testing::Test {
 protected:
  SessionTest() { session_->Open(); }
  ~SessionTest() override {
    session_->Close();
    EXPECT_EQ(controller_.Stats().sessions, 0);
    EXPECT_EQ(controller_.Stats().arrays, 0);  // whatever a test did, nothing is left behind
  }

  uint64_t Send(IfrtRequest request) {
    request.mutable_request_metadata()->set_op_id(++operation_);
    session_->Handle(std::make_unique<IfrtRequest>(std::move(request)));
    return operation_;
  }
  // The response to an operation; fails when there is not exactly one.
  IfrtResponse ResponseTo(uint64_t operation) {
    std::vector<IfrtResponse> found;
    for (const IfrtResponse& response : responses_) {
      if (response.response_metadata().op_id() == operation) found.push_back(response);
    }
    EXPECT_EQ(found.size(), 1u) << "operation " << operation;
    return found.empty() ? IfrtResponse() : found[0];
  }
  IfrtResponse Call(IfrtRequest request) { return ResponseTo(Send(std::move(request))); }

  IfrtRequest MakeArrayRequest(uint64_t handle, uint64_t buffer, std::vector<int64_t> dims) {
    IfrtRequest request;
    auto* make = request.mutable_make_array_from_host_buffer_request();
    *make->mutable_dtype() = ToProto(DType::kS8);
    for (int64_t dim : dims) make->mutable_shape()->add_dims(dim);
    *make->mutable_sharding() = OnDevice(0);
    make->set_host_buffer_handle(buffer);
    make->set_array_handle(handle);
    return request;
  }
  void MakeArray(uint64_t handle, std::string bytes) {
    int64_t size = static_cast<int64_t>(bytes.size());
    ASSERT_TRUE(buffers_->Store(1000 + handle, std::make_shared<const std::string>(std::move(bytes))).ok());
    EXPECT_EQ(Call(MakeArrayRequest(handle, 1000 + handle, {size})).response_metadata().status().code(), 0);
  }
  IfrtResponse CopyToHost(uint64_t handle, uint64_t buffer) {
    IfrtRequest request;
    request.mutable_copy_to_host_buffer_request()->set_array_handle(handle);
    request.mutable_copy_to_host_buffer_request()->set_host_buffer_handle(buffer);
    return Call(std::move(request));
  }

  // From here on the test is of a session with those bounds.
  void Reopen(const SessionBounds& bounds) {
    session_->Close();
    Session::Options options = OptionsOf(7, kKey);
    options.bounds = bounds;
    buffers_ = std::make_shared<HostBuffers>(1 << 20);
    session_ = std::make_shared<Session>(controller_, clock_, buffers_, options, [this](IfrtResponse response, bool) {
      responses_.push_back(std::move(response));
    });
    session_->Open();
  }

  static constexpr uint64_t kKey = 1234567;
  static Session::Options OptionsOf(uint64_t number, uint64_t key) {
    Session::Options options;
    options.session_id = number;
    options.key = key;
    return options;
  }

  InlineExecutor loop_;
  ManualClock clock_;
  FakeController controller_{8, loop_};
  std::shared_ptr<HostBuffers> buffers_ = std::make_shared<HostBuffers>(1 << 20);
  std::vector<IfrtResponse> responses_;
  std::shared_ptr<Session> session_ =
      std::make_shared<Session>(controller_, clock_, buffers_, OptionsOf(7, kKey),
                                [this](IfrtResponse response, bool) { responses_.push_back(std::move(response)); });
  uint64_t operation_ = 0;
};

TEST_F(SessionTest, InitListsDevicesWithDefaultMemories) {
  IfrtRequest request;
  request.mutable_init_request();
  IfrtResponse response = Call(request);
  const auto& init = response.init_response();
  EXPECT_EQ(init.session_id(), kKey);
  EXPECT_EQ(init.platform_name(), "cpu");
  ASSERT_EQ(init.all_devices_size(), 8);
  for (const auto& device : init.all_devices()) {
    ASSERT_EQ(device.memory_ids_size(), 3);
    EXPECT_EQ(device.default_memory_id(), device.memory_ids(0));
  }
  EXPECT_EQ(init.memories_size(), 24);
}

TEST_F(SessionTest, ArrayGoesInAndOut) {
  MakeArray(5, "hello");
  EXPECT_EQ(CopyToHost(5, 77).response_case(), IfrtResponse::kCopyToHostBufferResponse);
  EXPECT_EQ(**buffers_->Take(77), "hello");
}

TEST_F(SessionTest, ASmallValueThatIsStillMadeIsAnsweredForAtOnce) {
  MakeArray(5, "hello");
  for (const absl::Status& outcome : {absl::OkStatus(), absl::UnavailableError("worker w1 is lost")}) {
    controller_.fetched.emplace();
    const uint64_t buffer = outcome.ok() ? 77 : 78;
    EXPECT_EQ(CopyToHost(5, buffer).response_case(), IfrtResponse::kCopyToHostBufferResponse);
    EXPECT_FALSE(buffers_->Contains(buffer));
    if (outcome.ok()) {
      controller_.fetched->Set(std::make_shared<const std::string>("hello"));
      EXPECT_EQ(**buffers_->Peek(buffer), "hello");
    } else {
      controller_.fetched->Set(outcome);
      EXPECT_EQ(buffers_->Peek(buffer).status(), outcome);
    }
  }
}

TEST_F(SessionTest, ALargeValueIsAnsweredForWhenItIsThere) {
  MakeArray(5, std::string(1 << 19, 'x'));
  controller_.fetched.emplace();
  IfrtRequest request;
  request.mutable_copy_to_host_buffer_request()->set_array_handle(5);
  request.mutable_copy_to_host_buffer_request()->set_host_buffer_handle(77);
  const size_t before = responses_.size();
  const uint64_t read = Send(std::move(request));
  EXPECT_EQ(responses_.size(), before);
  controller_.fetched->Set(absl::UnavailableError("worker w1 is lost"));
  EXPECT_EQ(ResponseTo(read).response_metadata().status().message(), "worker w1 is lost");
}

TEST_F(SessionTest, RequestsWaitForTheirHostBufferInOrder) {
  uint64_t make = Send(MakeArrayRequest(5, 9, {2}));
  IfrtRequest deleted;
  deleted.mutable_is_array_deleted_request()->set_array_handle(5);
  uint64_t ask = Send(deleted);
  EXPECT_TRUE(responses_.empty());
  ASSERT_TRUE(buffers_->Store(9, std::make_shared<const std::string>("ab")).ok());
  EXPECT_EQ(ResponseTo(make).response_metadata().status().code(), 0);
  EXPECT_FALSE(ResponseTo(ask).is_array_deleted_response().deleted());
}

TEST_F(SessionTest, AHostBufferThatNeverComesFailsItsRequestOnly) {
  uint64_t make = Send(MakeArrayRequest(5, 9, {2}));
  clock_.Advance(absl::Minutes(1));
  session_->ExpireWait(clock_.Now());
  EXPECT_TRUE(responses_.empty());
  clock_.Advance(absl::Minutes(2));
  session_->ExpireWait(clock_.Now());
  EXPECT_EQ(ResponseTo(make).response_metadata().status().code(), tensorflow::error::DEADLINE_EXCEEDED);
  // The array's name is known, and carries the error.
  EXPECT_EQ(CopyToHost(5, 78).response_metadata().status().code(), tensorflow::error::DEADLINE_EXCEEDED);
  MakeArray(6, "x");
}

TEST_F(SessionTest, WrongSizesAndUnknownHandlesAreNamed) {
  ASSERT_TRUE(buffers_->Store(9, std::make_shared<const std::string>("abc")).ok());
  IfrtResponse response = Call(MakeArrayRequest(5, 9, {2}));
  EXPECT_EQ(response.response_metadata().status().message(), "host buffer 9 has 3 bytes, s8[2] takes 2");
  response = CopyToHost(1234, 79);
  EXPECT_EQ(response.response_metadata().status().code(), tensorflow::error::NOT_FOUND);
  EXPECT_EQ(response.response_metadata().status().message(), "session 7: no array with handle 1234");
  EXPECT_EQ(response.response_case(), IfrtResponse::RESPONSE_NOT_SET);
}

TEST_F(SessionTest, UnservedRequestsAreRefusedByName) {
  IfrtRequest request;
  request.mutable_loaded_executable_mpmd_metadata_request();
  IfrtResponse response = Call(request);
  EXPECT_EQ(response.response_metadata().status().code(), tensorflow::error::UNIMPLEMENTED);
  EXPECT_EQ(response.response_metadata().status().message(),
            "gangway does not serve loaded_executable_mpmd_metadata_request");
  EXPECT_EQ(response.response_case(), IfrtResponse::RESPONSE_NOT_SET);
  Call(IfrtRequest());  // without a case: answered as well
}

TEST(ReplyTest, WhatNoMessageHoldsIsAnError) {
  std::vector<IfrtResponse> sent;
  IfrtRequest request;
  request.mutable_request_metadata()->set_op_id(3);
  auto answers = std::make_shared<Reply::Answers>(
      Reply::Answers{[&](IfrtResponse response, bool) { sent.push_back(std::move(response)); }});
  const Reply reply(answers, request);
  IfrtResponse response;
  response.mutable_response_metadata()->mutable_status()->set_message(std::string(size_t{1} << 31, 'x'));
  reply.Send(std::move(response));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(answers->due, 0);
  EXPECT_EQ(sent[0].response_metadata().op_id(), 3);
  EXPECT_EQ(sent[0].response_metadata().status().code(), tensorflow::error::RESOURCE_EXHAUSTED);
  EXPECT_THAT(sent[0].response_metadata().status().message(), HasSubstr("an answer of 21474836"));
}

TEST_F(SessionTest, WhatARefusedRequestShouldHaveMadeSaysWhyItIsNot) {
  MakeArray(1, "ab");
  IfrtRequest request;
  auto* reshard = request.mutable_reshard_arrays_request();  // this controller does not
  reshard->add_array_handles(1);
  reshard->add_result_handles(11);
  auto* spec = reshard->add_array_specs();
  *spec->mutable_dtype() = ToProto(DType::kS8);
  spec->mutable_shape()->add_dims(2);
  *spec->mutable_sharding() = OnDevice(0);
  EXPECT_EQ(Call(request).response_metadata().status().code(), tensorflow::error::UNIMPLEMENTED);
  EXPECT_EQ(CopyToHost(11, 78).response_metadata().status().code(), tensorflow::error::UNIMPLEMENTED);
}

TEST_F(SessionTest, RequestsWhoseAnswersWaitAreBounded) {
  Reopen({.unanswered = 3});
  MakeArray(5, "hello");
  controller_.fetched.emplace();
  std::vector<uint64_t> waiting;
  const std::string big(1 << 17, 'x');  // too large to be promised
  MakeArray(6, big);
  auto read = [&](uint64_t buffer) {
    IfrtRequest request;
    request.mutable_copy_to_host_buffer_request()->set_array_handle(6);
    request.mutable_copy_to_host_buffer_request()->set_host_buffer_handle(buffer);
    return Send(std::move(request));
  };
  for (uint64_t buffer : {71, 72, 73}) waiting.push_back(read(buffer));
  const std::string refused = ResponseTo(read(74)).response_metadata().status().message();
  EXPECT_THAT(refused, HasSubstr("session 7: already 3 requests wait for their answers"));
  MakeArray(8, "others are served");
  IfrtRequest drop;
  drop.mutable_destruct_array_request()->add_array_handle(8);
  EXPECT_EQ(Call(drop).response_metadata().status().code(), 0) << "what lets go above all";
  controller_.fetched->Set(std::make_shared<const std::string>(big));
  for (uint64_t operation : waiting) EXPECT_EQ(ResponseTo(operation).response_metadata().status().code(), 0);
  controller_.fetched.reset();
  EXPECT_EQ(CopyToHost(5, 75).response_metadata().status().code(), 0);
}

TEST_F(SessionTest, FuturesThatNobodyAsksForAreBounded) {
  Reopen({.futures = 2});
  std::vector<uint64_t> futures;
  for (uint64_t handle : {5, 6, 7}) {
    MakeArray(handle, "hello");
    IfrtRequest request;
    request.mutable_delete_array_request()->add_array_handle(handle);
    futures.push_back(Call(request).delete_array_response().deletion_future_handle());
  }
  auto check = [&](uint64_t future) {
    IfrtRequest request;
    request.mutable_check_future_request()->set_future_handle(future);
    return Call(request).response_metadata().status();
  };
  EXPECT_EQ(check(futures[0]).code(), 0);
  EXPECT_EQ(check(futures[1]).code(), 0);
  EXPECT_EQ(check(futures[2]).code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(check(futures[2]).message(), HasSubstr("already 2 futures that nobody asks for"));
}

TEST_F(SessionTest, WhereNoErrorCanBeKeptItsHandleStillSaysWhy) {
  controller_.error_arrays = 0;
  ASSERT_TRUE(buffers_->Store(1000, std::make_shared<const std::string>("abc")).ok());
  EXPECT_NE(Call(MakeArrayRequest(8, 1000, {4})).response_metadata().status().code(), 0);
  const auto status = CopyToHost(8, 77).response_metadata().status();
  EXPECT_EQ(status.code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(status.message(), HasSubstr("no array with handle 8; there was no room for all: no room for error"));
}

TEST_F(SessionTest, RemapByDevices) {
  MakeArray(1, "ab");
  IfrtRequest request;
  auto* remap = request.mutable_remap_arrays_request();
  remap->add_array_handles(1);
  remap->add_result_handles(2);
  auto* spec = remap->mutable_plan()->add_output_specs();
  *spec->mutable_dtype() = ToProto(DType::kS8);
  spec->mutable_shape()->add_dims(2);
  *spec->mutable_sharding() = OnDevice(0);
  auto* made = remap->mutable_plan()->add_input_devices_for_output();
  auto* source = made->add_input_devices();
  source->mutable_device_list()->add_device_ids(0);
  EXPECT_EQ(Call(request).response_metadata().status().code(), 0);
  EXPECT_EQ(CopyToHost(2, 78).response_metadata().status().code(), 0);
  source->mutable_device_list()->set_device_ids(0, 5);
  IfrtResponse response = Call(request);
  EXPECT_EQ(response.response_metadata().status().message(), "remap plan: an array has no shard on device 5");
}

TEST_F(SessionTest, RemapPlansStayInsideTheirArrays) {
  MakeArray(1, "ab");
  IfrtRequest request;
  auto* remap = request.mutable_remap_arrays_request();
  remap->add_array_handles(1);
  auto* spec = remap->mutable_plan()->add_output_specs();
  *spec->mutable_dtype() = ToProto(DType::kS8);
  spec->mutable_shape()->add_dims(2);
  *spec->mutable_sharding() = OnDevice(0);
  auto* mapping = remap->mutable_plan()->add_mappings();
  const auto add = [&](int64_t start, int64_t end, int64_t step) {
    mapping->add_from_start(start), mapping->add_to_start(start);
    mapping->add_from_end(end), mapping->add_to_end(end);
    mapping->add_from_step(step), mapping->add_to_step(step);
  };
  // The step behind the last shard is no shard, however large it is.
  add(0, 1, INT64_MAX);
  EXPECT_EQ(Call(request).response_metadata().status().message(), "");
  add(0, 1, 1);
  EXPECT_EQ(Call(request).response_metadata().status().message(), "remap plan: more than 1 shards of one array");
}

TEST_F(SessionTest, WhatAFailedRequestHasMadeIsLetGo) {
  MakeArray(1, "a");
  MakeArray(2, "b");
  const int64_t arrays = controller_.Stats().arrays;
  controller_.copies = 1;
  IfrtRequest request;
  for (uint64_t handle : {1, 2}) request.mutable_copy_arrays_request()->add_array_handles(handle);
  EXPECT_EQ(Call(request).response_metadata().status().code(), tensorflow::error::RESOURCE_EXHAUSTED);
  EXPECT_EQ(controller_.Stats().arrays, arrays);
}

// Clients send and read strings as one message, whose fields are the elements.
std::string Strings(const std::vector<std::string>& strings) {
  xla::ifrt::proto::StringArrayContents contents;
  for (const std::string& string : strings) contents.add_strings(string);
  return contents.SerializeAsString();
}

TEST_F(SessionTest, StringsGoInAndOutWhateverTheirLengths) {
  for (uint64_t handle : {1, 2}) {
    const std::string text = Strings({handle == 1 ? "a" : "", "a longer one"});
    ASSERT_TRUE(buffers_->Store(9, std::make_shared<const std::string>(text)).ok());
    IfrtRequest request = MakeArrayRequest(handle, 9, {1, 2});
    auto* make = request.mutable_make_array_from_host_buffer_request();
    make->mutable_dtype()->set_kind(xla::ifrt::DTypeProto::KIND_STRING);
    *make->mutable_sharding() = OnDevice(static_cast<int>(handle));
    EXPECT_EQ(Call(request).response_metadata().status().message(), "");
    EXPECT_EQ(CopyToHost(handle, 70 + handle).response_metadata().status().message(), "");
    EXPECT_EQ(**buffers_->Take(70 + handle), text);
  }
  IfrtRequest request;
  auto* join = request.mutable_assemble_array_from_single_device_arrays_request();
  join->mutable_dtype()->set_kind(xla::ifrt::DTypeProto::KIND_STRING);
  for (int64_t dim : {2, 2}) join->mutable_shape()->add_dims(dim);
  xla::ifrt::ConcreteEvenShardingProto halves;
  for (int device : {1, 2}) halves.mutable_devices()->add_device_ids(device);
  for (int64_t dim : {1, 2}) halves.mutable_shard_shape()->add_dims(dim);
  join->mutable_sharding()->mutable_serialized_sharding()->set_type_name("xla::ifrt::ConcreteEvenSharding");
  join->mutable_sharding()->mutable_serialized_sharding()->set_data(halves.SerializeAsString());
  for (uint64_t part : {1, 2}) join->add_single_device_array_handles(part);
  join->set_result_handle(3);
  EXPECT_EQ(Call(request).response_metadata().status().message(), "");
  EXPECT_THAT(CopyToHost(3, 80).response_metadata().status().message(), HasSubstr("fully replicated"));
  IfrtRequest apart;
  apart.mutable_disassemble_into_single_device_arrays_request()->set_array_handle(3);
  for (uint64_t handle : {4, 5}) {
    apart.mutable_disassemble_into_single_device_arrays_request()->add_result_handles(handle);
  }
  Call(apart);
  EXPECT_EQ(CopyToHost(5, 81).response_metadata().status().message(), "");
  EXPECT_EQ(**buffers_->Take(81), Strings({"", "a longer one"}));
}

TEST_F(SessionTest, WhatAreNotThatManyStringsIsRefused) {
  for (const std::string& bytes : {Strings({"one"}), std::string("\xff")}) {
    ASSERT_TRUE(buffers_->Store(9, std::make_shared<const std::string>(bytes)).ok());
    IfrtRequest request = MakeArrayRequest(1, 9, {2});
    request.mutable_make_array_from_host_buffer_request()->mutable_dtype()->set_kind(
        xla::ifrt::DTypeProto::KIND_STRING);
    EXPECT_THAT(Call(request).response_metadata().status().message(), HasSubstr("strings"));
    EXPECT_THAT(CopyToHost(1, 70).response_metadata().status().message(), HasSubstr("strings"));
  }
}

// Its length alone tells: the bytes are not looked at.
TEST(StringArrays, NoMessageIsLongerThanTwoGigabytes) {
  for (size_t size : {size_t{1} << 31, (size_t{1} << 32) + 1}) {
    EXPECT_THAT(CheckStrings(absl::string_view("", size), {1}).message(), HasSubstr("that are no strings"));
  }
}

class ExecutableTest : public SessionTest {
 protected:
  IfrtRequest CompileRequest() {
    IfrtRequest request;
    auto* compile = request.mutable_compile_request();
    compile->mutable_program()->set_type_name("xla::ifrt::XlaProgram");
    compile->mutable_program()->set_data("artifact");
    xla::ifrt::XlaCompileOptionsProto options;
    auto* build = options.mutable_compile_options()->mutable_executable_build_options();
    for (int device : {3, 1})
      build->mutable_device_assignment()->add_computation_devices()->add_replica_device_ids(device);
    build->add_allow_spmd_sharding_propagation_to_output(true);
    compile->mutable_compile_options()->set_type_name("xla::ifrt::XlaCompileOptions");
    compile->mutable_compile_options()->set_data(options.SerializeAsString());
    return request;
  }
  std::shared_ptr<const controller::Program> TwoDeviceProgram() {
    auto mesh = std::make_shared<const Mesh>(*Mesh::Make({{"x", 2}}));
    auto program = std::make_shared<controller::Program>();
    program->devices = {controller::DeviceId(3), controller::DeviceId(1)};
    program->compiled.name = "jit_f";
    Sharding split = Sharding::Replicated(mesh, 1);
    split.dims[0].axes = {FullAxis(*mesh, 0)};
    program->compiled.parameters = {{Shape(DType::kS8, {4}), split, "", {}}};
    program->compiled.outputs = {{Shape(DType::kS8, {4}), split, "", {}}};
    program->compiled.donation = {compile::Donation::kMayAlias};
    return program;
  }
  uint64_t Compile() {
    controller_.program.Set(TwoDeviceProgram());
    return Call(CompileRequest()).compile_response().loaded_executable_handle();
  }
  IfrtRequest ExecuteRequest(uint64_t executable, std::vector<uint64_t> arguments, std::vector<uint64_t> results) {
    IfrtRequest request;
    auto* execute = request.mutable_loaded_executable_execute_request();
    execute->set_loaded_executable_handle(executable);
    for (uint64_t handle : arguments) execute->add_args_handles(handle);
    for (uint64_t handle : results) execute->add_result_array_handle(handle);
    return request;
  }
};

TEST_F(ExecutableTest, CompileAnswersWhenCompiledAndKeepsTheAssignmentsOrder) {
  uint64_t operation = Send(CompileRequest());
  EXPECT_TRUE(responses_.empty());
  controller_.program.Set(TwoDeviceProgram());
  IfrtResponse response = ResponseTo(operation);
  EXPECT_EQ(response.compile_response().name(), "jit_f");
  EXPECT_EQ(response.compile_response().device_ids(0), 3);
  EXPECT_EQ(controller_.compile_request.devices[0], controller::DeviceId(3));
  EXPECT_TRUE(controller_.compile_request.options.propagate_to_output.at(0));
}

TEST_F(ExecutableTest, WithoutAnAssignmentItIsForTheFirstDevice) {
  IfrtRequest request = CompileRequest();
  xla::ifrt::XlaCompileOptionsProto options;
  // Present and empty, as JAX's default options are.
  options.mutable_compile_options()->mutable_executable_build_options()->mutable_device_assignment();
  request.mutable_compile_request()->mutable_compile_options()->set_data(options.SerializeAsString());
  controller_.program.Set(TwoDeviceProgram());
  Call(request);
  ASSERT_EQ(controller_.compile_request.devices.size(), 1);
  EXPECT_EQ(controller_.compile_request.devices[0], controller::DeviceId(0));
}

TEST_F(ExecutableTest, OtherKindsOfProgramsAreRefused) {
  IfrtRequest request = CompileRequest();
  request.mutable_compile_request()->mutable_program()->set_type_name("xla::ifrt::HloProgram");
  EXPECT_EQ(Call(request).response_metadata().status().message(),
            "gangway compiles programs of type xla::ifrt::XlaProgram, not xla::ifrt::HloProgram");
  request.mutable_compile_request()->mutable_program()->set_type_name("xla::ifrt::PluginProgram");
  request.mutable_compile_request()->mutable_program()->set_data(R"({"profileRequest": {}})");
  EXPECT_THAT(Call(request).response_metadata().status().message(), testing::HasSubstr("jax.profiler.trace"));
}

TEST_F(ExecutableTest, AProgramIsSealedAndOpened) {
  controller_.program.Set(TwoDeviceProgram());
  const std::string fingerprint = Call(CompileRequest()).compile_response().fingerprint_value();
  auto with_option = [&](const char* name, const std::string& value) {
    IfrtRequest request = CompileRequest();
    auto* compile = request.mutable_compile_request();
    compile->mutable_program()->set_data("nothing");
    xla::ifrt::XlaCompileOptionsProto options;
    (*options.mutable_compile_options()->mutable_env_option_overrides())[name].set_string_field(value);
    compile->mutable_compile_options()->set_data(options.SerializeAsString());
    return request;
  };
  const IfrtResponse sealed = Call(with_option(kSealOption, fingerprint));
  EXPECT_EQ(controller_.compile_request.artifact, "nothing");
  const std::string bytes = sealed.compile_response().fingerprint_value();
  const IfrtResponse opened = Call(with_option(kOpenOption, absl::Base64Escape(bytes)));
  EXPECT_EQ(opened.compile_response().fingerprint_value(), fingerprint);
  EXPECT_EQ(controller_.compile_request.artifact, "artifact");
  EXPECT_EQ(controller_.compile_request.devices.at(0), controller::DeviceId(3));
  EXPECT_TRUE(controller_.compile_request.options.propagate_to_output.at(0));

  auto error = [&](const IfrtRequest& request) { return Call(request).response_metadata().status().message(); };
  EXPECT_THAT(error(with_option(kSealOption, "jit_f")), HasSubstr("no executable with fingerprint jit_f"));
  EXPECT_THAT(error(with_option(kOpenOption, "%")), HasSubstr("no base64"));
  EXPECT_THAT(error(with_option(kOpenOption, absl::Base64Escape(bytes.substr(0, bytes.size() - 1)))),
              HasSubstr("a damaged executable"));
}

TEST_F(ExecutableTest, ExecutablesAreBounded) {
  Reopen({.executables = 1});
  const uint64_t first = Compile();
  EXPECT_THAT(Call(CompileRequest()).response_metadata().status().message(),
              HasSubstr("session 7: keeps 1 executables, as many as a session may"));
  IfrtRequest drop;
  drop.mutable_loaded_executable_destruct_request()->set_loaded_executable_handle(first);
  Call(drop);
  EXPECT_NE(Compile(), 0u);
}

TEST_F(ExecutableTest, CompileErrorsReachTheClient) {
  controller_.program.Set(absl::UnimplementedError("stablehlo.frobnicate"));
  IfrtResponse response = Call(CompileRequest());
  EXPECT_EQ(response.response_metadata().status().message(), "stablehlo.frobnicate");
  EXPECT_EQ(response.response_case(), IfrtResponse::RESPONSE_NOT_SET);
  EXPECT_EQ(controller_.programs_released, 1);
}

TEST_F(ExecutableTest, FirstExecutionTellsItsOutputsLaterOnesDoNot) {
  MakeArray(5, "abcd");
  uint64_t executable = Compile();
  IfrtResponse first = Call(ExecuteRequest(executable, {5}, {}));
  ASSERT_EQ(first.loaded_executable_execute_response().outputs_size(), 1);
  const auto& output = first.loaded_executable_execute_response().outputs(0);
  EXPECT_GE(output.array_handle(), uint64_t{1} << 62);
  EXPECT_EQ(output.sharding().serialized_sharding().type_name(), "xla::ifrt::HloSharding");
  EXPECT_EQ(first.loaded_executable_execute_response().status_handle(), 0u);
  IfrtResponse second = Call(ExecuteRequest(executable, {5}, {6}));
  EXPECT_EQ(second.loaded_executable_execute_response().outputs_size(), 0);
  EXPECT_EQ(CopyToHost(6, 80).response_metadata().status().code(), 0);
}

TEST_F(ExecutableTest, AFailedExecutePoisonsItsResults) {
  uint64_t executable = Compile();
  IfrtResponse failed = Call(ExecuteRequest(executable, {}, {6}));
  EXPECT_EQ(failed.response_metadata().status().message(), "no arguments");
  EXPECT_EQ(CopyToHost(6, 81).response_metadata().status().message(), "no arguments");
}

TEST_F(ExecutableTest, WhatIsMadeOfAPoisonedArrayCarriesItsError) {
  uint64_t executable = Compile();
  Call(ExecuteRequest(executable, {}, {6}));
  IfrtRequest request;
  request.mutable_disassemble_into_single_device_arrays_request()->set_array_handle(6);
  for (uint64_t handle : {7, 8}) {
    request.mutable_disassemble_into_single_device_arrays_request()->add_result_handles(handle);
  }
  EXPECT_EQ(Call(request).response_metadata().status().message(), "no arguments");
  for (uint64_t handle : {7, 8}) {
    IfrtRequest shard;
    shard.mutable_fully_replicated_shard_request()->set_array_handle(handle);
    shard.mutable_fully_replicated_shard_request()->set_result_handle(handle + 10);
    EXPECT_EQ(Call(shard).response_metadata().status().message(), "no arguments");
    EXPECT_EQ(CopyToHost(handle + 10, handle + 90).response_metadata().status().message(), "no arguments");
  }
}

TEST_F(ExecutableTest, StatusFuturesAnswerWhenTheProgramIsDone) {
  MakeArray(5, "abcd");
  uint64_t executable = Compile();
  IfrtRequest request = ExecuteRequest(executable, {5}, {6});
  request.mutable_loaded_executable_execute_request()->set_result_status_handle(55);
  Call(request);
  IfrtRequest check;
  check.mutable_check_future_request()->set_future_handle(55);
  uint64_t operation = Send(check);
  size_t before = responses_.size();
  controller_.done.Set(absl::InternalError("device 1 failed"));
  EXPECT_EQ(responses_.size(), before + 1);
  EXPECT_EQ(ResponseTo(operation).response_metadata().status().message(), "device 1 failed");
}

TEST_F(ExecutableTest, MetadataHasShardingsAndDonation) {
  uint64_t executable = Compile();
  IfrtRequest request;
  request.mutable_loaded_executable_metadata_request()->set_loaded_executable_handle(executable);
  IfrtResponse response = Call(request);
  const auto& metadata = response.loaded_executable_metadata_response();
  EXPECT_EQ(metadata.parameter_shardings().shardings(0).type(), xla::OpSharding::OTHER);
  EXPECT_EQ(metadata.donated_input_indices().donated_input_indices_size(), 1);
  EXPECT_EQ(metadata.compiled_memory_stats().argument_size_in_bytes(), 2);
}

}  // namespace
}  // namespace gangway::ifrt_proxy

#include "gangway/ifrt_proxy/server.h"

#include <grpcpp/grpcpp.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gangway/base/strand.h"
#include "gangway/ifrt_proxy/fake_controller.h"
#include "gangway/net/tcp/socket.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla/python/ifrt_proxy/common/grpc_ifrt_service.grpc.pb.h"

namespace gangway::ifrt_proxy {
namespace {

using namespace xla::ifrt::proxy;  // NOLINT: the service's messages

// A call for a host buffer, without a thread of its own.
class LookupCall final : public grpc::ClientReadReactor<GrpcHostBufferLookupResponse> {
 public:
  LookupCall(GrpcIfrtService::Stub& stub, uint64_t session, uint64_t handle) {
    request_.set_session_id(session);
    request_.set_handle(handle);
    stub.async()->HostBufferLookup(&context_, &request_, this);
    StartRead(&chunk_);
    StartCall();
  }
  bool over() const { return done_.HasBeenNotified(); }
  grpc::Status Await() {
    if (done_.WaitForNotificationWithTimeout(absl::Seconds(60))) return status_;
    context_.TryCancel();
    done_.WaitForNotification();
    return grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "the test waited long enough");
  }
  const std::string& bytes() const { return bytes_; }  // once it is over

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    bytes_ += chunk_.data();
    StartRead(&chunk_);
  }
  void OnDone(const grpc::Status& status) override {
    status_ = status;
    done_.Notify();
  }

  grpc::ClientContext context_;
  GrpcHostBufferLookupRequest request_;
  GrpcHostBufferLookupResponse chunk_;
  std::string bytes_;
  grpc::Status status_;
  absl::Notification done_;
};

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    auto server = StartServer(controller_, clock_, {});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = GrpcIfrtService::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->port()), grpc::InsecureChannelCredentials()));
    context_.AddMetadata("ifrt-proxy-grpc-ifrt-session-metadata-bin", GrpcIfrtSessionMetadata().SerializeAsString());
    stream_ = stub_->IfrtSession(&context_);
    IfrtRequest request;
    request.mutable_init_request();
    IfrtResponse response;
    EXPECT_TRUE(stream_->Write(request) && stream_->Read(&response));
    session_ = response.init_response().session_id();
  }
  void CloseSession() {
    if (stream_ == nullptr) return;
    stream_->WritesDone();
    EXPECT_TRUE(stream_->Finish().ok());
    stream_.reset();
  }
  ~ServerTest() override { CloseSession(); }

  void Store(uint64_t handle, const std::string& bytes) {
    GrpcHostBufferStoreMetadata metadata;
    metadata.set_session_id(session_);
    metadata.set_handle(handle);
    metadata.set_buffer_size(static_cast<int64_t>(bytes.size()));
    grpc::ClientContext context;
    context.AddMetadata("ifrt-proxy-grpc-host-buffer-store-metadata-bin", metadata.SerializeAsString());
    GrpcHostBufferStoreResponse response;
    auto writer = stub_->HostBufferStore(&context, &response);
    GrpcHostBufferStoreRequest chunk;
    chunk.set_data(bytes);
    writer->Write(chunk);
    writer->WritesDone();
    grpc::Status status = writer->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  // Numbered from zero.
  void WriteRequests(uint64_t count) {
    IfrtRequest request;
    request.mutable_destruct_array_request()->add_array_handle(1);
    for (uint64_t i = 0; i < count; ++i) {
      request.mutable_request_metadata()->set_op_id(i);
      EXPECT_TRUE(stream_->Write(request));
    }
  }
  void ReadAnswers(uint64_t count) {
    IfrtResponse response;
    for (uint64_t i = 0; i < count; ++i) {
      ASSERT_TRUE(stream_->Read(&response));
      ASSERT_EQ(response.response_metadata().op_id(), i);
    }
  }
  std::unique_ptr<LookupCall> Lookup(uint64_t handle) { return std::make_unique<LookupCall>(*stub_, session_, handle); }

  Strand loop_;
  SystemClock clock_;
  FakeController controller_{8, loop_};
  std::unique_ptr<Server> server_;
  std::unique_ptr<GrpcIfrtService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<IfrtRequest, IfrtResponse>> stream_;
  uint64_t session_ = 0;
};

int Threads() {
  using Tasks = std::filesystem::directory_iterator;
  return static_cast<int>(std::distance(Tasks("/proc/self/task"), Tasks()));
}

TEST_F(ServerTest, WhatNobodyWaitsForLeavesAfterAMoment) {
  IfrtRequest request;
  request.mutable_request_metadata()->set_op_id(5);
  request.mutable_destruct_array_request()->add_array_handle(1);
  ASSERT_TRUE(stream_->Write(request));
  IfrtResponse response;
  ASSERT_TRUE(stream_->Read(&response));
  EXPECT_EQ(response.response_metadata().op_id(), 5);
}

TEST_F(ServerTest, ReadsOnWhenABusyLoopHasTakenWhatWaited) {
  constexpr int kRequests = 10'000;  // more than may wait
  absl::Notification busy, go_on;
  std::thread holder([&] {
    loop_.Post([&] {
      busy.Notify();
      go_on.WaitForNotification();
    });
  });
  busy.WaitForNotification();
  std::thread writer([&] { WriteRequests(kRequests); });
  absl::SleepFor(absl::Milliseconds(100));  // so that some wait: the outcome is the same if none does
  go_on.Notify();
  ReadAnswers(kRequests);
  writer.join();
  holder.join();
}

TEST_F(ServerTest, RefusesAStreamThatDoesNotSayWhatItIs) {
  grpc::ClientContext context;
  auto stream = stub_->IfrtSession(&context);
  IfrtResponse response;
  EXPECT_FALSE(stream->Read(&response));
  grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), testing::HasSubstr("metadata"));
}

TEST_F(ServerTest, LooksUpWhatIsStored) {
  for (const std::string& bytes : {std::string(), std::string("abc"), std::string((3 << 20) + 1, 'x')}) {
    Store(7, bytes);
    auto lookup = Lookup(7);
    const grpc::Status status = lookup->Await();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(lookup->bytes() == bytes) << bytes.size();
    grpc::ClientContext context;
    GrpcHostBufferDeleteRequest request;
    request.set_session_id(session_);
    request.set_handle(7);
    GrpcHostBufferDeleteResponse response;
    EXPECT_TRUE(stub_->HostBufferDelete(&context, request, &response).ok());
  }
}

TEST_F(ServerTest, CallsThatWaitTakeNoThreads) {
  constexpr int kCalls = 64;
  Store(1, "");
  EXPECT_TRUE(Lookup(1)->Await().ok());  // what the first call starts is there
  const int before = Threads();
  std::vector<std::unique_ptr<LookupCall>> lookups;
  for (int i = 0; i < kCalls; ++i) lookups.push_back(Lookup(100 + i));
  // All of them have arrived when one that came after them is answered.
  EXPECT_TRUE(Lookup(1)->Await().ok());
  EXPECT_LT(Threads(), before + kCalls / 2);
  for (const auto& lookup : lookups) EXPECT_FALSE(lookup->over());
  for (int i = 0; i < kCalls; ++i) Store(100 + i, absl::StrCat("value ", i));
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_TRUE(lookups[i]->Await().ok());
    EXPECT_EQ(lookups[i]->bytes(), absl::StrCat("value ", i));
  }
}

TEST_F(ServerTest, TheEndOfTheSessionEndsItsCalls) {
  auto lookup = Lookup(100);
  CloseSession();
  // It is told that the session is gone, or is going.
  const grpc::StatusCode code = lookup->Await().error_code();
  EXPECT_THAT(code, testing::AnyOf(grpc::StatusCode::CANCELLED, grpc::StatusCode::NOT_FOUND));
}

TEST_F(ServerTest, ARefusedSessionEndsAndGivesItsPlaceBack) {
  const auto admit = [&](const absl::Status& admission) {
    absl::Notification done;
    loop_.Post([&] {
      controller_.admission = admission;
      done.Notify();
    });
    done.WaitForNotification();
  };
  bool refused = true;
  const auto open = [&](IfrtResponse* response) {
    grpc::ClientContext context;
    context.AddMetadata("ifrt-proxy-grpc-ifrt-session-metadata-bin", GrpcIfrtSessionMetadata().SerializeAsString());
    auto stream = stub_->IfrtSession(&context);
    IfrtRequest request;
    request.mutable_init_request();
    EXPECT_TRUE(stream->Write(request) && stream->Read(response));
    if (!refused) stream->WritesDone();
    IfrtResponse none;
    EXPECT_FALSE(stream->Read(&none)) << "nothing more is said";
    return stream->Finish();
  };
  admit(absl::PermissionDeniedError("no tenant has this token"));
  IfrtResponse response;
  for (int i = 0; i < ServerOptions().max_sessions + 10; ++i) {
    open(&response);
    ASSERT_EQ(response.response_metadata().status().message(), "no tenant has this token");
  }
  admit(absl::OkStatus());
  refused = false;
  EXPECT_TRUE(open(&response).ok());
  EXPECT_TRUE(response.has_init_response());
}

TEST_F(ServerTest, NobodyKeepsAPlaceWithoutBeingLetIn) {
  absl::Notification refusing;
  loop_.Post([&] {
    controller_.admission = absl::PermissionDeniedError("no tenant has this token");
    refusing.Notify();
  });
  refusing.WaitForNotification();
  ManualClock clock;
  ServerOptions options;
  options.max_sessions = 2;
  auto server = *StartServer(controller_, clock, options);
  auto stub = GrpcIfrtService::NewStub(
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", server->port()), grpc::InsecureChannelCredentials()));
  const std::string metadata = GrpcIfrtSessionMetadata().SerializeAsString();
  std::vector<grpc::Status> ends(options.max_sessions);
  std::vector<std::thread> silent;
  for (grpc::Status& end : ends) {
    silent.emplace_back([&] {
      grpc::ClientContext context;
      context.AddMetadata("ifrt-proxy-grpc-ifrt-session-metadata-bin", metadata);
      auto stream = stub->IfrtSession(&context);
      IfrtResponse response;
      EXPECT_FALSE(stream->Read(&response));
      end = stream->Finish();
    });
  }
  // Each look may come before the session does; the clock goes on until it is gone.
  std::atomic<bool> over = false;
  std::thread time([&] {
    while (!over) {
      clock.Advance(absl::Minutes(1));
      absl::SleepFor(absl::Milliseconds(10));
    }
  });
  for (std::thread& thread : silent) thread.join();
  over = true;
  time.join();
}

// Far more than may wait.
TEST_F(ServerTest, RequestsBehindAHostBufferWaitForIt) {
  constexpr int kRequests = 30'000;
  IfrtRequest make;
  make.mutable_make_array_from_host_buffer_request()->set_host_buffer_handle(7);
  make.mutable_request_metadata()->set_op_id(kRequests);
  ASSERT_TRUE(stream_->Write(make));
  std::thread writer([&] { WriteRequests(kRequests); });
  absl::SleepFor(absl::Milliseconds(100));  // so that some wait: the outcome is the same if none does
  Store(7, "bytes");
  IfrtResponse response;
  ASSERT_TRUE(stream_->Read(&response));
  EXPECT_EQ(response.response_metadata().op_id(), kRequests);
  ReadAnswers(kRequests);
  writer.join();
}

// It speaks the protocol and then nothing more, as one whose machine is gone.
TEST_F(ServerTest, GivesUpAClientThatDoesNotAnswer) {
  ServerOptions options;
  options.ask_after = options.answer_within = absl::Seconds(1);
  auto server = *StartServer(controller_, clock_, options);
  auto socket = net::ConnectTcp(absl::StrCat("127.0.0.1:", server->port()));
  ASSERT_TRUE(socket.ok());
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", settings("\0\0\0\4\0\0\0\0\0", 9);
  ASSERT_TRUE(socket->WriteAll(preface.data(), preface.size()) && socket->WriteAll(settings.data(), settings.size()));
  socket->LimitReads(absl::Seconds(60));
  char bytes[1024];
  errno = 0;
  while (socket->ReadSome(bytes, sizeof bytes) > 0) continue;
  EXPECT_NE(errno, EAGAIN) << "it waits for good";
}

TEST_F(ServerTest, NobodyGuessesASession) {
  for (uint64_t id = 0; id < 10; ++id) {
    LookupCall lookup(*stub_, id, 1);
    EXPECT_EQ(lookup.Await().error_code(), grpc::StatusCode::NOT_FOUND);
  }
}

TEST_F(ServerTest, KnowsNoOtherSession) {
  LookupCall lookup(*stub_, session_ + 1, 1);
  EXPECT_EQ(lookup.Await().error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace gangway::ifrt_proxy

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gangway/net/cts/channel_cts.h"
#include "gangway/net/grpc/grpc_channel.h"
#include "gangway/net/grpc/wire_form.h"
#include "google/protobuf/io/coded_stream.h"
#include "grpcpp/support/byte_buffer.h"

namespace gangway::net {
namespace {

// A connection over loopback; the first end is the server's or the client's.
class GrpcHarness final : public ChannelHarness {
 public:
  explicit GrpcHarness(bool server_first) : server_first_(server_first) {}

  std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> Connect() override {
    server_ = *ServeGrpc("127.0.0.1:0", [this](std::unique_ptr<Channel> channel) {
      absl::MutexLock lock(&mutex_);
      accepted_ = std::move(channel);
    });
    auto client = *ConnectGrpc(server_->address(), absl::Now() + absl::Seconds(20));
    absl::MutexLock lock(&mutex_);
    auto arrived = [this] { return accepted_ != nullptr; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&arrived), absl::Seconds(20))) return {};
    if (server_first_) return {std::move(accepted_), std::move(client)};
    return {std::move(client), std::move(accepted_)};
  }
  bool RunUntil(const std::function<bool()>& condition) override {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (!condition()) {
      if (absl::Now() > deadline) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }

 private:
  const bool server_first_;
  absl::Mutex mutex_;
  std::unique_ptr<Channel> accepted_;
  std::unique_ptr<Server> server_;
};

MakeChannelHarness Harness(bool server_first) {
  return [server_first] { return std::make_unique<GrpcHarness>(server_first); };
}
INSTANTIATE_TEST_SUITE_P(Grpc, ChannelCts, testing::Values(Harness(false), Harness(true)));

TEST(GrpcTest, AddressesThatDoNotWork) {
  auto server = ServeGrpc("127.0.0.1:0", [](std::unique_ptr<Channel>) {});
  ASSERT_TRUE(server.ok());
  auto taken = ServeGrpc((*server)->address(), [](std::unique_ptr<Channel>) {});
  EXPECT_THAT(std::string(taken.status().message()), testing::HasSubstr("cannot listen on 127.0.0.1:"));
  const std::string address = (*server)->address();
  server->reset();
  auto nobody = ConnectGrpc(address, absl::Now() + absl::Milliseconds(300));
  EXPECT_THAT(std::string(nobody.status().message()), testing::HasSubstr("cannot reach 127.0.0.1:"));
}

TEST(GrpcTest, TheControllersReasonReachesTheWorker) {
  Received at_client, at_server;
  absl::Mutex mutex;
  std::unique_ptr<Channel> accepted;
  auto server = ServeGrpc("127.0.0.1:0", [&](std::unique_ptr<Channel> channel) {
    absl::MutexLock lock(&mutex);
    accepted = std::move(channel);
  });
  auto client = ConnectGrpc((*server)->address(), absl::Now() + absl::Seconds(20));
  (*client)->Start(at_client.handler());
  {
    absl::MutexLock lock(&mutex);
    auto arrived = [&] { return accepted != nullptr; };
    ASSERT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&arrived), absl::Seconds(20)));
  }
  accepted->Start(at_server.handler());
  accepted->Close(absl::AlreadyExistsError("a worker named w0 is registered"));
  for (int i = 0; i < 5000 && at_client.reasons().empty(); ++i) absl::SleepFor(absl::Milliseconds(1));
  ASSERT_EQ(at_client.reasons().size(), 1);
  EXPECT_EQ(at_client.reasons()[0], absl::AlreadyExistsError("a worker named w0 is registered"));
}

std::string Text(const grpc::ByteBuffer& frame) {
  std::vector<grpc::Slice> slices;
  (void)frame.Dump(&slices);
  std::string text;
  for (const auto& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

int64_t ResidentBytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(WireFormTest, ClaimsTakeNoMemory) {
  constexpr uint64_t kClaimed = uint64_t{2} << 30;
  // What begins a payload in chunks, and one that is in the frame.
  for (const uint32_t tag : {3u << 3, 2u << 3 | 2u}) {
    uint8_t bytes[16];
    uint8_t* end = google::protobuf::io::CodedOutputStream::WriteTagToArray(tag, bytes);
    end = google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(kClaimed, end);
    const grpc::Slice slice(bytes, end - bytes);
    for (PayloadForm form : {PayloadForm::kAligned, PayloadForm::kString}) {
      FrameReader reader(form);
      const int64_t before = ResidentBytes();
      (void)reader.Read(grpc::ByteBuffer(&slice, 1));
      EXPECT_LT(ResidentBytes(), before + (int64_t{256} << 20)) << tag;
    }
  }
}

// What no peer takes would end the connection, and with it what others have there.
TEST(WireFormTest, FramesStaySmallWhateverIsInThem) {
  std::vector<Message> messages;
  for (int i = 0; i < 1024; ++i) {
    FreeBuffers free;
    for (uint64_t id = 0; id < 10'000; ++id) free.buffers.push_back(BufferId((uint64_t{1} << 40) + id));
    messages.push_back(std::move(free));
  }
  const std::string text(size_t{100} << 20, 'x');
  messages.push_back(HostCallAnswer{RequestId(1), absl::InternalError(text), {}});
  messages.push_back(PoisonBuffers{{BufferId(1)}, absl::InternalError(text), TaskId(1)});
  FrameReader reader(PayloadForm::kString);
  std::vector<Message> read;
  for (const auto& frame : WriteFrames(messages)) {
    EXPECT_LT(frame.Length(), 4 << 20);
    auto some = reader.Read(frame);
    ASSERT_TRUE(some.ok()) << some.status();
    for (Message& message : *some) read.push_back(std::move(message));
  }
  ASSERT_EQ(read.size(), messages.size());
  EXPECT_EQ(read[1023], messages[1023]);
  const absl::Status& told = std::get<HostCallAnswer>(read[1024]).status;
  EXPECT_EQ(told.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(told.message(), text.substr(0, told.message().size()));
}

TEST(GrpcTest, AProgramsNameIsNoLongerThanAFrame) {
  auto server = ServeGrpc("127.0.0.1:0", [](std::unique_ptr<Channel>) {});
  auto client = *ConnectGrpc((*server)->address(), absl::Now() + absl::Seconds(20));
  LoadProgram load;
  load.name = std::string(size_t{100} << 20, 'x');
  EXPECT_TRUE(absl::IsInvalidArgument(client->Send(load)));
  load.name = "short";
  EXPECT_TRUE(client->Send(load).ok());
}

// Whatever arrives, the reader answers with messages or an error.
TEST(WireFormTest, MutatedFramesAreErrorsOrMessages) {
  std::vector<std::string> frames;
  for (const auto& frame : WriteFrames(SampleMessages())) frames.push_back(Text(frame));
  std::string big(3'000'000, 'b');
  const Message large = Fetched{RequestId(1), absl::OkStatus(), Payload(std::make_shared<const std::string>(big))};
  for (const auto& frame : WriteFrames({large})) frames.push_back(Text(frame).substr(0, 300));
  std::mt19937_64 random(7);
  int errors = 0;
  for (int i = 0; i < 20000; ++i) {
    FrameReader reader(i % 2 ? PayloadForm::kAligned : PayloadForm::kString);
    for (int part = 0; part < 2; ++part) {
      std::string text = frames[random() % frames.size()];
      for (uint64_t edits = random() % 4; edits > 0 && !text.empty(); --edits) {
        text[random() % text.size()] = static_cast<char>(random());
      }
      if (random() % 4 == 0) text.resize(random() % (text.size() + 1));
      // Claims of much memory are slow where a sanitizer looks after it.
      if (text.find("\x18") != std::string::npos && random() % 8) continue;
      grpc::Slice slice(text);
      auto messages = reader.Read(grpc::ByteBuffer(&slice, 1));
      errors += messages.ok() ? 0 : 1;
      if (!messages.ok()) break;
    }
  }
  EXPECT_GT(errors, 0);
}

}  // namespace
}  // namespace gangway::net

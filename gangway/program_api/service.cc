#include "gangway/program_api/service.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <functional>
#include <set>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gangway/program_api/session.h"
#include "gangway/v1/program_service.grpc.pb.h"
#include "google/protobuf/descriptor.pb.h"
#include "spdlog/spdlog.h"

namespace gangway::program_api {
namespace {

// Responses on their way to one client: filled by the loop, which never waits for a client, and emptied by the stream's
// writer. Thread-safe.
class Responses {
 public:
  // `overflow`: called when too much waits for a client that does not read.
  explicit Responses(std::function<void()> overflow) : overflow_(std::move(overflow)) {}

  void Add(v1::Response response) {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
    bytes_ += response.ByteSizeLong();
    if (bytes_ > kMostBytes) return overflow_();
    waiting_.push_back(std::move(response));
  }
  // False when none came within that time.
  bool AwaitFirst(absl::Duration patience) {
    absl::MutexLock lock(&mutex_);
    auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || !waiting_.empty(); };
    return mutex_.AwaitWithTimeout(absl::Condition(&ready), patience);
  }
  // Waits for some; empty once closed.
  std::deque<v1::Response> TakeAll() {
    absl::MutexLock lock(&mutex_);
    auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || !waiting_.empty(); };
    mutex_.Await(absl::Condition(&ready));
    bytes_ = 0;
    return std::exchange(waiting_, {});
  }
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

 private:
  static constexpr size_t kMostBytes = size_t{4} << 30;

  const std::function<void()> overflow_;
  absl::Mutex mutex_;
  std::deque<v1::Response> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

constexpr char kBrokeOff[] = "broke off: it is gone, or sent a message above --max-message";

using ServerStream = grpc::ServerReaderWriter<v1::Response, v1::Request>;

void Write(Responses& responses, ServerStream* stream) {
  bool open = true;
  for (auto some = responses.TakeAll(); !some.empty(); some = responses.TakeAll()) {
    for (size_t i = 0; i < some.size() && open; ++i) {
      grpc::WriteOptions options;
      if (i + 1 < some.size()) options.set_buffer_hint();  // more follow: one packet for all
      open = stream->Write(some[i], options);
    }
  }
}

void AddFile(const google::protobuf::FileDescriptor& file, std::set<std::string>* seen,
             google::protobuf::FileDescriptorSet* set) {
  if (!seen->insert(file.name()).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) AddFile(*file.dependency(i), seen, set);
  file.CopyTo(set->add_file());
}

// gRPC's threads run these; each stream keeps one while it lasts.
class Service final : public v1::Gangway::Service {
 public:
  Service(controller::Controller& controller, const ServiceOptions& options)
      : controller_(controller), options_(options) {}

  // Requests are read one at a time, the next when the loop has taken the last: a client that is faster than the loop
  // waits in its own send.
  grpc::Status Session(grpc::ServerContext* context, ServerStream* stream) override {
    const auto leave = absl::MakeCleanup([this] { --sessions_; });
    if (++sessions_ > options_.max_sessions) {
      return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                          absl::StrCat("already ", options_.max_sessions, " sessions"));
    }
    spdlog::info("program API: opened by {}", context->peer());
    auto responses = std::make_shared<Responses>([context] { context->TryCancel(); });
    auto session = std::make_shared<program_api::Session>(
        controller_, context->peer(), [responses](v1::Response response) { responses->Add(std::move(response)); });
    std::thread writer([this, responses, stream, context] {
      if (!responses->AwaitFirst(options_.open_within)) context->TryCancel();
      Write(*responses, stream);
    });
    v1::Request request;
    bool open = true;  // one that was not let in has been told why
    while (open && stream->Read(&request)) {
      OnLoop([&] {
        session->Handle(request);
        open = session->is_open();
      });
    }
    OnLoop([&] { session->Close(); });
    responses->Close();
    writer.join();
    spdlog::info("program API: {} {}", context->peer(), context->IsCancelled() ? kBrokeOff : "closed");
    return grpc::Status::OK;
  }

  grpc::Status Describe(grpc::ServerContext*, const v1::DescribeRequest*, v1::DescribeResponse* response) override {
    google::protobuf::FileDescriptorSet files;
    std::set<std::string> seen;
    AddFile(*v1::Request::descriptor()->file(), &seen, &files);
    response->set_file_descriptor_set(files.SerializeAsString());
    return grpc::Status::OK;
  }

 private:
  void OnLoop(const std::function<void()>& task) {
    absl::Notification done;
    controller_.loop().Post([&] {
      task();
      done.Notify();
    });
    done.WaitForNotification();
  }

  controller::Controller& controller_;
  const ServiceOptions options_;
  std::atomic<int> sessions_ = 0;  // under way
};

}  // namespace

std::shared_ptr<grpc::Service> MakeService(controller::Controller& controller, const ServiceOptions& options) {
  return std::make_shared<Service>(controller, options);
}

}  // namespace gangway::program_api

#include "gangway/program_api/service.h"

#include <grpcpp/grpcpp.h>

#include <deque>
#include <set>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "gangway/program_api/session.h"
#include "gangway/v1/program_service.grpc.pb.h"
#include "google/protobuf/descriptor.pb.h"
#include "spdlog/spdlog.h"

namespace gangway::program_api {
namespace {

// One client's stream. Requests are read one at a time, the next when the loop has taken the last, so a client that is
// faster than the loop waits in its own send. Responses queue here: the loop never waits for a client.
//
// Shared by gRPC, which lets go in OnDone, and by tasks on the loop.
class Stream final : public grpc::ServerBidiReactor<v1::Request, v1::Response>,
                     public std::enable_shared_from_this<Stream> {
 public:
  Stream(controller::Controller& controller, std::string peer) : controller_(controller), peer_(std::move(peer)) {}

  void Begin() {
    self_ = shared_from_this();
    session_ = std::make_shared<Session>(controller_, peer_, [weak = weak_from_this()](v1::Response response) {
      if (auto self = weak.lock()) self->Queue(std::move(response));
    });
    spdlog::info("program API: opened by {}", peer_);
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    auto self = shared_from_this();
    if (!ok) {
      controller_.loop().Post([self] {
        self->session_->Close();
        self->End();
      });
      return;
    }
    controller_.loop().Post([self] {
      self->session_->Handle(self->request_);
      self->StartRead(&self->request_);
    });
  }
  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    responses_.pop_front();
    if (!ok) responses_.clear();
    if (!responses_.empty()) return StartWrite(&responses_.front());
    if (ended_) Finish(grpc::Status::OK);
  }
  void OnDone() override {
    spdlog::info("program API: closed by {}", peer_);
    std::shared_ptr<Stream> last = std::move(self_);
  }

 private:
  void Queue(v1::Response response) {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    responses_.push_back(std::move(response));
    if (responses_.size() == 1) StartWrite(&responses_.front());
  }
  void End() {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    if (responses_.empty()) Finish(grpc::Status::OK);
  }

  controller::Controller& controller_;
  const std::string peer_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<Stream> self_;  // while gRPC may call
  v1::Request request_;
  absl::Mutex mutex_;
  std::deque<v1::Response> responses_ ABSL_GUARDED_BY(mutex_);  // the first is being written
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

void AddFile(const google::protobuf::FileDescriptor& file, std::set<std::string>* seen,
             google::protobuf::FileDescriptorSet* set) {
  if (!seen->insert(file.name()).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) AddFile(*file.dependency(i), seen, set);
  file.CopyTo(set->add_file());
}

class Service final : public v1::Gangway::CallbackService {
 public:
  explicit Service(controller::Controller& controller) : controller_(controller) {}

  grpc::ServerBidiReactor<v1::Request, v1::Response>* Session(grpc::CallbackServerContext* context) override {
    auto stream = std::make_shared<Stream>(controller_, context->peer());
    stream->Begin();
    return stream.get();
  }
  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context, const v1::DescribeRequest*,
                                     v1::DescribeResponse* response) override {
    google::protobuf::FileDescriptorSet files;
    std::set<std::string> seen;
    AddFile(*v1::Request::descriptor()->file(), &seen, &files);
    response->set_file_descriptor_set(files.SerializeAsString());
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  controller::Controller& controller_;
};

}  // namespace

std::shared_ptr<grpc::Service> MakeService(controller::Controller& controller) {
  return std::make_shared<Service>(controller);
}

}  // namespace gangway::program_api

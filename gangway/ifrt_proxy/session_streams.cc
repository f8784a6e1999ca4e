#include "gangway/ifrt_proxy/session_streams.h"

#include <pthread.h>

#include <utility>

namespace gangway::ifrt_proxy {

SessionStreams::SessionStreams(std::unique_ptr<grpc::ServerCompletionQueue> queue, Request request, Executor& loop,
                               SessionHooks hooks)
    : queue_(std::move(queue)), request_(std::move(request)), loop_(loop), hooks_(std::move(hooks)) {}

SessionStreams::~SessionStreams() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  queue_->Shutdown();
  if (acceptor_.joinable()) {
    acceptor_.join();
  } else {
    Accept();  // empties the queue
  }
  for (Served& served : served_) served.thread.join();
}

void SessionStreams::Start() {
  RequestNext();
  acceptor_ = std::thread([this] { Accept(); });
}

void SessionStreams::Accept() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    if (!ok) continue;  // the server stops
    Serve(std::move(next_));
    RequestNext();
  }
}

void SessionStreams::RequestNext() {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return;
  next_ = std::make_shared<SessionStream>(loop_, hooks_);
  request_(*next_, *queue_, next_.get());
}

void SessionStreams::Serve(std::shared_ptr<SessionStream> stream) {
  std::erase_if(served_, [](Served& served) {
    if (!served.over) return false;
    served.thread.join();
    return true;
  });
  Served& served = served_.emplace_back();
  served.thread = std::thread([&served, stream = std::move(stream)] {
    stream->Serve();
    served.over = true;
  });
  pthread_setname_np(served.thread.native_handle(), "gw-client");
}

}  // namespace gangway::ifrt_proxy

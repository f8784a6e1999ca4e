// Where clients' streams are taken in.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "gangway/base/executor.h"
#include "gangway/ifrt_proxy/session_stream.h"
#include "grpcpp/completion_queue.h"

namespace gangway::ifrt_proxy {

// Takes the streams of a server one by one and gives each a thread while it lasts. The server is shut down before this
// is destroyed, which waits until every stream is over.
class SessionStreams {
 public:
  // Asks the service for the next call of its stream: `tag` comes out of the queue when it is there.
  using Request = std::function<void(SessionStream& stream, grpc::ServerCompletionQueue& queue, void* tag)>;

  SessionStreams(std::unique_ptr<grpc::ServerCompletionQueue> queue, Request request, Executor& loop,
                 SessionHooks hooks);
  ~SessionStreams();

  // Once the server is started.
  void Start();

 private:
  struct Served {
    std::thread thread;
    std::atomic<bool> over = false;
  };
  void Accept();
  void RequestNext();
  void Serve(std::shared_ptr<SessionStream> stream);

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  const Request request_;
  Executor& loop_;
  const SessionHooks hooks_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;  // nothing may be asked for any more
  // The acceptor's alone while it runs.
  std::shared_ptr<SessionStream> next_;
  std::list<Served> served_;
  std::thread acceptor_;
};

}  // namespace gangway::ifrt_proxy

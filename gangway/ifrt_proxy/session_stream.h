// The stream on which one client's session lives: requests in, responses out.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gangway/base/executor.h"
#include "gangway/ifrt_proxy/session.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "xla/python/ifrt_proxy/common/grpc_ifrt_service.grpc.pb.h"

namespace gangway::ifrt_proxy {

// What a stream asks of the server it belongs to.
struct SessionHooks {
  // The session of a client that calls, or why it is refused. The stream's thread.
  std::function<absl::StatusOr<std::shared_ptr<Session>>(const grpc::ServerContext&, Reply::Sink)> begin;
  // The session has closed; its client has not been told yet. The controller's loop.
  std::function<void(const Session&)> end;
};

// Has one thread and one queue of gRPC's: the thread that polls the socket hands requests to the controller's loop and
// writes what came of them, so that a small call wakes a single thread here. Responses of other threads are written by
// them, one write at a time.
//
// Responses nobody waits for leave together, with the next urgent one or after a moment: each write of its own would
// wake several threads of the client. Requests that arrive while the loop is busy are handed over in bunches; reading
// stops while it is far behind, or the session waits for a host buffer and much waits behind that, so that
// back-pressure reaches the client. One that does not read what it asked for is sent away.
class SessionStream : public std::enable_shared_from_this<SessionStream> {
 public:
  using Call = grpc::ServerAsyncReaderWriter<IfrtResponse, IfrtRequest>;

  SessionStream(Executor& loop, const SessionHooks& hooks) : loop_(loop), hooks_(hooks) {}
  ~SessionStream();

  // For the request of the call.
  grpc::ServerContext& context() { return context_; }
  Call& call() { return call_; }
  grpc::CompletionQueue& queue() { return queue_; }

  // Once the call is there: serves it on this thread until it is over.
  void Serve();

 private:
  enum Event : intptr_t { kRead = 1, kWritten, kMoment, kFinished };

  // False once the queue is shut down.
  bool NextEvent();
  void OnEvent(Event event, bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnMoment();
  absl::Time NextMoment();
  void Read();
  // A turn of the loop.
  void Deliver();
  // What was taken, up to a request that has to wait for a host buffer.
  void HandleTaken();
  // The session has the host buffer.
  void GoOn();
  void Close();
  // Any thread; nothing once the stream is over.
  void Send(IfrtResponse response, bool urgent);
  void WaitAMoment() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Executor& loop_;
  const SessionHooks& hooks_;
  grpc::ServerContext context_;
  Call call_{&context_};
  grpc::CompletionQueue queue_;
  std::thread::id thread_;                // serves
  std::shared_ptr<Session> session_;      // set before the first read
  std::unique_ptr<IfrtRequest> request_;  // being read
  bool broke_off_ = false;                // the stream's thread only
  // Requests that wait behind a host buffer. The loop's.
  std::deque<std::unique_ptr<IfrtRequest>> taken_;

  absl::Mutex mutex_;
  std::deque<std::unique_ptr<IfrtRequest>> requests_ ABSL_GUARDED_BY(mutex_);
  size_t request_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool scheduled_ ABSL_GUARDED_BY(mutex_) = false;  // a turn of the loop will take them
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;     // no read is under way: too many wait
  std::deque<std::pair<IfrtResponse, size_t>> responses_ ABSL_GUARDED_BY(mutex_);  // and their bytes
  size_t response_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bunch_ ABSL_GUARDED_BY(mutex_) = 0;     // how many of them leave now
  bool urgent_ ABSL_GUARDED_BY(mutex_) = false;  // of the others somebody waits for one
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;                         // what waits leaves, then the call is finished
  bool over_ ABSL_GUARDED_BY(mutex_) = false;                           // finished, or the client is gone
  absl::Time moment_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // when what waits leaves in any case
  // Tells the stream's thread of a moment it may not know of.
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  bool alarm_set_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gangway::ifrt_proxy

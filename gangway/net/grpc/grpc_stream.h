// One bidirectional gRPC stream as a channel: what both ends have in common. Internal to net/grpc.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gangway/net/channel.h"
#include "gangway/net/grpc/wire_form.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"

namespace gangway::net {

// What a completion queue hands back.
class GrpcTag {
 public:
  virtual ~GrpcTag() = default;
  virtual void Done(bool ok) = 0;
};

// A new tag on its way to gRPC, and back to whoever serves the queue: what it is was written before. gRPC sees to that,
// but the thread sanitizer does not see gRPC.
void* HandOver(GrpcTag* tag);

// Takes events off a queue until it is shut down and empty. The one thread of an end: it polls the sockets itself and
// runs the handlers, so a message costs one wake-up.
void ServeQueue(grpc::CompletionQueue& queue);

// The state of a stream, shared by the channel and the events under way. Thread-safe.
//
// Writing: one frame at a time is under way; what is sent meanwhile leaves together in the next. Reading: always one
// read under way once started. Ending: the own side's Close waits for its writes, then ends the call; the other side's
// end shows as a failed read. When the last event has come back the reason is told.
class GrpcStream : public std::enable_shared_from_this<GrpcStream> {
 public:
  GrpcStream(std::string peer, PayloadForm form) : peer_(std::move(peer)), reader_(form) {}
  virtual ~GrpcStream() = default;

  void Start(ChannelHandler handler);
  absl::Status Send(Message message, bool may_wait);
  void Flush();
  void Close(absl::Status reason);
  // The channel is going: no handler runs when this returns.
  void Detach();
  // Ends the call at once, whatever is under way.
  virtual void Cancel() = 0;
  bool closed() const;
  const std::string& peer() const { return peer_; }

  // Waits until the stream is over; false when the deadline passes first.
  bool AwaitOver(absl::Time deadline);

 protected:
  virtual void StartRead(grpc::ByteBuffer* frame, void* tag) = 0;
  virtual void StartWrite(const grpc::ByteBuffer& frame, void* tag) = 0;
  // Ends the own side: the server sends the status; the client says that it writes no more (`reason` stays here).
  virtual void StartEnd(const absl::Status& reason, void* tag) = 0;
  // After the last read: fetches (client) or sends (server) the final status. False when there is nothing more to do.
  virtual bool StartFinish(void* tag) = 0;
  // The peer's reason, once finished.
  virtual absl::Status PeerReason() const = 0;

  // The call is up: writing may begin.
  void Ready();
  // The call did not come up.
  void Fail(const absl::Status& status);

  mutable absl::Mutex mutex_;

 private:
  // An event of this stream: holds it until the event is back.
  struct Event final : GrpcTag {
    explicit Event(GrpcStream& owner) : stream(owner) {}
    GrpcStream& stream;
    void (GrpcStream::*method)(bool) = nullptr;  // guarded by the stream's mutex_, as is `self`
    std::shared_ptr<GrpcStream> self;
    void Done(bool ok) override;
  };
  void* Begin(Event& event, void (GrpcStream::*method)(bool)) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnEnded(bool ok);
  void OnFinished(bool ok);
  void FinishNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MaybeOver();

  const std::string peer_;
  FrameReader reader_;           // used by the queue's thread only
  grpc::ByteBuffer read_frame_;  // likewise
  Event read_event_{*this}, write_event_{*this}, end_event_{*this}, finish_event_{*this};

  std::vector<Message> pending_ ABSL_GUARDED_BY(mutex_);  // not framed yet
  std::deque<grpc::ByteBuffer> frames_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // payloads of both
  bool up_ ABSL_GUARDED_BY(mutex_) = false;          // the call stands
  bool started_ ABSL_GUARDED_BY(mutex_) = false;     // Start was called
  // Events under way.
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  // What is over for good.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;       // StartEnd was called: nothing is written any more
  bool peer_ended_ ABSL_GUARDED_BY(mutex_) = false;  // a read or write failed
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> reason_ ABSL_GUARDED_BY(mutex_);  // of the own Close

  absl::Mutex handler_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // held while a handler runs
  std::optional<ChannelHandler> handler_ ABSL_GUARDED_BY(handler_mutex_);
};

grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace gangway::net

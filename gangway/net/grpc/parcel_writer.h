// A stream of parcels towards one peer. Internal to net/grpc.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "gangway/net/fabric.h"
#include "gangway/net/grpc/call_event.h"
#include "gangway/net/grpc/parcel_frame.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"

namespace gangway::net {

inline constexpr char kParcelMethod[] = "/gangway.Fabric/Parcels";
// Who calls whom: the caller's number, its end of the fabric, and the end it means.
inline constexpr char kFromKey[] = "gangway-from", kLifeKey[] = "gangway-life", kToKey[] = "gangway-to";

// A parcel that its receiver took. `done` is called once its bytes are copied, with nothing locked.
struct Gift {
  uint64_t number = 0;  // of the offer
  const char* data = nullptr;
  size_t size = 0;
  Fabric::Done done;
  size_t sent = 0;
};

// Thread-safe. One write at a time is under way; what is queued meanwhile leaves together in the next.
class ParcelWriter final : public std::enable_shared_from_this<ParcelWriter> {
 public:
  // Called once, when the call is over, with the reason and nothing locked, on the queue's thread.
  using Ended = std::function<void(const ParcelWriter*, const absl::Status&)>;
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  explicit ParcelWriter(Ended ended) : ended_(std::move(ended)) {}
  // The call begins. `metadata`: what the peer is to know of it.
  void Start(const std::shared_ptr<grpc::Channel>& channel, const Metadata& metadata, grpc::CompletionQueue* queue);

  // A frame with bytes that are copied, or with none. RESOURCE_EXHAUSTED when the peer is too far behind, UNAVAILABLE
  // once the call is over.
  absl::Status Queue(const ParcelFrame& frame, const void* data = nullptr);
  // When the call ends before all of it is copied it ends with the reason.
  void Give(Gift gift);
  // Ends the call: what is not sent never will be.
  void Close(const absl::Status& why);

 private:
  using Event = CallEvent<ParcelWriter>;
  void* Tag(Event::Method method) { return HandOver(new Event(shared_from_this(), call_mutex_, method)); }
  void OnStarted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok);

  // Begins a write when there is something to write and none is under way.
  void WriteSome() ABSL_LOCKS_EXCLUDED(mutex_);
  // What to write next. gRPC keeps what it is given for longer than it says: it gets copies. The `done`s of gifts that
  // are copied go to `copied`.
  std::vector<grpc::Slice> TakeSome(std::vector<Fabric::Done>& copied) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Nothing is written any more.
  void EndWith(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void MaybeEnd() ABSL_LOCKS_EXCLUDED(mutex_);

  const Ended ended_;
  std::shared_ptr<grpc::Channel> channel_;  // goes after what uses it
  grpc::ClientContext context_;
  absl::Mutex call_mutex_;  // held while gRPC is told something
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_ ABSL_GUARDED_BY(call_mutex_);
  grpc::ByteBuffer answer_;  // the server sends nothing
  grpc::Status status_;      // once finished

  absl::Mutex mutex_;
  bool up_ ABSL_GUARDED_BY(mutex_) = false;  // the call stands
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);                // once over
  std::deque<std::string> frames_ ABSL_GUARDED_BY(mutex_);  // with their bytes, several in each
  size_t queued_ ABSL_GUARDED_BY(mutex_) = 0;               // bytes of them
  std::deque<Gift> gifts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gangway::net

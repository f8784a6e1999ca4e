// A stream of parcels from one peer. Internal to net/grpc.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/synchronization/mutex.h"
#include "gangway/net/fabric.h"
#include "gangway/net/grpc/call_event.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/byte_buffer.h"

namespace gangway::net {

class ParcelReader final : public std::enable_shared_from_this<ParcelReader> {
 public:
  enum class Next { kRead, kWait, kEnd };
  // Called with nothing locked, on the queue's thread but for Continue and End.
  struct Handler {
    // kWait: nothing more is read, and `message` kept, until Continue.
    std::function<Next(const std::shared_ptr<ParcelReader>&, const grpc::ByteBuffer& message)> on_message;
    // Once, also when this end ended it; a message may still be handled meanwhile.
    std::function<void(const std::shared_ptr<ParcelReader>&)> on_end;
    std::function<void()> on_done;  // last: nothing of the reader runs any more
  };

  ParcelReader() : call_(&context_) {}
  // What a server needs to accept the call.
  grpc::GenericServerContext& context() { return context_; }
  grpc::GenericServerAsyncReaderWriter& call() { return call_; }

  // The call was accepted. `life`: the end of the fabric that the caller says to be. Before anything else.
  void Introduce(PeerId from, std::string life, Handler handler);
  void Start() { ReadNext(); }
  PeerId from() const { return from_; }
  const std::string& life() const { return life_; }
  // Goes on where it waited, on the caller's thread.
  void Continue();
  // The peer learns that the call is over.
  void End();

 private:
  using Event = CallEvent<ParcelReader>;
  void* Tag(Event::Method method) { return HandOver(new Event(shared_from_this(), mutex_, method)); }
  void OnRead(bool ok);
  void OnFinished(bool ok);
  void Handle();
  void ReadNext();
  void MaybeDone();

  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter call_;
  PeerId from_{-1};
  std::string life_;
  Handler handler_;
  grpc::ByteBuffer message_;  // read last; whoever reads or continues has it
  absl::Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gangway::net

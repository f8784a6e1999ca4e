// One end of the fabric over gRPC. Internal to net/grpc: grpc_fabric.cc has its life and its peers, parcel_end.cc what
// is sent and received.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "gangway/net/grpc/parcel_frame.h"
#include "gangway/net/grpc/parcel_reader.h"
#include "gangway/net/grpc/parcel_writer.h"
#include "gangway/net/mailbox_fabric.h"
#include "gangway/net/tls.h"
#include "grpcpp/channel.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server.h"

namespace gangway::net {

// A parcel that came early: its bytes, or that they can be had.
struct HeldParcel {
  PeerId from;
  std::string bytes = {};
  bool offered = false;
  uint64_t number = 0, size = 0;
};

// What is to be done once the lock is released, in this order.
struct ParcelOutbox {
  std::vector<std::pair<std::shared_ptr<ParcelWriter>, absl::Status>> close;
  std::vector<std::shared_ptr<ParcelReader>> end;
  std::vector<std::pair<std::shared_ptr<ParcelWriter>, ParcelFrame>> notes;
  std::vector<std::pair<std::shared_ptr<ParcelWriter>, Gift>> gifts;
  Calls calls;
  std::vector<std::shared_ptr<ParcelReader>> go_on;
};

// Towards each peer there is a stream that this end calls and writes, from each one that the peer calls and writes. A
// stream says which life of which end it comes from; until that life is connected it is not read.
class GrpcFabric final : public MailboxFabric<HeldParcel, ParcelOutbox> {
 public:
  GrpcFabric() = default;
  absl::Status Start(const std::string& listen, const Tls& tls);
  ~GrpcFabric() override;
  // Whether the caller is the thread that the destructor waits for.
  bool IsOwnThread() const { return std::this_thread::get_id() == thread_.get_id(); }

  std::string address() const override;
  void Connect(PeerId peer, std::string name, std::string address) override;
  void Send(PeerId to, const ParcelLabel& label, const void* data, size_t size, Done done) override;

 private:
  struct Acceptor;
  struct Refusal;
  struct Peer {
    std::string name, address;
    std::string target, life, certificate;  // of its address
    std::shared_ptr<grpc::Channel> channel;
    std::shared_ptr<ParcelWriter> writer;  // made with the first frame
  };
  struct Offer {
    PeerId peer;
    const void* data = nullptr;
    size_t size = 0;
    Done done;
  };
  struct Taking {
    Wanted wanted;
    size_t got = 0;
  };
  enum class Hearing {
    kNew,      // nothing came yet
    kWaiting,  // until its life is connected
    kHeard,
    kDropped,  // what comes is thrown away
  };
  static absl::StatusOr<Peer> Parsed(std::string name, std::string address);
  void Deliver(ParcelOutbox outbox) override ABSL_LOCKS_EXCLUDED(mutex_);

  // The stream towards a peer, which begins with its first use.
  const std::shared_ptr<ParcelWriter>& Open(PeerId id, Peer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(PeerId peer, const absl::Status& why) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<PeerId> Peers() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A stream from or to it ended; a later subject begins another.
  void Break(PeerId peer, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndStreams(PeerId id, Peer& peer, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndOperations(PeerId peer, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnWriterEnded(PeerId id, const ParcelWriter* writer, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  void CountStreams(int more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { quiet_ = (streams_ += more) == 0; }
  void AcceptNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Accept(std::shared_ptr<ParcelReader> reader) ABSL_LOCKS_EXCLUDED(mutex_);
  ParcelReader::Next OnMessage(const std::shared_ptr<ParcelReader>& reader, const grpc::ByteBuffer& message)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnReaderEnded(const std::shared_ptr<ParcelReader>& reader) ABSL_LOCKS_EXCLUDED(mutex_);
  Hearing Hear(const std::shared_ptr<ParcelReader>& reader) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Knows(const ParcelReader& reader) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status On(PeerId from, const ParcelFrame& frame, ParcelFrames& frames) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnParcel(const ParcelLabel& label, HeldParcel held) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OnPiece(PeerId from, const ParcelFrame& frame, ParcelFrames& frames)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnAnswer(PeerId from, const ParcelFrame& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fill(PeerId from, const ParcelLabel& label, Wanted wanted, const HeldParcel& held) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Dispose(const HeldParcel& held) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A frame could not be queued: the error of its parcel.
  absl::Status NotSent(PeerId to, const ParcelLabel& label, const ParcelWriter& writer, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answer(PeerId to, FrameKind kind, uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Tls tls_;
  std::string target_, life_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;  // of both directions
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;  // takes events off the queue

  int streams_ ABSL_GUARDED_BY(mutex_) = 0;    // of which something may still run
  bool quiet_ ABSL_GUARDED_BY(mutex_) = true;  // there are none
  absl::flat_hash_map<PeerId, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::shared_ptr<ParcelReader>, Hearing> readers_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Offer> offers_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_offer_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::pair<PeerId, uint64_t>, Taking> takings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gangway::net

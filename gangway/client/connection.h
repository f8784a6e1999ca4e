// One stream of gangway.v1: requests out, answers by number.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gangway/base/future.h"
#include "gangway/v1/program_service.grpc.pb.h"
#include "grpcpp/grpcpp.h"

namespace gangway::client {

// Thread-safe. Futures are fulfilled on a thread of its own, from which the last reference must not be dropped.
class Connection {
 public:
  // UNAVAILABLE naming the address when no server answers there in time.
  static absl::StatusOr<std::shared_ptr<Connection>> Open(const std::string& address, absl::Duration timeout);
  // Ends the session: what was made in it is freed.
  ~Connection();

  // A number of this session nobody has used, for what a request is to make.
  uint64_t NewNumber() { return next_number_++; }
  // On its way in the order of the calls; the server's error is the future's.
  Future<v1::Response> Send(v1::Request request);
  absl::StatusOr<v1::Response> Ask(v1::Request request, absl::string_view what);
  // Nobody holds the array any more; told along with the next request.
  void Discard(uint64_t array);

 private:
  explicit Connection(std::unique_ptr<v1::Gangway::Stub> stub, absl::Duration timeout);
  void Receive();
  void Write(v1::Request request, const Promise<v1::Response>* answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<v1::Gangway::Stub> stub_;
  const absl::Duration timeout_;
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::Request, v1::Response>> stream_;
  std::atomic<uint64_t> next_number_ = 1;
  absl::Mutex mutex_;
  uint64_t next_request_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<uint64_t, Promise<v1::Response>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> discarded_ ABSL_GUARDED_BY(mutex_);
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // the stream
  std::thread receiver_;
};

}  // namespace gangway::client

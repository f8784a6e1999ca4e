#include "gangway/ifrt_proxy/host_buffer_calls.h"

#include <optional>
#include <utility>

#include "gangway/ifrt_proxy/protocol.h"

namespace gangway::ifrt_proxy {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;

class Lookup final : public LookupReactor {
 public:
  // Once. It may be gone when this returns.
  void Start(absl::StatusOr<std::shared_ptr<HostBuffers>> buffers, uint64_t handle, absl::Time deadline) {
    if (!buffers.ok()) return Finish(ToGrpc(buffers.status()));
    buffers_ = *std::move(buffers);
    leaving_.emplace(*buffers_);
    if (absl::Status many = leaving_->Begin(); !many.ok()) return Finish(ToGrpc(many));
    buffers_->WhenStored(
        handle, [this, handle] { Send(buffers_->Peek(handle)); }, deadline);
  }

 private:
  void Send(absl::StatusOr<SharedBytes> bytes) {
    if (!bytes.ok()) return Finish(ToGrpc(bytes.status()));
    bytes_ = *std::move(bytes);
    absl::Status room = leaving_->Add(static_cast<int64_t>(bytes_->size()));
    room.ok() ? SendNext() : Finish(ToGrpc(room));
  }
  void SendNext() {  // an empty buffer still takes one message
    chunk_.set_data(bytes_->substr(at_, kChunkBytes));
    at_ += kChunkBytes;
    const bool last = at_ >= bytes_->size();
    last ? StartWriteAndFinish(&chunk_, grpc::WriteOptions(), grpc::Status::OK) : StartWrite(&chunk_);
  }
  void OnWriteDone(bool ok) override {
    if (at_ >= bytes_->size()) return;
    ok ? SendNext() : Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }

  std::shared_ptr<HostBuffers> buffers_;
  std::optional<HostBuffers::Leaving> leaving_;  // goes before what it counts in
  SharedBytes bytes_;
  size_t at_ = 0;
  xla::ifrt::proxy::GrpcHostBufferLookupResponse chunk_;
};

}  // namespace

LookupReactor* AnswerLookup(absl::StatusOr<std::shared_ptr<HostBuffers>> buffers, uint64_t handle,
                            absl::Time deadline) {
  auto* lookup = new Lookup;  // until OnDone, which cannot come before gRPC has it
  lookup->Start(std::move(buffers), handle, deadline);
  return lookup;
}

}  // namespace gangway::ifrt_proxy

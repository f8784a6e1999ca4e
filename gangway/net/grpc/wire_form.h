// Messages to and from their wire form, proto/gangway/worker.proto, as frames of a gRPC stream.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/net/message.h"

namespace grpc {
class ByteBuffer;
}

namespace gangway::net {

// Frames for messages, in order. Large payloads are not copied: a frame refers to the payload's memory and holds its
// owner until it is sent. Payloads beyond a chunk are cut, so that neither end holds a frame larger than a few MiB.
std::deque<grpc::ByteBuffer> WriteFrames(const std::vector<Message>& messages);

// What the payloads that arrive become.
enum class PayloadForm {
  kAligned,  // memory aligned for devices to use in place
  kString,   // strings, for those who want one
};

// Turns the frames of one stream back into messages. Each payload is copied once, out of the network's buffers.
class FrameReader {
 public:
  explicit FrameReader(PayloadForm form) : form_(form) {}
  // INVALID_ARGUMENT for what no writer writes; the stream is of no use then.
  absl::StatusOr<std::vector<Message>> Read(const grpc::ByteBuffer& frame);

 private:
  friend class BatchParser;
  // Memory of which nothing is touched before bytes for it are there: what a peer claims costs addresses only.
  struct Block {
    std::shared_ptr<void> owner;
    std::shared_ptr<std::string> text;  // the same as owner, for strings
    char* data = nullptr;
    size_t size = 0;

    // The next `count` bytes, behind the first `filled`, are about to be written.
    char* Next(size_t filled, size_t count) const {
      if (text != nullptr) text->resize(filled + count);
      return data + filled;
    }
  };
  absl::StatusOr<Block> Allocate(uint64_t size) const;

  const PayloadForm form_;
  Block open_;  // being put together from chunks
  size_t filled_ = 0;
  bool is_open_ = false;
  std::deque<Payload> chunked_;  // complete, waiting for their message
};

}  // namespace gangway::net

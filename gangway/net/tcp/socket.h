// TCP connections as plain bytes.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gangway::net {

// A descriptor of one connection, or of a listener. Move-only; closes it when destroyed. Reading, writing and Shutdown
// may happen on different threads.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&&) = delete;
  ~Socket();

  // What has arrived, at most `size` bytes; blocks until there is some. 0: the peer writes no more, or it broke.
  size_t ReadSome(char* to, size_t size) const;
  // False: the connection ended before all were there.
  bool ReadAll(void* to, size_t size) const;
  // False: the connection broke.
  bool WriteAll(const void* from, size_t size) const;
  // The peer reads the end; it may still write.
  void EndWriting() const;
  // Whoever reads, writes or accepts returns at once.
  void Shutdown() const;
  // The next connection to a listener; blocks, also while the process has no descriptor left for it. An invalid one
  // after Shutdown.
  Socket Accept() const;
  // A read that nothing comes for in that time fails from now on; never by default.
  void LimitReads(absl::Duration patience) const;
  bool valid() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  // Of our end.
  int port() const;

 private:
  bool Listens() const;  // until Shutdown

  int descriptor_;
};

// `port` 0: any free one. UNAVAILABLE naming the address when it cannot be listened on.
absl::StatusOr<Socket> ListenTcp(const std::string& host, int port);
// `address` is host:port. UNAVAILABLE naming it when nobody answers there.
absl::StatusOr<Socket> ConnectTcp(absl::string_view address);

// The number of this host's address that connections to `address`, host:port, come from; nothing is sent. UNAVAILABLE
// where no network leads there.
absl::StatusOr<std::string> OwnHostTowards(absl::string_view address);

}  // namespace gangway::net

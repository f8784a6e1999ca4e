#include "gangway/net/tcp/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gangway/base/status.h"
#include "gangway/net/address.h"

namespace gangway::net {
namespace {

constexpr absl::Duration kBetweenTries = absl::Milliseconds(50);

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<Addresses> Resolve(const Address& address, int flags) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  const char* host = address.host.empty() ? nullptr : address.host.c_str();
  if (getaddrinfo(host, absl::StrCat(address.port).c_str(), &hints, &found) != 0 || found == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("no address ", address.host, ":", address.port));
  }
  return Addresses(found, freeaddrinfo);
}

void SendAtOnce(int descriptor) {
  const int yes = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket::~Socket() {
  if (valid()) close(descriptor_);
}

size_t Socket::ReadSome(char* to, size_t size) const {
  ssize_t got = 0;
  do {
    got = recv(descriptor_, to, size, 0);
  } while (got < 0 && errno == EINTR);
  return got > 0 ? static_cast<size_t>(got) : 0;
}

bool Socket::ReadAll(void* to, size_t size) const {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    const size_t got = ReadSome(at, size);
    if (got == 0) return false;
    at += got;
    size -= got;
  }
  return true;
}

bool Socket::WriteAll(const void* from, size_t size) const {
  const char* at = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t sent = send(descriptor_, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

void Socket::EndWriting() const { shutdown(descriptor_, SHUT_WR); }

void Socket::Shutdown() const { shutdown(descriptor_, SHUT_RDWR); }

bool Socket::Listens() const {
  int listens = 0;
  socklen_t size = sizeof listens;
  return getsockopt(descriptor_, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
}

Socket Socket::Accept() const {
  int accepted = -1;
  do {
    accepted = accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
    // There will be descriptors or memory again; the connection waits.
    const bool full = accepted < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
    if (full) absl::SleepFor(kBetweenTries);
  } while (accepted < 0 && Listens());
  if (accepted >= 0) SendAtOnce(accepted);
  return Socket(accepted);
}

void Socket::LimitReads(absl::Duration patience) const {
  const timeval limit = patience == absl::InfiniteDuration() ? timeval{} : absl::ToTimeval(patience);
  setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

int Socket::port() const {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

absl::StatusOr<Socket> ListenTcp(const std::string& host, int port) {
  GW_ASSIGN_OR_RETURN(const Addresses found, Resolve({host, port}, AI_PASSIVE));
  Socket listener(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (listener.valid() && bind(listener.descriptor(), found->ai_addr, found->ai_addrlen) == 0 &&
      listen(listener.descriptor(), 64) == 0) {
    return listener;
  }
  return absl::UnavailableError(absl::StrCat("cannot listen on ", host, ":", port, ": ", std::strerror(errno)));
}

absl::StatusOr<Socket> ConnectTcp(absl::string_view address) {
  GW_ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address));
  GW_ASSIGN_OR_RETURN(const Addresses found, Resolve(parsed, 0));
  Socket connection(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connection.valid() && connect(connection.descriptor(), found->ai_addr, found->ai_addrlen) == 0) {
    SendAtOnce(connection.descriptor());
    return connection;
  }
  return absl::UnavailableError(absl::StrCat("nobody answers at ", address, ": ", std::strerror(errno)));
}

absl::StatusOr<std::string> OwnHostTowards(absl::string_view text) {
  GW_ASSIGN_OR_RETURN(Address address, ParseAddress(text));
  GW_ASSIGN_OR_RETURN(Addresses found, Resolve(address, 0));
  const Socket socket(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  char host[NI_MAXHOST];
  const bool told =
      socket.valid() && connect(socket.descriptor(), found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
      getnameinfo(reinterpret_cast<sockaddr*>(&own), size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) == 0;
  if (!told) return absl::UnavailableError(absl::StrCat("no network leads to ", text));
  return std::string(host);
}

}  // namespace gangway::net

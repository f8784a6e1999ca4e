// Bytes between a socket and a stream of pieces: what both ends of a tunnel have in common.
#pragma once

#include <memory>

#include "gangway/net/tcp/socket.h"
#include "gangway/v1/tunnel_service.grpc.pb.h"

namespace gangway::tunnel {

inline constexpr char kPortMetadata[] = "gangway-port";
inline constexpr size_t kPieceBytes = size_t{256} << 10;

// Until the socket's peer writes no more, or the stream is broken. Blocks.
template <typename Stream>
void SocketToStream(const net::Socket& socket, Stream& stream) {
  const auto buffer = std::make_unique<char[]>(kPieceBytes);
  v1::Piece piece;
  while (const size_t size = socket.ReadSome(buffer.get(), kPieceBytes)) {
    piece.set_data(buffer.get(), size);
    if (!stream.Write(piece)) return socket.Shutdown();
  }
  stream.Write(v1::Piece());
}

// Until the stream's end, which ends that direction of the socket, or the socket is broken. Blocks.
template <typename Stream>
void StreamToSocket(Stream& stream, const net::Socket& socket) {
  v1::Piece piece;
  while (stream.Read(&piece) && !piece.data().empty()) {
    if (!socket.WriteAll(piece.data().data(), piece.data().size())) return;
  }
  socket.EndWriting();
}

}  // namespace gangway::tunnel

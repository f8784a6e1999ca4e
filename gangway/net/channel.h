// A connection between a controller and a worker: ordered messages both ways, and one reason why it ended.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gangway/net/message.h"

namespace gangway::net {

// Called on a thread of the channel, never two at a time for one channel, with nothing locked: post to the owner's loop
// (a Strand makes that free).
struct ChannelHandler {
  std::function<void(std::vector<Message>)> on_messages;  // in the order sent, as many as arrived together
  // Once, after the last message. The reason is the peer's, the network's or that of the own Close; never OK.
  std::function<void(const absl::Status&)> on_close;
};

// Send, SendLater and Flush belong to the loop that owns the channel; Close may be called from anywhere.
class Channel {
 public:
  // Closes. No handler runs once the destructor has returned, so it must not be called from a handler.
  virtual ~Channel() = default;

  // Once, before anything is delivered.
  virtual void Start(ChannelHandler handler) = 0;

  // Puts the message on its way, with whatever waits before it, and returns at once. UNAVAILABLE once closed,
  // RESOURCE_EXHAUSTED when the peer is too far behind (the channel's bound in bytes), INVALID_ARGUMENT for what no
  // message holds; the message is dropped then.
  virtual absl::Status Send(Message message) = 0;
  // The same, but it may wait for the next Send or Flush: news that nobody waits for costs no write of its own.
  virtual absl::Status SendLater(Message message) = 0;
  virtual void Flush() = 0;

  // What was sent before is still delivered where the network allows; then the peer learns the reason.
  virtual void Close(absl::Status reason) = 0;

  virtual std::string peer() const = 0;  // for messages
};

// Takes connections until it is destroyed.
class Server {
 public:
  virtual ~Server() = default;
  virtual std::string address() const = 0;  // as others connect to it, with the port the system chose
};

// Receives each new connection, on a thread of the server; the channel is not started yet.
using AcceptHandler = std::function<void(std::unique_ptr<Channel>)>;

}  // namespace gangway::net

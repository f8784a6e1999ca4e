// The door for the functions of stock JAX clients. jaxlib's client speaks the protocol of host callbacks but does not
// run them ("ExecuteLoadedHostCallback is unsupported"), so our JAX plugin opens a connection of its own, on which
// calls come and results go. docs/decisions/0042-host-callbacks.md has the frames.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "gangway/base/executor.h"
#include "gangway/ifrt_proxy/session.h"

namespace gangway::ifrt_proxy {

// Serves until destroyed, which closes every connection first. Each connection has two threads; everything of sessions
// happens on `loop`. A connection that says something wrong is closed, and touches nothing else.
class CallbackServer {
 public:
  // The session of an id, if it is open and its secret is this one. Any thread.
  using FindSession = std::function<std::shared_ptr<Session>(uint64_t session, uint64_t secret)>;

  virtual ~CallbackServer() = default;
  virtual int port() const = 0;
};

// Listens on a free port of `host`, e.g. "127.0.0.1".
absl::StatusOr<std::unique_ptr<CallbackServer>> StartCallbackServer(const std::string& host, Executor& loop,
                                                                    CallbackServer::FindSession find_session);

}  // namespace gangway::ifrt_proxy

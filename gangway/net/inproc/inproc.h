// Both ends of a connection in one process: messages are moved, bytes are shared, nobody is woken.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "gangway/net/channel.h"

namespace gangway::net {

// Two ends of one connection. A message is handled on the sender's thread before Send returns, unless the receiver is
// busy with an earlier one; then that thread handles it next. The ends may be destroyed in any order.
std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> MakeInprocPair(std::string name);

}  // namespace gangway::net

#include "gangway/net/message.h"

#include <array>

namespace gangway::net {

const char* MessageName(const Message& message) {
  static constexpr std::array<const char*, std::variant_size_v<Message>> kNames = {
      "hello",       "program_loaded",   "tasks_done",     "fetched",     "heartbeat", "welcome",
      "load",        "unload",           "make_buffer",    "expect",      "copy",      "launch",
      "fetch_shard", "free_buffers",     "poison_buffers", "watch_tasks", "peer",      "peer_lost",
      "host_call",   "host_call_answer", "mark",           "reached",     "leaving",   "patch"};
  return kNames[message.index()];
}

}  // namespace gangway::net

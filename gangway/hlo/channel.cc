#include "gangway/hlo/channel.h"

#include <algorithm>

namespace gangway::hlo {

int64_t FirstFreeChannel(const Module& module) {
  int64_t channel = 1;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      const auto* attr = instruction->attr_if<CollectiveAttr>();
      if (attr != nullptr && attr->channel_id) channel = std::max(channel, *attr->channel_id + 1);
    }
  }
  return channel;
}

}  // namespace gangway::hlo

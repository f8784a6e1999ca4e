#include "gangway/controller/records.h"

#include <algorithm>

namespace gangway::controller {

std::shared_ptr<SharedShard>& ArrayRecord::Share(int position) {
  if (shared.empty()) shared.resize(layout->spec.devices.size());
  std::shared_ptr<SharedShard>& shard = shared[position];
  if (shard == nullptr) shard = std::make_shared<SharedShard>();
  return shard;
}

bool ArrayRecord::IsDeleted() const {
  return deleted || std::any_of(shared.begin(), shared.end(), [](const auto& s) { return s != nullptr && s->gone; });
}

bool ArrayRecord::HasCopiesInPlace() const {
  return std::any_of(shared.begin(), shared.end(),
                     [](const auto& shard) { return shard != nullptr && shard->bytes.use_count() > 1; });
}

}  // namespace gangway::controller

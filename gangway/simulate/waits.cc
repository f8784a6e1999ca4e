#include "gangway/simulate/waits.h"

#include <algorithm>

#include "gangway/cost/collective_bytes.h"

namespace gangway::simulate {

std::vector<cost::Wait> LongestWaits(const cost::Timeline& timeline, size_t most) {
  std::vector<cost::Wait> waits = timeline.waits;
  std::stable_sort(waits.begin(), waits.end(),
                   [](const cost::Wait& a, const cost::Wait& b) { return a.seconds > b.seconds; });
  waits.resize(std::min(waits.size(), most));
  return waits;
}

std::string KindOf(const cost::Wait& wait) {
  const hlo::Instruction* collective = cost::CollectiveOf(*wait.collective);
  if (collective == nullptr) return std::string(hlo::OpcodeName(wait.collective->opcode()));
  return std::string(hlo::OpcodeName(*cost::CollectiveKind(collective->opcode())));
}

explain::Place PlaceOf(const cost::Wait& wait) {
  const hlo::OpMetadata& metadata = wait.collective->metadata();
  return {wait.collective->name(), metadata.op_name, metadata.source_file, metadata.source_line};
}

}  // namespace gangway::simulate

#include "gangway/compile/donors.h"

#include <cstdint>
#include <set>
#include <vector>

namespace gangway::compile {
namespace {

// Null when there is no such parameter.
const Shape* LeafOf(const hlo::Module& module, int64_t parameter, const DimVector& path) {
  const auto& parameters = module.entry()->parameters();
  if (parameter < 0 || parameter >= static_cast<int64_t>(parameters.size())) return nullptr;
  const Shape* at = &parameters[parameter]->shape();
  for (int64_t index : path) {
    if (!at->IsTuple() || index < 0 || index >= static_cast<int64_t>(at->tuple().size())) return nullptr;
    at = &at->tuple()[index];
  }
  return at;
}

}  // namespace

void DropUselessDonors(hlo::Module* module) {
  hlo::ModuleConfig& config = module->config();
  if (config.donors.empty()) return;
  std::multiset<int64_t> free;  // sizes of outputs without memory yet
  for (const Shape& leaf : Leaves(module->entry()->root()->shape())) free.insert(leaf.ByteSize());
  const auto take = [&free](const Shape* leaf) {
    const auto found = leaf == nullptr ? free.end() : free.find(leaf->ByteSize());
    if (found == free.end()) return false;
    free.erase(found);
    return true;
  };
  for (const hlo::InputOutputAlias& alias : config.aliases) {
    take(LeafOf(*module, alias.parameter, alias.parameter_index));
  }
  std::erase_if(config.donors, [&](const hlo::BufferDonor& donor) {
    return !take(LeafOf(*module, donor.parameter, donor.parameter_index));
  });
}

}  // namespace gangway::compile

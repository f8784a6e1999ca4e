#include "gangway/explain/program.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gangway/explain/spec.h"

namespace gangway::explain {
namespace {

constexpr size_t kMaxPathLength = 64;

}  // namespace

std::string Place::ToString() const {
  const size_t slash = op_name.rfind('/');
  std::string text = op_name.empty() ? instruction : slash == std::string::npos ? op_name : op_name.substr(slash + 1);
  if (!file.empty()) absl::StrAppend(&text, " (", file.substr(file.rfind('/') + 1), ":", line, ")");
  return text;
}

Program::Program(const hlo::Module& completed, const propagate::PropagationReport& report) : module_(completed) {
  for (const auto& computation : module_.computations()) {
    for (const auto& instruction : computation->instructions()) by_name_[instruction->name()] = instruction.get();
  }
  for (const propagate::Origin& origin : report.origins) {
    for (absl::string_view axis : absl::StrSplit(absl::StripSuffix(absl::StripPrefix(origin.axes, "{"), "}"), ',')) {
      origins_.try_emplace({origin.instruction, std::string(axis)}, &origin);
    }
  }
}

const hlo::Instruction* Program::Find(absl::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

Place Program::PlaceOf(absl::string_view name) const {
  Place place;
  place.instruction = std::string(name);
  if (const hlo::Instruction* instruction = Find(name)) {
    place.op_name = instruction->metadata().op_name;
    place.file = instruction->metadata().source_file;
    place.line = instruction->metadata().source_line;
  }
  return place;
}

std::vector<Path> Program::PathsOf(absl::string_view instruction, const Sharding& sharding) const {
  std::vector<Path> paths;
  for (int64_t dim = 0; dim < sharding.rank(); ++dim) {
    if (!sharding.IsSplit(dim)) continue;
    Path path;
    path.dim = dim;
    path.axes = AxisNames(*sharding.mesh, sharding.dims[dim].axes);
    const std::string axis = path.axes.substr(0, path.axes.find(','));
    std::string at(instruction);
    absl::flat_hash_set<std::string> seen;
    while (path.places.size() < kMaxPathLength && seen.insert(at).second) {
      path.places.push_back(PlaceOf(at));
      auto origin = origins_.find({at, axis});
      if (origin == origins_.end()) break;
      at = origin->second->from;
    }
    std::reverse(path.places.begin(), path.places.end());
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace gangway::explain

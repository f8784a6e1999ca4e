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
      origins_.try_emplace({{origin.instruction, origin.leaf}, std::string(axis)}, &origin);
    }
  }
  for (const propagate::SharedLeaf& shared : report.shared_leaves) {
    const Leaf first(shared.first, shared.first_leaf);
    first_.emplace(Leaf(shared.instruction, shared.leaf), first);
    const hlo::Instruction* instruction = Find(shared.instruction);
    if (instruction != nullptr && instruction->shape().IsArray()) array_like_.emplace(first, shared.instruction);
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

// Users know arrays, not the tuples that loops carry them in.
Place Program::PlaceOfLeaf(const Leaf& leaf) const {
  const hlo::Instruction* instruction = Find(leaf.first);
  const auto array = array_like_.find(leaf);
  const bool is_tuple = instruction != nullptr && !instruction->shape().IsArray();
  return PlaceOf(is_tuple && array != array_like_.end() ? array->second : leaf.first);
}

Path Program::PathOf(Leaf leaf, int64_t dim, std::string axes) const {
  Path path{dim, std::move(axes), {}};
  const std::string axis = path.axes.substr(0, path.axes.find(','));
  absl::flat_hash_set<Leaf> seen;
  while (path.places.size() < kMaxPathLength) {
    path.places.push_back(PlaceOfLeaf(leaf));
    if (const auto first = first_.find(leaf); first != first_.end()) leaf = first->second;
    if (!seen.insert(leaf).second) break;
    const auto origin = origins_.find({leaf, axis});
    if (origin == origins_.end()) break;
    leaf = {origin->second->from, origin->second->from_leaf};
  }
  std::reverse(path.places.begin(), path.places.end());
  return path;
}

std::vector<Path> Program::PathsOf(absl::string_view instruction, const Sharding& sharding) const {
  std::vector<Path> paths;
  for (int64_t dim = 0; dim < sharding.rank(); ++dim) {
    if (!sharding.IsSplit(dim)) continue;
    paths.push_back(PathOf({std::string(instruction), 0}, dim, AxisNames(*sharding.mesh, sharding.dims[dim].axes)));
  }
  return paths;
}

}  // namespace gangway::explain

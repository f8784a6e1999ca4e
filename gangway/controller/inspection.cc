#include "gangway/controller/inspection.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gangway/base/mix.h"
#include "gangway/mesh/geometry.h"
#include "nlohmann/json.hpp"

namespace gangway::controller {
namespace {

std::string Where(const Inspection& inspection, const InspectedOutput& output) {
  return absl::StrCat("program ", inspection.program, ", run ", inspection.run, ", output ", output.index, " (",
                      output.name.empty() ? "" : absl::StrCat(output.name, ", "), output.shape, ")");
}

// Of the whole array: every part once, in order.
uint64_t HashOf(const InspectedOutput& output) {
  std::map<int, uint64_t> parts;
  for (size_t i = 0; i < output.digests.size(); ++i) {
    parts.emplace(i < output.part_of.size() ? output.part_of[i] : static_cast<int>(i), output.digests[i].hash);
  }
  uint64_t hash = 0;
  for (const auto& [part, of_part] : parts) hash = Mix(hash, of_part);
  return hash;
}

}  // namespace

std::vector<int> PartsOf(const ArraySpec& spec) {
  if (!spec.sharding.has_value() || spec.sharding->mesh == nullptr || spec.sharding->IsMaximal()) return {};
  const Shape shape(spec.dtype, spec.dims);
  if (!IsEven(shape, *spec.sharding)) return {};
  const Mesh& mesh = *spec.sharding->mesh;
  if (mesh.size() != static_cast<int64_t>(spec.devices.size())) return {};
  std::map<std::vector<int64_t>, int> numbers;
  std::vector<int> parts(mesh.size());
  for (int64_t position = 0; position < mesh.size(); ++position) {
    std::vector<int64_t> offsets;
    for (const ShardDim& dim : ShardOf(shape, *spec.sharding, position)) offsets.push_back(dim.offset);
    parts[mesh.DeviceAt(position)] =
        numbers.emplace(std::move(offsets), static_cast<int>(numbers.size())).first->second;
  }
  return parts;
}

bool HasReplicas(const std::vector<int>& part_of) {
  return std::set<int>(part_of.begin(), part_of.end()).size() < part_of.size();
}

std::optional<std::string> FindDivergence(const Inspection& inspection) {
  for (const InspectedOutput& output : inspection.outputs) {
    std::map<int, size_t> first;  // of each part
    for (size_t i = 0; i < output.part_of.size(); ++i) {
      const size_t other = first.emplace(output.part_of[i], i).first->second;
      if (output.digests[i].hash == output.digests[other].hash) continue;
      return absl::StrCat(Where(inspection, output), ": replicas differ: ", inspection.devices[other], " and ",
                          inspection.devices[i]);
    }
  }
  return std::nullopt;
}

std::optional<std::string> FindNan(const Inspection& inspection) {
  for (const InspectedOutput& output : inspection.outputs) {
    for (size_t i = 0; i < output.digests.size(); ++i) {
      if (!output.digests[i].has_nan) continue;
      return absl::StrCat(Where(inspection, output), ": NaN on ", inspection.devices[i]);
    }
  }
  return std::nullopt;
}

std::string RecordOf(const Inspection& inspection) {
  nlohmann::ordered_json json = {{"program", inspection.program}, {"run", inspection.run}};
  json["outputs"] = nlohmann::ordered_json::array();
  for (const InspectedOutput& output : inspection.outputs) {
    json["outputs"].push_back(
        {{"name", output.name}, {"shape", output.shape}, {"hash", absl::StrFormat("%016x", HashOf(output))}});
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace gangway::controller

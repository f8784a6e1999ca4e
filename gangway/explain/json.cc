// An explanation for programs.
#include <nlohmann/json.hpp>

#include "gangway/explain/explain.h"

namespace gangway::explain {
namespace {

using Json = nlohmann::ordered_json;

Json ToJsonValue(const Place& place) {
  return {{"instruction", place.instruction}, {"op_name", place.op_name}, {"file", place.file}, {"line", place.line}};
}

Json ToJsonValue(const std::vector<Path>& paths) {
  Json list = Json::array();
  for (const Path& path : paths) {
    Json places = Json::array();
    for (const Place& place : path.places) places.push_back(ToJsonValue(place));
    list.push_back({{"dim", path.dim}, {"axes", path.axes}, {"places", places}});
  }
  return list;
}

Json ToJsonValue(const Cause& cause) {
  Json json = {{"wanted_by", ToJsonValue(cause.wanted_by)}};
  if (!cause.is_reshard) return json;
  json["value"] = ToJsonValue(cause.value);
  json["shape"] = cause.shape;
  json["from"] = cause.from;
  json["to"] = cause.to;
  json["from_paths"] = ToJsonValue(cause.from_paths);
  json["to_paths"] = ToJsonValue(cause.to_paths);
  json["plan"] = cause.plan;
  json["others"] = Json::array();
  for (const auto& [from, cost] : cause.others) json["others"].push_back({{"from", from}, {"cost", cost}});
  return json;
}

Json ToJsonValue(const Collective& collective) {
  Json json = {{"name", collective.name},
               {"kind", collective.kind},
               {"computation", collective.computation},
               {"axes", collective.axes},
               {"executions", collective.executions},
               {"bytes_received_per_device", collective.bytes},
               {"seconds", collective.seconds},
               {"share", collective.share},
               {"causes", Json::array()}};
  for (const Cause& cause : collective.causes) json["causes"].push_back(ToJsonValue(cause));
  json["remedies_tried"] = collective.remedies_tried;
  json["remedy"] = nullptr;
  if (const std::optional<Remedy>& remedy = collective.remedy) {
    json["remedy"] = {{"place", ToJsonValue(remedy->place)},
                      {"where", remedy->where},
                      {"spec", remedy->spec},
                      {"bytes_before", remedy->bytes_before},
                      {"bytes_after", remedy->bytes_after},
                      {"seconds_before", remedy->seconds_before},
                      {"seconds_after", remedy->seconds_after},
                      {"pays", remedy->pays()}};
  }
  return json;
}

Json ToJsonValue(const Tensor& tensor) {
  return {{"shape", tensor.shape},
          {"sharding", tensor.sharding},
          {"bytes", tensor.bytes},
          {"bytes_per_device", tensor.bytes_per_device}};
}

}  // namespace

std::string ToJson(const Explanation& explanation) {
  Json json = {{"program", explanation.program},
               {"devices", explanation.devices},
               {"mesh", explanation.mesh},
               {"machine", explanation.machine},
               {"bytes_received_per_device", explanation.bytes},
               {"seconds", explanation.seconds},
               {"collectives", Json::array()},
               {"inputs", Json::array()},
               {"outputs", Json::array()},
               {"tensors", Json::array()},
               {"replicated_fallbacks", Json::array()},
               {"conflicts", explanation.conflicts}};
  for (const Collective& collective : explanation.collectives) json["collectives"].push_back(ToJsonValue(collective));
  for (const Tensor& tensor : explanation.inputs) json["inputs"].push_back(ToJsonValue(tensor));
  for (const Tensor& tensor : explanation.outputs) json["outputs"].push_back(ToJsonValue(tensor));
  for (const Tensor& tensor : explanation.tensors) {
    Json with_place = {{"place", ToJsonValue(tensor.place)}};
    with_place.update(ToJsonValue(tensor));
    with_place["paths"] = ToJsonValue(tensor.paths);
    json["tensors"].push_back(std::move(with_place));
  }
  for (const compile::ReplicatedFallback& fallback : explanation.fallbacks) {
    json["replicated_fallbacks"].push_back(
        {{"instruction", fallback.instruction}, {"reason", fallback.reason}, {"bytes", fallback.bytes}});
  }
  // Names may hold bytes that are no UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gangway::explain

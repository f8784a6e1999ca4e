// A forecast for programs.
#include <nlohmann/json.hpp>

#include "gangway/simulate/forecast.h"
#include "gangway/simulate/waits.h"

namespace gangway::simulate {
namespace {

using Json = nlohmann::ordered_json;

Json WaitJson(const cost::Wait& wait) {
  return {{"collective", wait.collective->name()},
          {"kind", KindOf(wait)},
          {"seconds", wait.seconds},
          {"runs", wait.runs},
          {"place", PlaceOf(wait).ToString()}};
}

}  // namespace

std::string ToJson(const Forecast& forecast, size_t most_waits) {
  const cost::Timeline& timeline = forecast.timeline;
  Json json = {{"program", forecast.name},
               {"devices", forecast.devices},
               {"machine", forecast.machine.name},
               {"island_devices", forecast.machine.island_devices},
               {"seconds", timeline.seconds},
               {"seconds_in_order", forecast.seconds_in_order},
               {"compute_seconds", timeline.compute_seconds},
               {"collective_seconds", timeline.collective_seconds},
               {"waited_seconds", timeline.waited_seconds},
               {"arithmetic_share", forecast.arithmetic_share},
               {"bytes_received_per_device", forecast.bytes_received},
               {"memory_bytes_per_device", forecast.memory.total()},
               {"machine_memory_bytes", forecast.machine.device.memory_bytes},
               {"waits", Json::array()},
               {"unknown_loops", forecast.unknown_loops}};
  for (const cost::Wait& wait : LongestWaits(timeline, most_waits)) json["waits"].push_back(WaitJson(wait));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gangway::simulate

#include "gangway/status/json.h"

#include "nlohmann/json.hpp"

namespace gangway::status {
namespace {

using nlohmann::json;

double Seconds(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

json Of(const controller::WorkerState& worker) {
  return {{"name", worker.name},
          {"island", worker.island},
          {"first_device", worker.first_device},
          {"devices", worker.devices},
          {"alive", worker.alive},
          {"last_heard", Seconds(worker.last_heard)},
          {"store_bytes", worker.store_bytes},
          {"store_buffers", worker.store_buffers},
          {"pending_tasks", worker.pending_tasks},
          {"sent_bytes", worker.sent_bytes},
          {"received_bytes", worker.received_bytes}};
}

json Of(const controller::SessionState& session) {
  return {{"name", session.name},
          {"tenant", session.tenant},
          {"weight", session.weight},
          {"priority", session.priority},
          {"waiting", session.waiting},
          {"launches", session.launches},
          {"device_seconds", absl::ToDoubleSeconds(session.device_time)}};
}

json Of(const controller::ProgramState& program) {
  return {{"number", program.number},
          {"name", program.name},
          {"devices", program.devices},
          {"launches", program.launches},
          {"seconds", absl::ToDoubleSeconds(program.device_time)}};
}

json Of(const controller::LaunchRecord& launch) {
  json islands = json::array(), devices = json::array();
  for (const controller::IslandPart& part : *launch.islands) {
    islands.push_back(part.island);
    for (int device : part.devices) devices.push_back(device);
  }
  json out = {{"number", launch.number},
              {"program", launch.program},
              {"session", launch.session},
              {"tenant", launch.tenant},
              {"islands", std::move(islands)},
              {"devices", std::move(devices)},
              {"submitted", Seconds(launch.submitted)},
              {"over", Seconds(launch.over)},
              {"seconds", absl::ToDoubleSeconds(launch.took)}};
  if (launch.dispatched > absl::InfinitePast()) out["dispatched"] = Seconds(launch.dispatched);
  if (!launch.error.empty()) out["error"] = launch.error;
  return out;
}

template <typename T>
json ListOf(const std::vector<T>& values) {
  json list = json::array();
  for (const T& value : values) list.push_back(Of(value));
  return list;
}

}  // namespace

std::string StatusJson(const controller::Observation& seen) {
  const json out = {{"when", Seconds(seen.when)},
                    {"totals",
                     {{"sessions", seen.totals.sessions},
                      {"arrays", seen.totals.arrays},
                      {"programs", seen.totals.programs},
                      {"pending_launches", seen.totals.pending_launches},
                      {"waiting_for_memory", seen.totals.waiting_for_memory},
                      {"store_bytes", seen.totals.store_bytes},
                      {"launches", seen.launches},
                      {"failed_launches", seen.failed_launches},
                      {"launch_messages", seen.launch_messages}}},
                    {"workers", ListOf(seen.workers)},
                    {"sessions", ListOf(seen.sessions)},
                    {"programs", ListOf(seen.programs)},
                    {"recent", ListOf(seen.recent)}};
  // Names are the clients': what is not UTF-8 in them must not keep the rest from being shown.
  return out.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

}  // namespace gangway::status

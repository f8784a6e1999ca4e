#include "gangway/status/json.h"

#include "gangway/status/json_writer.h"

namespace gangway::status {
namespace {

void Write(const controller::WorkerState& worker, JsonWriter* out) {
  out->Open('{');
  out->Key("name").Text(worker.name).Key("island").Number(worker.island);
  out->Key("first_device").Number(worker.first_device).Key("devices").Number(worker.devices);
  out->Key("alive").Bool(worker.alive).Key("last_heard").Seconds(worker.last_heard);
  out->Key("store_bytes").Number(worker.store_bytes).Key("store_buffers").Number(worker.store_buffers);
  out->Key("pending_tasks").Number(worker.pending_tasks);
  out->Key("sent_bytes").Number(worker.sent_bytes).Key("received_bytes").Number(worker.received_bytes);
  out->Close('}');
}

void Write(const controller::SessionState& session, JsonWriter* out) {
  out->Open('{');
  out->Key("name").Text(session.name).Key("tenant").Text(session.tenant);
  out->Key("weight").Number(session.weight).Key("priority").Number(session.priority);
  out->Key("waiting").Number(session.waiting).Key("launches").Number(session.launches);
  out->Key("device_seconds").Seconds(session.device_time);
  out->Close('}');
}

void Write(const controller::ProgramState& program, JsonWriter* out) {
  out->Open('{');
  out->Key("number").Number(program.number).Key("name").Text(*program.name);
  out->Key("devices").Number(program.devices).Key("launches").Number(program.launches);
  out->Key("seconds").Seconds(program.device_time);
  out->Close('}');
}

void Write(const controller::LaunchRecord& launch, JsonWriter* out) {
  out->Open('{');
  out->Key("number").Number(launch.number).Key("program").Text(*launch.program);
  out->Key("session").Text(launch.client->session).Key("tenant").Text(launch.client->tenant);
  out->Key("islands").Open('[');
  for (const controller::IslandPart& part : *launch.islands) out->Number(part.island);
  out->Close(']').Key("devices").Open('[');
  for (const controller::IslandPart& part : *launch.islands) {
    for (int device : part.devices) out->Number(device);
  }
  out->Close(']');
  out->Key("submitted").Seconds(launch.submitted).Key("over").Seconds(launch.over);
  out->Key("seconds").Seconds(launch.took);
  if (launch.dispatched > absl::InfinitePast()) out->Key("dispatched").Seconds(launch.dispatched);
  if (!launch.error.empty()) out->Key("error").Text(launch.error);
  out->Close('}');
}

template <typename T>
void WriteAll(const std::vector<T>& values, JsonWriter* out) {
  out->Open('[');
  for (const T& value : values) Write(value, out);
  out->Close(']');
}

}  // namespace

std::string StatusJson(const controller::Observation& seen, const std::vector<controller::ProgramState>& programs,
                       const controller::LaunchList& recent) {
  JsonWriter out;
  out.Open('{').Key("when").Seconds(seen.when).Key("totals").Open('{');
  out.Key("sessions").Number(seen.totals.sessions).Key("arrays").Number(seen.totals.arrays);
  out.Key("programs").Number(seen.totals.programs);
  out.Key("pending_launches").Number(seen.totals.pending_launches);
  out.Key("waiting_for_memory").Number(seen.totals.waiting_for_memory);
  out.Key("store_bytes").Number(seen.totals.store_bytes).Key("launches").Number(seen.launches);
  out.Key("failed_launches").Number(seen.failed_launches).Key("launch_messages").Number(seen.launch_messages);
  out.Key("device_seconds").Seconds(seen.device_time);
  out.Close('}').Key("workers");
  WriteAll(seen.workers, &out);
  out.Key("sessions");
  WriteAll(seen.sessions, &out);
  out.Key("programs");
  WriteAll(programs, &out);
  out.Key("recent").Open('[');
  recent.ForEach([&](const controller::LaunchRecord& launch) { Write(launch, &out); });
  out.Close(']').Close('}');
  return out.Take();
}

}  // namespace gangway::status

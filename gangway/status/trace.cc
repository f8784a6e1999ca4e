#include "gangway/status/trace.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gangway::status {
namespace {

using controller::LaunchRecord;
using controller::TransferSample;

// Rows are threads of these processes.
constexpr int kClients = 1, kSchedulers = 2, kDevices = 3, kTransfers = 4;

// What is told of a launch, once: on its client's row.
std::string ArgumentsOf(const LaunchRecord& launch) {
  JsonWriter out;
  out.Open('{').Key("launch").Number(launch.number);
  out.Key("session").Text(launch.client->session).Key("tenant").Text(launch.client->tenant);
  if (!launch.error.empty()) out.Key("error").Text(launch.error);
  return out.Close('}').Take();
}

}  // namespace

Trace::Trace() {
  out_.Open('{').Key("displayTimeUnit").Text("ms").Key("traceEvents").Open('[');
  NameProcess(kClients, "clients");
  NameProcess(kSchedulers, "schedulers");
  NameProcess(kDevices, "devices");
  NameProcess(kTransfers, "transfers");
}

void Trace::Add(const LaunchRecord& launch) {
  const auto [entry, fresh] = clients_.try_emplace(launch.client->session, static_cast<int>(clients_.size()));
  const int client = entry->second;
  if (fresh) NameRow(kClients, client, launch.client->session);
  // Launches of one client overlap: asynchronous events may.
  for (const auto& [phase, when] : {std::pair("b", launch.submitted), std::pair("e", launch.over)}) {
    Begin(phase, kClients, client, *launch.program, when).Key("cat").Text("launch");
    out_.Key("id").Text(absl::StrCat(launch.number));
    if (*phase == 'b') out_.Key("args").Written(ArgumentsOf(launch));
    out_.Close('}');
  }
  if (launch.dispatched == absl::InfinitePast()) return;
  for (const controller::IslandPart& part : *launch.islands) {
    AddInIsland(launch, part);
    AddOnDevices(launch, part.devices);
  }
}

void Trace::AddInIsland(const LaunchRecord& launch, const controller::IslandPart& part) {
  if (islands_.insert(part.island).second) NameRow(kSchedulers, part.island, absl::StrCat("island ", part.island));
  for (const auto& [phase, when] : {std::pair("b", launch.submitted), std::pair("e", launch.dispatched)}) {
    Begin(phase, kSchedulers, part.island, *launch.program, when).Key("cat").Text("wait");
    // Or the islands' rows would be one.
    out_.Key("id").Text(absl::StrCat(launch.number, " in ", part.island)).Close('}');
  }
}

// When a device began is not told: not before the launch was sent, nor before the one ahead of it was over.
void Trace::AddOnDevices(const LaunchRecord& launch, const std::vector<int>& devices) {
  for (int device : devices) {
    const auto [free, fresh] = free_.try_emplace(device, absl::InfinitePast());
    if (fresh) NameRow(kDevices, device, absl::StrCat("device ", device));
    const absl::Time start = std::max(launch.dispatched, free->second);
    free->second = start + launch.took;
    Begin("X", kDevices, device, *launch.program, start).Key("dur").Microseconds(launch.took);
    out_.Key("args").Open('{').Key("launch").Number(launch.number).Close('}').Close('}');
  }
}

void Trace::Add(const TransferSample& sample) {
  const auto [last, fresh] = transfers_.try_emplace(sample.worker, sample);
  const TransferSample before = std::exchange(last->second, sample);
  const double seconds = absl::ToDoubleSeconds(sample.when - before.when);
  if (fresh || seconds <= 0 || sample.sent_bytes < before.sent_bytes) return;
  const auto rate = [seconds](int64_t now, int64_t then) { return static_cast<int64_t>((now - then) / seconds); };
  Begin("C", kTransfers, 0, absl::StrCat("bytes/s of ", sample.worker), before.when).Key("args").Open('{');
  out_.Key("sent").Number(rate(sample.sent_bytes, before.sent_bytes));
  out_.Key("received").Number(rate(sample.received_bytes, before.received_bytes)).Close('}').Close('}');
}

void Trace::AddMissing(uint64_t launches, absl::Time when) {
  Begin("i", kClients, 0, absl::StrCat(launches, " launches are missing: more than --history keeps"), when);
  out_.Key("s").Text("g").Close('}');
}

std::string Trace::Finish() { return absl::StrCat(out_.Close(']').Close('}').Take(), "\n"); }

JsonWriter& Trace::Begin(const char* phase, int process, int row) {
  return out_.Line().Open('{').Key("ph").Text(phase).Key("pid").Number(process).Key("tid").Number(row);
}

JsonWriter& Trace::Begin(const char* phase, int process, int row, absl::string_view name, absl::Time when) {
  return Begin(phase, process, row).Key("name").Text(name).Key("ts").Microseconds(when);
}

void Trace::NameProcess(int process, const char* name) {
  Begin("M", process, 0).Key("name").Text("process_name").Key("args").Open('{').Key("name").Text(name);
  out_.Close('}').Close('}');
}

void Trace::NameRow(int process, int row, absl::string_view name) {
  Begin("M", process, row).Key("name").Text("thread_name").Key("args").Open('{').Key("name").Text(name);
  out_.Close('}').Close('}');
}

}  // namespace gangway::status

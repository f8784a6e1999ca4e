#include "gangway/status/trace.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace gangway::status {
namespace {

using controller::LaunchRecord;
using controller::TransferSample;
using nlohmann::json;

// Rows are threads of these processes.
constexpr int kClients = 1, kSchedulers = 2, kDevices = 3, kTransfers = 4;

double Microseconds(absl::Time time) { return absl::ToDoubleMicroseconds(time - absl::UnixEpoch()); }

class Trace {
 public:
  Trace() {
    NameProcess(kClients, "clients");
    NameProcess(kSchedulers, "schedulers");
    NameProcess(kDevices, "devices");
    NameProcess(kTransfers, "transfers");
  }

  void Add(const LaunchRecord& launch) {
    const int client = clients_.emplace(launch.session, static_cast<int>(clients_.size())).first->second;
    NameRow(kClients, client, launch.session);
    // Launches of one client overlap: asynchronous events may.
    const std::string id = absl::StrCat(launch.number);
    for (const auto& [phase, when] : {std::pair("b", launch.submitted), std::pair("e", launch.over)}) {
      json event = Event(phase, launch, kClients, client, when);
      event["cat"] = "launch";
      event["id"] = id;
      events_.push_back(std::move(event));
    }
    if (launch.dispatched == absl::InfinitePast()) return;
    for (const controller::IslandPart& part : *launch.islands) AddInIsland(launch, part);
  }

  // A counter of each worker: bytes a second since its last sample.
  void Add(const TransferSample& sample) {
    const auto [last, first] = transfers_.try_emplace(sample.worker, sample);
    const double seconds = absl::ToDoubleSeconds(sample.when - last->second.when);
    if (!first && seconds > 0 && sample.sent_bytes >= last->second.sent_bytes) {
      const auto rate = [&](int64_t now, int64_t before) { return static_cast<double>(now - before) / seconds; };
      events_.push_back({{"ph", "C"},
                         {"name", absl::StrCat("bytes/s of ", sample.worker)},
                         {"pid", kTransfers},
                         {"tid", 0},
                         {"ts", Microseconds(last->second.when)},
                         {"args",
                          {{"sent", rate(sample.sent_bytes, last->second.sent_bytes)},
                           {"received", rate(sample.received_bytes, last->second.received_bytes)}}}});
    }
    last->second = sample;
  }

  std::string Text() const {
    return json{{"traceEvents", events_}, {"displayTimeUnit", "ms"}}.dump(-1, ' ', false,
                                                                          json::error_handler_t::replace);
  }

 private:
  void AddInIsland(const LaunchRecord& launch, const controller::IslandPart& part) {
    NameRow(kSchedulers, part.island, absl::StrCat("island ", part.island));
    for (const auto& [phase, when] : {std::pair("b", launch.submitted), std::pair("e", launch.dispatched)}) {
      json event = Event(phase, launch, kSchedulers, part.island, when);
      event["cat"] = "wait";
      event["id"] = absl::StrCat(launch.number, " in ", part.island);  // or the islands' rows would be one
      events_.push_back(std::move(event));
    }
    AddOnDevices(launch, part.devices);
  }

  // When a device began is not told: not before the launch was sent, nor before the one ahead of it was over.
  void AddOnDevices(const LaunchRecord& launch, const std::vector<int>& devices) {
    for (int device : devices) {
      NameRow(kDevices, device, absl::StrCat("device ", device));
      absl::Time& free = free_.emplace(device, absl::InfinitePast()).first->second;
      const absl::Time start = std::max(launch.dispatched, free);
      free = start + launch.took;
      json event = Event("X", launch, kDevices, device, start);
      event["dur"] = absl::ToDoubleMicroseconds(launch.took);
      events_.push_back(std::move(event));
    }
  }

  static json Event(const char* phase, const LaunchRecord& launch, int process, int row, absl::Time when) {
    json arguments = {{"launch", launch.number}, {"session", launch.session}, {"tenant", launch.tenant}};
    if (!launch.error.empty()) arguments["error"] = launch.error;
    return {{"ph", phase}, {"name", launch.program},   {"pid", process},
            {"tid", row},  {"ts", Microseconds(when)}, {"args", std::move(arguments)}};
  }

  void NameProcess(int process, const char* name) {
    events_.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", process}, {"args", {{"name", name}}}});
  }

  void NameRow(int process, int row, const std::string& name) {
    if (!named_.emplace(process, row).second) return;
    events_.push_back(
        {{"ph", "M"}, {"name", "thread_name"}, {"pid", process}, {"tid", row}, {"args", {{"name", name}}}});
  }

  json events_ = json::array();
  std::map<std::string, int> clients_;               // rows by session
  std::map<std::string, TransferSample> transfers_;  // the last of each worker
  std::map<int, absl::Time> free_;                   // by device: when what is drawn so far ends
  std::set<std::pair<int, int>> named_;              // rows that have their name
};

}  // namespace

std::string TraceJson(const std::vector<LaunchRecord>& launches, const std::vector<TransferSample>& transfers,
                      absl::Time from) {
  Trace trace;
  for (const LaunchRecord& launch : launches) {
    if (launch.over >= from) trace.Add(launch);
  }
  for (const TransferSample& sample : transfers) {
    if (sample.when >= from) trace.Add(sample);
  }
  return trace.Text();
}

}  // namespace gangway::status

// Launches as a trace for Perfetto or chrome://tracing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gangway/controller/observation.h"
#include "gangway/status/json_writer.h"

namespace gangway::status {

// The Trace Event Format: rows of sessions, schedulers and devices; microseconds since the epoch. It grows while it is
// recorded: what was taken is not kept. Each event begins a line, behind a comma.
class Trace {
 public:
  Trace();

  // Oldest first.
  void Add(const controller::LaunchRecord& launch);
  // A counter of each worker: bytes a second since its last sample.
  void Add(const controller::TransferSample& sample);
  // Launches that were forgotten before they could be added.
  void AddMissing(uint64_t launches, absl::Time when);

  // What was added since the last time.
  std::string Take() { return out_.Take(); }
  // The same, to the end of the document.
  std::string Finish();

 private:
  void AddInIsland(const controller::LaunchRecord& launch, const controller::IslandPart& part);
  void AddOnDevices(const controller::LaunchRecord& launch, const std::vector<int>& devices);
  JsonWriter& Begin(const char* phase, int process, int row);
  JsonWriter& Begin(const char* phase, int process, int row, absl::string_view name, absl::Time when);
  void NameProcess(int process, const char* name);
  void NameRow(int process, int row, absl::string_view name);

  JsonWriter out_;
  // Rows that have their name: by session, by island, and by device with when what is drawn so far ends.
  absl::flat_hash_map<std::string, int> clients_;
  absl::flat_hash_set<int> islands_;
  absl::flat_hash_map<int, absl::Time> free_;
  absl::flat_hash_map<std::string, controller::TransferSample> transfers_;  // the last of each worker
};

}  // namespace gangway::status

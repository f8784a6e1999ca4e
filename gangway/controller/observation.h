// What an operator may see of a controller, taken on its loop; to be read on any thread. What is named or done again
// and again is shared, so that looking costs the loop little.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace gangway::controller {

struct Statistics {
  int64_t sessions = 0, arrays = 0, programs = 0, pending_launches = 0;
  int64_t store_bytes = 0;         // held by all workers
  int64_t waiting_for_memory = 0;  // sessions whose next program or array does not fit now
};

// The devices of a launch in one island: what that island's scheduler decides about.
struct IslandPart {
  int island = 0;
  std::vector<int> devices;  // by their numbers in the cluster
};
// Ascending islands. Shared by all launches of a program.
using IslandParts = std::shared_ptr<const std::vector<IslandPart>>;

// Shared by all launches of a program, or of a client; never null.
using Name = std::shared_ptr<const std::string>;
struct ClientName {
  std::string session, tenant;
};

// One launch of a program that is over. Numbers and pointers only, but for the error of one that failed.
struct LaunchRecord {
  uint64_t number = 0;  // counts up from 1
  Name program;
  std::shared_ptr<const ClientName> client;  // never null
  IslandParts islands;                       // never null
  absl::Time submitted;                      // by the client
  absl::Time dispatched;  // admitted by the scheduler and sent to its workers; the infinite past: never
  absl::Time over;        // as told; a launch that nobody waits for is told of late
  absl::Duration took;    // device time; zero: not measured
  std::string error;      // "" if none
};

// What a worker had sent to others and received from them.
struct TransferSample {
  std::string worker;
  absl::Time when;
  int64_t sent_bytes = 0, received_bytes = 0;
  uint64_t number = 0;  // counts up from 1
};

struct WorkerState {
  std::string name;
  int island = 0;
  int first_device = 0, devices = 0;
  bool alive = false;
  absl::Time last_heard;
  int64_t store_bytes = 0, store_buffers = 0, pending_tasks = 0;
  int64_t sent_bytes = 0, received_bytes = 0;  // to other workers and from them, since it began
};

struct SessionState {
  std::string name, tenant;
  double weight = 1;
  int priority = 0;
  int64_t waiting = 0;  // commands behind the scheduler
  int64_t launches = 0;
  absl::Duration device_time;  // of its launches, times the devices of each
};

struct ProgramState {
  uint64_t number = 0;  // of all programs that this controller has compiled
  Name name;
  int devices = 0;
  int64_t launches = 0;
  absl::Duration device_time;  // a launch's: a running mean
};

struct Observation {
  absl::Time when;
  Statistics totals;
  int64_t launches = 0, failed_launches = 0;  // since the start
  int64_t launch_messages = 0;
  absl::Duration device_time;  // of all launches, times the devices of each
  std::vector<WorkerState> workers;
  std::vector<SessionState> sessions;
};

}  // namespace gangway::controller

// What `gangway run` can check while a program runs: replicas that should be equal, NaNs; and a record by which two
// runs can be compared. Values and pure functions; the controller asks the workers for the digests.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gangway/controller/controller.h"
#include "gangway/net/message.h"

namespace gangway::controller {

struct InspectOptions {
  int64_t replicas_every = 0;  // compare replicas at every so many-th run of a program; 0: never
  bool nans = false;           // look for NaNs at every run
  // Called with one line of JSON for every run of a program, in the order in which runs end; null: none.
  std::function<void(const std::string& line)> record = nullptr;
  // Called with the first fault of each kind, one line. On the loop.
  std::function<void(const std::string& line)> report = nullptr;

  bool Any() const { return replicas_every > 0 || nans || record != nullptr; }
};

// One output of a run and the digests of its shards, by position of its devices.
struct InspectedOutput {
  int index = 0;
  std::string name;          // "jit(step)/add (model.py:12)", as far as the program tells
  std::string shape;         // "f32[8,8]"
  std::vector<int> part_of;  // positions with equal numbers hold the same part of the array
  std::vector<net::Digest> digests;
};

// One run of a program, complete once `missing` is 0. `error` is that of a shard that could not be had.
struct Inspection {
  std::string program;
  int64_t run = 0;  // of this program, from 1
  std::vector<std::string> devices;
  std::vector<InspectedOutput> outputs;
  size_t missing = 0;
  absl::Status error;
};

// Which part of an array of `shape` each position of the devices holds; padding at an array's end makes no two shards
// equal. Empty where nothing is to be said: the sharding is not known, or shards are padded.
std::vector<int> PartsOf(const ArraySpec& spec);

// Some part is held twice.
bool HasReplicas(const std::vector<int>& part_of);

// "program jit_step, run 20, output 3 (jit(step)/add, f32[8,8]): replicas differ: worker0 cpu:0 and worker0 cpu:5".
std::optional<std::string> FindDivergence(const Inspection& inspection);
std::optional<std::string> FindNan(const Inspection& inspection);

// {"program": ..., "run": ..., "outputs": [{"name": ..., "shape": ..., "hash": "..."}]}
std::string RecordOf(const Inspection& inspection);

}  // namespace gangway::controller

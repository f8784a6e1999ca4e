// From a module as the user wrote it to the one program every device of the mesh runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/hlo/module.h"
#include "gangway/mesh/sharding.h"
#include "gangway/tensor/shape.h"

namespace gangway::compile {

struct Records;  // records.h

struct CompileOptions {
  int64_t num_partitions = 1;
  // Collectives become custom calls of the worker's collective library, and LAPACK calls stay for it too (CPU);
  // otherwise collectives stay HLO's and LAPACK calls become operations that every plugin has.
  bool host_collectives = true;
  // What a device has; 0: not known. A program that would take more gathers arrays again instead of keeping them.
  int64_t memory_bytes = 0;
  // Functions of the client that the program may call, by index.
  int host_callbacks = 0;
  // The folder below its worker's --files in which the program may write and read, one name; empty: all of that.
  std::string files = "";
  // May completion choose these shardings? One per flattened parameter / output; empty means as the module says.
  std::vector<bool> propagate_to_parameters;
  std::vector<bool> propagate_to_output;
  // Called with the module after each stage: "input", "cleaned", "propagated", "partitioned", "per-device", "hosted".
  std::function<void(absl::string_view stage, const hlo::Module& module)> dump;
  Records* records = nullptr;  // filled when given
};

// A parameter or an output of the whole program, as the user sees it.
struct ValueInfo {
  Shape shape;        // global
  Sharding sharding;  // over the program's device assignment
  std::string memory_kind;
  DimVector minor_to_major;  // how its client sees it lie; what goes in and out is row-major all the same
};

enum class Donation : uint8_t { kNone, kMayAlias, kMustAlias };

// What could not be split and runs on every device in full, with the reason.
struct ReplicatedFallback {
  std::string instruction;
  std::string reason;
  int64_t bytes = 0;
};

// A program asked how one of its values lies.
struct InspectedSharding {
  std::string key;  // what the program calls the question
  Sharding sharding;
};

struct CollectiveStats {
  int64_t count = 0;          // instructions in the text
  double executed = 0;        // times run, loop bodies times their trip count where known
  double bytes_received = 0;  // per device, executed times
};

struct ProgramStats {
  int64_t num_partitions = 1;
  std::vector<std::pair<std::string, CollectiveStats>> collectives;  // by opcode name
  double flops_per_device = 0;
  double flops_total = 0;
  double bytes_accessed_per_device = 0;
  int64_t peak_bytes_per_device = 0;
  double seconds = 0;  // spent compiling
};

struct CompiledProgram {
  std::string name;
  int64_t num_partitions = 1;
  std::unique_ptr<hlo::Module> per_device;  // what Compiled.as_text() shows
  std::string executable;  // HloModuleProto bytes for the plugin: per_device with collectives hosted when asked
  std::vector<ValueInfo> parameters;
  std::vector<ValueInfo> outputs;  // leaves of the result, depth first
  std::vector<Donation> donation;  // per parameter
  std::vector<ReplicatedFallback> fallbacks;
  std::vector<InspectedSharding> inspected;  // in the order of the program
  ProgramStats stats;
};

// Propagates, partitions, cleans up and serializes. A module for one device is only cleaned up. Errors name the
// instruction. Pure and single-threaded: callers may run several at once on different modules.
absl::StatusOr<CompiledProgram> CompileModule(std::unique_ptr<hlo::Module> module, const CompileOptions& options);

}  // namespace gangway::compile

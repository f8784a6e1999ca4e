// The controller: the only place where the compiler and the runtime meet. Clients' sessions talk to it; it compiles,
// places, orders and dispatches, and knows every logical array, but never holds an array's bytes longer than it takes
// to pass them on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/base/clock.h"
#include "gangway/base/executor.h"
#include "gangway/base/future.h"
#include "gangway/base/strong_id.h"
#include "gangway/compile/compile.h"
#include "gangway/controller/byte_account.h"
#include "gangway/controller/launch_journal.h"
#include "gangway/controller/observation.h"
#include "gangway/mesh/sharding.h"
#include "gangway/net/message.h"
#include "gangway/resource/cluster.h"
#include "gangway/resource/slice.h"
#include "gangway/tensor/shape.h"

namespace gangway::controller {

using SessionId = StrongId<struct SessionIdTag, uint64_t>;
using ArrayId = StrongId<struct ArrayIdTag, uint64_t>;
using ProgramId = StrongId<struct ProgramIdTag, uint64_t>;
using resource::DeviceId;  // global over all workers, contiguous from 0

struct DeviceInfo {
  DeviceId id;
  std::string kind;  // as the plugin names it, e.g. "cpu"
  std::string worker;
  int island = 0;
  std::vector<int> coords;
};

// A logical array: what a client's handle means. Shards live in workers' stores, one per device, in the order of
// `devices`.
struct ArraySpec {
  DType dtype = DType::kInvalid;
  DimVector dims;  // of the whole array
  std::vector<DeviceId> devices;
  std::vector<DimVector> shard_dims;  // one for all devices, or one per device
  std::optional<Sharding> sharding;   // over positions of `devices`; absent when only the shard shapes are known
  std::string memory_kind;            // "" is the devices' default
  bool holds_strings = false;         // each shard is the bytes of its strings, as many as these are; nobody computes
};

// One host buffer of a new array and which devices (indices into ArraySpec::devices) get a copy of it. Bytes are dense
// row-major, as Literal's. Shared: the same bytes go to several devices, and the caller's stream may still hold them.
struct HostShard {
  std::shared_ptr<const std::string> bytes;
  std::vector<int> devices;
};

struct CompileRequest {
  std::string artifact;           // StableHLO portable artifact
  std::vector<DeviceId> devices;  // the device assignment: logical device number -> device
  compile::CompileOptions options;
};

// A compiled program as clients see it; immutable once ready.
struct Program {
  ProgramId id;
  std::vector<DeviceId> devices;
  compile::CompiledProgram compiled;
  // As the devices' compiler says, the most of any worker; absent: none said.
  std::optional<net::ProgramMemory> memory = std::nullopt;
};

// What becomes of the array that is copied. Shards that stay on their device are not moved in any case.
enum class CopySemantics : uint8_t {
  kShare,   // such a shard is then of both: donated or deleted through one, it is gone for both
  kCopy,    // each has its own
  kDonate,  // the copied array is gone, unless no shard had to move
};

struct ExecuteOptions {
  absl::flat_hash_set<int> non_donatable;  // indices of arguments that must survive although the program donates them
  // Somebody waits for ExecuteResult::done. Otherwise it may lag by some 20 ms, which spares a message per execution;
  // Ready() of an output is prompt in any case.
  bool notify = true;
};

struct ExecuteResult {
  std::vector<ArrayId> outputs;  // exist at once, ready later; failed executions poison them
  Future<Unit> done;
};

// A running program calls a function of its client.
struct HostCall {
  ProgramId program;
  DeviceId device;                              // that calls
  int callback = 0;                             // its index among the program's
  std::shared_ptr<const std::string> operands;  // dense arrays, one after the other
  // Exactly once, on the loop; with the dense results, one after the other. An error fails the launch.
  std::function<void(absl::StatusOr<std::shared_ptr<const std::string>>)> answer;
};

struct SessionInfo {
  std::string name;    // for logs and errors
  std::string tenant;  // "" is the default tenant
  double weight = 1;
  int priority = 0;  // a launch of a higher one goes before all waiting ones of lower
  std::function<void(HostCall)> on_host_call = nullptr;  // on the loop; null: the session's programs may call nobody
  std::string token = "";                                // of the tenant, where the cluster asks for one
  // What the session's host buffers count in, beside what bounds each session: Admit's to set. Null: nothing.
  std::shared_ptr<ByteAccount> host_bytes = nullptr;
};

// Bytes of one device.
struct DeviceMemory {
  DeviceId device;
  int64_t in_use = 0;    // by arrays there, as the worker told last
  int64_t reserved = 0;  // by arrays there and those still to be made, but for small ones
  int64_t limit = 0;     // 0: not known
};

// All calls and all state belong to the controller's loop: callers post to loop() and call from there (asserted). Calls
// return at once; what takes time ends in a Future, whose callbacks run on the loop too. Errors name the array,
// program, session or worker.
class Controller {
 public:
  virtual ~Controller() = default;
  virtual Executor& loop() = 0;
  virtual const std::vector<DeviceInfo>& devices() const = 0;
  // What `calls` have a worker do leaves in one message for each worker, unless it has to wait for the scheduler.
  virtual void Together(absl::FunctionRef<void()> calls) { calls(); }

  // Whether that session may be opened; makes it the tenant's whose token it shows, with the tenant's share.
  // PERMISSION_DENIED: nobody has that token. RESOURCE_EXHAUSTED: the tenant has as many sessions as it may.
  virtual absl::Status Admit(SessionInfo* info) const { return absl::OkStatus(); }
  virtual SessionId OpenSession(SessionInfo info) = 0;
  // Frees every array and program the session owns; running programs finish first. Unknown ids are ignored.
  virtual void CloseSession(SessionId session) = 0;

  // Devices of one island for the session's programs; shared with other sessions' slices where the policy says so.
  virtual absl::StatusOr<std::vector<DeviceId>> MakeSlice(SessionId session, const resource::SliceRequest& request) {
    return absl::UnimplementedError("this controller makes no slices");
  }
  // A slice, as MakeSlice gave it, goes back; what was compiled for it goes on. NOT_FOUND: the session has no such
  // slice.
  virtual absl::Status FreeSlice(SessionId session, absl::Span<const DeviceId> slice) {
    return absl::UnimplementedError("this controller makes no slices");
  }

  // --- arrays; each id returned is one reference owned by the session, dropped by Release ---
  virtual absl::StatusOr<ArrayId> MakeArray(SessionId session, ArraySpec spec, std::vector<HostShard> shards) = 0;
  // An array whose every use fails with `error`. It counts as others do, and like those may be refused.
  virtual absl::StatusOr<ArrayId> MakeErrorArray(SessionId session, ArraySpec spec, absl::Status error) = 0;
  // Views on the same shards, no bytes move, and what is deleted of one is gone for all: single-device arrays joined,
  // or one array taken apart (per device, in order).
  virtual absl::StatusOr<ArrayId> Assemble(SessionId session, ArraySpec spec, absl::Span<const ArrayId> parts) = 0;
  virtual absl::StatusOr<std::vector<ArrayId>> Disassemble(SessionId session, ArrayId array) = 0;
  // One of the parts: a view on the shard at position `shard`.
  virtual absl::StatusOr<ArrayId> ViewShard(SessionId session, ArrayId array, int shard) = 0;
  // The same data on other devices (shard i goes to devices[i]) and/or in another memory.
  virtual absl::StatusOr<ArrayId> Copy(SessionId session, ArrayId array, std::vector<DeviceId> devices,
                                       std::optional<std::string> memory_kind, CopySemantics semantics) = 0;
  // The same array split as `spec` says, on whichever devices; bytes go straight between their workers. UNIMPLEMENTED
  // for arrays of partial sums and those whose sharding is not known.
  virtual absl::StatusOr<ArrayId> Reshard(SessionId session, ArrayId array, ArraySpec spec, CopySemantics semantics) {
    return absl::UnimplementedError("this controller does not reshard");
  }
  // The same shards under another sharding value or shape of equal bytes per device (no data moves).
  virtual absl::StatusOr<ArrayId> Remap(SessionId session, ArrayId array, ArraySpec spec) = 0;
  // Bytes of one shard, dense row-major.
  virtual Future<std::shared_ptr<const std::string>> Fetch(ArrayId array, int shard) = 0;
  virtual absl::StatusOr<const ArraySpec*> Spec(ArrayId array) const = 0;
  virtual Future<Unit> Ready(ArrayId array) = 0;  // carries the error of a poisoned array
  // Ready when every worker concerned has queued what makes the array: their host work is done, not the devices'.
  virtual Future<Unit> Enqueued(ArrayId array) = 0;
  virtual absl::Status Delete(ArrayId array) = 0;  // frees the data, the id stays known as deleted
  virtual absl::Status Donate(ArrayId array) = 0;  // likewise, but views on its shards keep them
  virtual absl::StatusOr<bool> IsDeleted(ArrayId array) const = 0;
  virtual void Release(ArrayId array) = 0;  // drops the session's reference; unknown ids are ignored

  // --- programs ---
  // The id is usable for Execute once the future is ready with OK.
  virtual std::pair<ProgramId, Future<std::shared_ptr<const Program>>> Compile(SessionId session,
                                                                               CompileRequest request) = 0;
  // One of the references that the session has by Compile.
  virtual void ReleaseProgram(SessionId session, ProgramId program) = 0;
  // Never waits: arguments may still be in the making. Donated arguments are deleted from here on.
  virtual absl::StatusOr<ExecuteResult> Execute(SessionId session, ProgramId program,
                                                absl::Span<const ArrayId> arguments, const ExecuteOptions& options) = 0;

  virtual Statistics Stats() const = 0;
  // What there is to see now, but for what there may be much of.
  virtual Observation Observe() const { return {}; }
  // That are on the cluster.
  virtual std::vector<ProgramState> Programs() const { return {}; }
  // Whether launches and transfers are remembered.
  virtual bool Remembers() const { return false; }
  // The last launches that are over, and the last while's transfers: those numbered above `after`.
  virtual LaunchList LaunchesAfter(uint64_t after) const { return {}; }
  virtual std::vector<TransferSample> TransfersAfter(uint64_t after) const { return {}; }
  // What a program that is on the cluster was compiled from. By its name, of several the one compiled last, or by its
  // number. NOT_FOUND.
  virtual absl::StatusOr<std::shared_ptr<const CompileRequest>> Source(absl::string_view program) const {
    return absl::NotFoundError("this controller keeps no sources");
  }
  // By device; empty where the controller does not know.
  virtual std::vector<DeviceMemory> Memory() const { return {}; }
};

}  // namespace gangway::controller

// The device interface: clients, devices, buffers and opaque executables. The runtime moves buffers and launches
// programs through it and never sees an operation. Backends: device/pjrt (any PJRT C-API plugin), device/sim (an
// evaluator); device/cts is what both must pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gangway/base/future.h"
#include "gangway/tensor/dtype.h"

namespace gangway::collective {
class Gang;
}

namespace gangway::device {

class Buffer;
class Device;

// Shared: launches in flight on a device's thread keep their inputs and outputs alive beside whoever stores them.
using BufferRef = std::shared_ptr<Buffer>;

// Element type and extents of an array. In host memory arrays are dense and row-major, elements narrower than a byte
// take a whole one.
struct ArrayType {
  DType dtype = DType{};
  std::vector<int64_t> dims;

  friend bool operator==(const ArrayType&, const ArrayType&) = default;
};

// An array in host memory, to be put on a device.
struct HostArray {
  ArrayType type;
  const void* data = nullptr;
  std::vector<int64_t> byte_strides;  // empty: dense row-major; may be negative
  // When set, the data stays valid and unchanged while it is held, and the device may use it in place (zero copy). When
  // not, the data is copied before FromHost returns.
  std::shared_ptr<const void> owner;
};

// Bytes; 0 where the device does not tell.
struct MemoryStats {
  int64_t bytes_in_use = 0;
  int64_t peak_bytes_in_use = 0;
  int64_t bytes_limit = 0;
};

// One array (shard) on one device. Thread-safe. Asynchronous: it may exist before the launch that produces it has run.
// The destructor frees the memory once every launch and copy queued before it is over.
class Buffer {
 public:
  virtual ~Buffer() = default;

  virtual const ArrayType& type() const = 0;
  virtual Device& device() const = 0;
  // Size of the dense array in host memory.
  virtual int64_t size_bytes() const = 0;

  // OK once the value is there, otherwise the error of whatever should have produced it.
  virtual Future<Unit> Ready() const = 0;
  // Copies the dense row-major value to `dst`, which has size_bytes() and stays valid until the future is ready.
  virtual Future<Unit> ToHost(void* dst) = 0;
  // The dense host bytes in place, without a copy, where the device's memory is host memory in that form; otherwise
  // UNIMPLEMENTED. The bytes stay valid while the buffer lives, is not deleted and not donated.
  virtual Future<absl::Span<const std::byte>> View() = 0;
  // A copy on `target`, a device of the same client.
  virtual BufferRef CopyTo(Device& target) = 0;

  // Gives the memory up now, before the last reference goes. Launches queued earlier still see the value; later uses
  // fail with FAILED_PRECONDITION.
  virtual void Delete() = 0;
  // True after Delete and after a launch took the buffer by donation.
  virtual bool deleted() const = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual int id() const = 0;                            // unique in its client
  virtual absl::string_view kind() const = 0;            // e.g. "cpu", as the plugin says it
  virtual absl::Span<const int64_t> coords() const = 0;  // place in the topology; empty where the device has none
  virtual MemoryStats memory_stats() const = 0;
};

// Calls of a running program to functions of the client that launched it (HOSTED.md).
class HostCallbacks {
 public:
  // The dense bytes of all results, one after the other, or why there are none.
  using Answer = std::function<void(absl::StatusOr<std::shared_ptr<const std::string>>)>;

  virtual ~HostCallbacks() = default;
  // By a device of the launch, by its id. Any thread; returns at once. `answer` is called once, on any thread.
  virtual void Call(int device, int callback, std::string operands, Answer answer) = 0;
};

// What ties the launches of one program on several devices together.
struct LaunchContext {
  int64_t launch_id = 0;  // the same on all devices of the launch
  int partition = 0;      // index of this device among them; what "gangway.partition_id" answers
  int num_partitions = 1;
  // The meeting point of their hosted collectives (HOSTED.md), made once per launch; null where the program has none.
  std::shared_ptr<collective::Gang> gang;
  // Null where the program calls nobody.
  std::shared_ptr<HostCallbacks> callbacks;
};

struct ExecuteOptions {
  LaunchContext launch;
  // Inputs that must survive although the program donates them (its input_output_alias or buffer_donor config says
  // which it takes); ascending.
  std::vector<int64_t> keep_inputs;
};

struct Execution {
  std::vector<BufferRef> outputs;  // usable at once, as inputs of further launches too
  // OK once the launch is over; all outputs are ready then. Its error is also that of every output and poisons the
  // gang.
  Future<Unit> done;
};

// Bytes, per device.
struct ProgramMemory {
  int64_t code = 0;
  int64_t arguments = 0;
  int64_t outputs = 0;
  int64_t aliased = 0;  // outputs that reuse donated arguments
  int64_t temporaries = 0;
  int64_t peak = 0;  // of all but the code at one time; 0: not told
};

// A compiled per-device program; runs on any device of its client. Thread-safe. May be dropped while launches are
// queued.
class Executable {
 public:
  virtual ~Executable() = default;

  virtual absl::string_view name() const = 0;
  virtual absl::Span<const ArrayType> outputs() const = 0;
  virtual std::optional<ProgramMemory> memory() const = 0;  // absent where the backend does not tell

  // Queues one launch and returns at once. Each device runs its launches one after the other in the order queued; an
  // input whose producer failed fails the launch with the producer's error.
  virtual Execution Execute(Device& device, absl::Span<const BufferRef> inputs, const ExecuteOptions& options) = 0;
};

struct CompileRequest {
  std::string name;  // for messages
  // Serialized HloModuleProto of one device's program: no replicas, no partitions, collectives hosted (HOSTED.md).
  absl::string_view hlo;
  // Devices that will run it at the same time; the backend chooses threads per launch by it.
  int num_partitions = 1;
};

// One plugin instance on one host and the devices it serves. Thread-safe. Buffers and executables must be gone before
// it.
class Client {
 public:
  virtual ~Client() = default;

  virtual absl::string_view platform() const = 0;  // "cpu", "cuda", ... as the plugin says it
  virtual absl::string_view platform_version() const = 0;
  virtual absl::Span<Device* const> devices() const = 0;  // those of this host, ascending ids

  // INVALID_ARGUMENT when the program is malformed, UNIMPLEMENTED when it needs what the backend lacks. Takes the
  // caller's thread for as long as compiling takes.
  virtual absl::StatusOr<std::shared_ptr<Executable>> Compile(const CompileRequest& request) = 0;
  virtual absl::StatusOr<BufferRef> FromHost(Device& device, const HostArray& array) = 0;
};

}  // namespace gangway::device

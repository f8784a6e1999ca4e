// What controller and worker say to each other. Plain values; their wire form is proto/gangway/worker.proto.
//
// A channel keeps the order, and the protocol lives by it: a buffer is known to the worker as soon as the message that
// makes it was handled, though its data may come much later, so whatever is sent next may name it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "gangway/base/strong_id.h"
#include "gangway/net/fabric.h"
#include "gangway/net/payload.h"
#include "gangway/tensor/dtype.h"

namespace gangway::net {

inline constexpr int kProtocolVersion = 5;

using BufferId = StrongId<struct BufferIdTag, uint64_t>;    // a logical buffer: at most one shard per device
using ProgramId = StrongId<struct ProgramIdTag, uint64_t>;  // a loaded per-device program
using TaskId = StrongId<struct TaskIdTag, uint64_t>;        // one launch, copy or upload, the same on all workers
using RequestId = StrongId<struct RequestIdTag, uint64_t>;  // a question that has one answer
using Dims = std::vector<int64_t>;

// Devices in messages are indices into the worker's own list.

// --- worker to controller ---

struct DeviceDescription {
  std::string kind;
  std::vector<int64_t> coords;
  int64_t memory_bytes = 0;  // 0: not told
  friend bool operator==(const DeviceDescription&, const DeviceDescription&) = default;
};

// The first message of a worker.
struct Hello {
  int protocol_version = kProtocolVersion;
  std::string worker;  // its name, unique in the cluster
  std::string platform;
  int island = 0;
  std::vector<DeviceDescription> devices;
  std::string fabric;  // where its end of the data plane is; empty: it has none
  int rank = -1;       // joins after those of smaller ranks, so that devices are numbered so; -1: when it comes
  friend bool operator==(const Hello&, const Hello&) = default;
};

// What a program takes of each device, in bytes, as the device's compiler says.
struct ProgramMemory {
  int64_t code = 0;
  int64_t arguments = 0;
  int64_t outputs = 0;
  int64_t aliased = 0;  // outputs that reuse donated arguments
  int64_t temporaries = 0;
  int64_t peak = 0;  // of all but the code at one time; 0: not told
  friend bool operator==(const ProgramMemory&, const ProgramMemory&) = default;
};

struct ProgramLoaded {
  ProgramId program;
  absl::Status status;
  std::optional<ProgramMemory> memory;  // absent: not told
  friend bool operator==(const ProgramLoaded&, const ProgramLoaded&) = default;
};

struct TaskDone {
  TaskId task;
  absl::Status status;
  uint32_t micros = 0;  // of the busiest device's time; 0: not told
  friend bool operator==(const TaskDone&, const TaskDone&) = default;
};

// Tasks that are over on this worker. Failures and tasks somebody watches are told at once; the rest when convenient.
struct TasksDone {
  std::vector<TaskDone> tasks;
  friend bool operator==(const TasksDone&, const TasksDone&) = default;
};

// What is to be known of a shard without its bytes.
struct Digest {
  uint64_t hash = 0;  // of the dense bytes
  bool has_nan = false;
  friend bool operator==(const Digest&, const Digest&) = default;
};

struct Fetched {
  RequestId request;
  absl::Status status;
  Payload bytes;       // dense, row-major
  Digest digest = {};  // instead of the bytes where that was asked for
  friend bool operator==(const Fetched&, const Fetched&) = default;
};

// A running program calls a function of its client. Waits for HostCallAnswer.
struct HostCall {
  RequestId call;  // the worker's
  TaskId task;     // the launch
  int device = 0;  // that calls
  int callback = 0;
  Payload operands;  // dense arrays, one after the other
  friend bool operator==(const HostCall&, const HostCall&) = default;
};

// Answer to Mark.
struct Reached {
  RequestId request;
  friend bool operator==(const Reached&, const Reached&) = default;
};

// At least once per heartbeat period.
struct Heartbeat {
  int64_t store_bytes = 0;
  int64_t store_buffers = 0;
  int64_t pending_tasks = 0;
  std::vector<int64_t> device_bytes;  // by device: what the store holds there
  int64_t sent_bytes = 0;             // to other workers, and from them; since the worker began
  int64_t received_bytes = 0;
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

// The worker is to be shut down: nothing new, please, and what it has is to go elsewhere. The controller closes the
// channel when it needs the worker no more.
struct Leaving {
  friend bool operator==(const Leaving&, const Leaving&) = default;
};

// --- controller to worker ---

// Answer to Hello. A refused worker hears why by the channel's close reason instead.
struct Welcome {
  int first_device = 0;       // cluster-wide id of the worker's device 0, for messages
  PeerId self;                // its number among the workers
  uint32_t heartbeat_ms = 0;  // how often the controller wants to hear of it; 0: as it likes
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// Another worker and how to reach it: before the first message that names it, and again when it came back.
struct Peer {
  PeerId peer;
  std::string name;
  std::string fabric;
  friend bool operator==(const Peer&, const Peer&) = default;
};

struct PeerLost {
  PeerId peer;
  absl::Status status;
  friend bool operator==(const PeerLost&, const PeerLost&) = default;
};

struct LoadProgram {
  struct Partition {
    int partition = 0;  // its place among all devices of the program
    int device = 0;
    friend bool operator==(const Partition&, const Partition&) = default;
  };
  ProgramId program;
  std::string name;
  Payload executable;  // HloModuleProto
  int num_partitions = 1;
  std::vector<Partition> partitions;      // those of this worker
  std::vector<std::string> participants;  // by partition: the device's name; empty when the program has no collectives
  std::vector<PeerId> owners;             // by partition; empty when all are the receiver's
  friend bool operator==(const LoadProgram&, const LoadProgram&) = default;
};

struct UnloadProgram {
  ProgramId program;
  friend bool operator==(const UnloadProgram&, const UnloadProgram&) = default;
};

// Makes shards from host bytes. Fulfils a buffer that is expected, or makes a new one.
struct MakeBuffer {
  struct Piece {
    Payload bytes;  // dense, row-major
    Dims dims;
    std::vector<int> devices;  // each gets a copy
    friend bool operator==(const Piece&, const Piece&) = default;
  };
  BufferId buffer;
  TaskId task;
  DType dtype = DType::kInvalid;
  std::vector<Piece> pieces;
  friend bool operator==(const MakeBuffer&, const MakeBuffer&) = default;
};

// Announces shards whose bytes come later by MakeBuffer (or never, by PoisonBuffers).
struct ExpectBuffer {
  BufferId buffer;
  std::vector<int> devices;
  friend bool operator==(const ExpectBuffer&, const ExpectBuffer&) = default;
};

// A buffer made of shards of others: shared where the device is the same, copied otherwise. Shards of other workers
// come straight from them, by the fabric: who receives one and who sends it both get this message.
struct CopyBuffer {
  struct Part {
    BufferId source;
    int from = 0;
    int to = 0;
    friend bool operator==(const Part&, const Part&) = default;
  };
  struct Send {
    BufferId source;
    int from = 0;
    PeerId to;
    int position = 0;  // of the shard in the new array
    friend bool operator==(const Send&, const Send&) = default;
  };
  struct Receive {
    PeerId from;
    int position = 0;
    Dims dims;
    std::vector<int> to;  // each gets a copy
    friend bool operator==(const Receive&, const Receive&) = default;
  };
  BufferId buffer;
  TaskId task;
  std::vector<Part> parts;
  std::vector<Dims> dims;  // by part: new extents of equal bytes; empty: as in the source
  std::vector<Send> sends;
  std::vector<Receive> receives;
  DType dtype = DType::kInvalid;  // of what is received
  friend bool operator==(const CopyBuffer&, const CopyBuffer&) = default;
};

// A buffer whose shards are put together from boxes of other buffers' shards, of the same element type: an array
// split in another way. What no box covers is not defined. Boxes of other workers come by the fabric, each once to a
// worker: who receives one and who sends it both get this message.
struct PatchBuffer {
  struct Shard {  // made here
    int device = 0;
    Dims dims;
    friend bool operator==(const Shard&, const Shard&) = default;
  };
  struct Piece {  // from a shard that is here
    BufferId source;
    int from = 0;
    Dims start, extent;
    int shard = 0;  // index of the shard it goes to
    Dims at;
    friend bool operator==(const Piece&, const Piece&) = default;
  };
  struct Send {
    BufferId source;
    int from = 0;
    Dims start, extent;
    PeerId to;
    int piece = 0;  // its number among those that this task moves between workers
    friend bool operator==(const Send&, const Send&) = default;
  };
  struct Target {
    int shard = 0;
    Dims at;
    friend bool operator==(const Target&, const Target&) = default;
  };
  struct Receive {
    PeerId from;
    int piece = 0;
    Dims extent;
    std::vector<Target> targets;  // each gets a copy
    friend bool operator==(const Receive&, const Receive&) = default;
  };
  BufferId buffer;
  TaskId task;
  DType dtype = DType::kInvalid;
  std::vector<Shard> shards;
  std::vector<Piece> pieces;
  std::vector<Send> sends;
  std::vector<Receive> receives;
  friend bool operator==(const PatchBuffer&, const PatchBuffer&) = default;
};

// One run of a program on all its devices of this worker. Output i is buffer first_output + i.
struct Launch {
  // The same for all workers of the program: their messages share it.
  struct Order {
    TaskId task;
    ProgramId program;
    std::vector<BufferId> arguments;
    BufferId first_output;
    std::vector<int64_t> keep;  // arguments that must survive although the program donates them; ascending
    std::vector<int64_t> drop;  // arguments that are gone after this launch: donated ones; ascending
    friend bool operator==(const Order&, const Order&) = default;
  };
  std::shared_ptr<const Order> order;  // never null
  bool report = false;                 // tell at once when it is over
  friend bool operator==(const Launch& a, const Launch& b) { return *a.order == *b.order && a.report == b.report; }
};

struct FetchShard {
  RequestId request;
  BufferId buffer;
  int device = 0;
  bool digest = false;  // instead of the bytes
  friend bool operator==(const FetchShard&, const FetchShard&) = default;
};

// Forgets buffers; launches queued before still see them. Unknown ids are ignored.
struct FreeBuffers {
  absl::InlinedVector<BufferId, 2> buffers;
  friend bool operator==(const FreeBuffers&, const FreeBuffers&) = default;
};

// Every shard becomes `status`, whoever waits for one gets it.
struct PoisonBuffers {
  std::vector<BufferId> buffers;
  absl::Status status;
  TaskId task;  // what was to make them, if not 0: what it does between workers ends
  friend bool operator==(const PoisonBuffers&, const PoisonBuffers&) = default;
};

// Tell at once when these are over; those over already are told now.
struct WatchTasks {
  std::vector<TaskId> tasks;
  friend bool operator==(const WatchTasks&, const WatchTasks&) = default;
};

// To be answered as soon as all that was sent before was handled: launches are queued then, though not over.
struct Mark {
  RequestId request;
  friend bool operator==(const Mark&, const Mark&) = default;
};

struct HostCallAnswer {
  RequestId call;
  absl::Status status;
  Payload results;  // dense arrays, one after the other
  friend bool operator==(const HostCallAnswer&, const HostCallAnswer&) = default;
};

using Message = std::variant<Hello, ProgramLoaded, TasksDone, Fetched, Heartbeat, Welcome, LoadProgram, UnloadProgram,
                             MakeBuffer, ExpectBuffer, CopyBuffer, Launch, FetchShard, FreeBuffers, PoisonBuffers,
                             WatchTasks, Peer, PeerLost, HostCall, HostCallAnswer, Mark, Reached, Leaving, PatchBuffer>;

// "launch", "make_buffer", ...: for traces and messages.
const char* MessageName(const Message& message);

}  // namespace gangway::net

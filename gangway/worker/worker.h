// The logic of one worker: takes the controller's messages, keeps the shards, runs launches on its devices.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "gangway/base/clock.h"
#include "gangway/base/executor.h"
#include "gangway/base/future.h"
#include "gangway/collective/gang_keeper.h"
#include "gangway/device/device.h"
#include "gangway/net/channel.h"
#include "gangway/net/fabric.h"
#include "gangway/store/store.h"
#include "gangway/worker/device_queue.h"
#include "gangway/worker/shard_transfer.h"
#include "gangway/worker/task_ledger.h"

namespace gangway::worker {

struct WorkerOptions {
  std::string name;
  int island = 0;
  int rank = -1;  // see net::Hello
  // Owns the worker. Shared: devices bring it their news, also after the worker is gone.
  std::shared_ptr<Executor> loop;
  // To other workers; null: none. Shared with launches that outlive the worker.
  std::shared_ptr<net::Fabric> fabric;
  // None of these is owned; all outlive the worker.
  device::Client* client = nullptr;
  collective::GangKeeper* gangs = nullptr;
  Executor* compile = nullptr;  // where what takes long is done: programs are compiled, memory is prepared
  const Clock* clock = nullptr;
  absl::Duration heartbeat = absl::Seconds(1);
  int64_t device_memory = 0;  // bytes of each device that clients may use; 0: as many as the device has
};

// Belongs to options.loop: Start, Tick and Stop are called there, the destructor off it and after Stop. Launches are
// asynchronous: outputs are in the store when the message is handled, so the next launch can name them. One failed
// device fails its gang and poisons the outputs. Nothing the controller sends aborts the worker.
class Worker {
 public:
  Worker(WorkerOptions options, std::unique_ptr<net::Channel> channel);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Says hello; the rest happens by messages.
  void Start();
  // Every 20 ms or so: reports that were not urgent, heartbeats when due.
  void Tick();
  // Asks the controller to do without this worker; closed() is ready when it does.
  void Leave() { Send(net::Leaving{}); }
  // Nothing calls back any more. Closes the channel; idempotent.
  void Stop();
  // Ready (with the reason, never OK) when the controller is gone. The store is empty by then.
  Future<Unit> closed() const { return closed_.future(); }

  const store::Store& store() const { return store_; }
  int64_t pending_tasks() const { return ledger_.pending(); }

 private:
  struct Program {
    std::string name;
    std::shared_ptr<device::Executable> executable;
    absl::Status status;  // why it did not compile
    int num_partitions = 1;
    std::vector<net::LoadProgram::Partition> partitions;
    std::vector<std::string> participants;
    std::vector<net::PeerId> owners;
  };
  struct Run;  // one launch under way
  class ClientCalls;
  struct Place {
    net::BufferId buffer;
    int device = 0;
  };

  void Handle(net::Message message);
  void On(net::Welcome message);
  void On(net::LoadProgram message);
  void On(net::UnloadProgram message);
  void On(net::MakeBuffer message);
  void On(net::ExpectBuffer message);
  void On(net::CopyBuffer message);
  void On(net::PatchBuffer message);
  void On(net::Launch message);
  void On(net::FetchShard message);
  void On(net::FreeBuffers message);
  void On(net::PoisonBuffers message);
  void On(net::WatchTasks message);
  void On(net::Mark message) { Send(net::Reached{message.request}); }
  void On(net::Peer message);
  void On(net::PeerLost message);
  void On(net::HostCallAnswer message);
  template <typename T>
  void On(T message);  // what a controller never sends

  absl::Status CheckProgram(const Program& program) const;
  absl::Status StartRun(const std::shared_ptr<Run>& run);
  void RunPart(const std::shared_ptr<Run>& run, const net::LoadProgram::Partition& part,
               const std::vector<store::Shard>& inputs);
  void FailPart(const std::shared_ptr<Run>& run, int device, const absl::Status& status);
  // --- worker_copies.cc ---
  // What was to be sent has failed, so what this worker waits for of the copy ends too: its failure is told when all
  // its parts are over, and the one it waits for may be waiting for it.
  static void FailSend(net::Fabric& fabric, Task& task, const absl::Status& status);
  void CopyPart(const std::shared_ptr<Task>& task, Place target, store::Shard source, const net::Dims* dims);
  void Reshape(const std::shared_ptr<Task>& task, Place target, device::BufferRef source, net::Dims dims);
  void SendPart(const std::shared_ptr<Task>& task, const net::CopyBuffer::Send& send);
  void ReceivePart(const std::shared_ptr<Task>& task, net::BufferId buffer, DType dtype,
                   const net::CopyBuffer::Receive& receive);

  // --- worker_patches.cc ---
  class Patch;
  struct Boxes {  // of one shard
    int count = 0;
    uint64_t bytes = 0;
  };
  // Null when there can be none; the task has heard of it then.
  std::shared_ptr<Patch> NewPatch(const std::shared_ptr<Task>& task, net::BufferId buffer, DType dtype,
                                  const net::PatchBuffer::Shard& shard, Boxes boxes);
  void SendBox(const std::shared_ptr<Task>& task, DType dtype, const net::PatchBuffer::Send& send);
  void ReceiveBox(net::TaskId task, DType dtype, const net::PatchBuffer::Receive& receive,
                  std::vector<std::pair<std::shared_ptr<Patch>, net::Dims>> targets);

  void CallClient(net::HostCall call, device::HostCallbacks::Answer answer);
  // Puts a value for a task; an error of the value is the task's.
  void PutPart(const std::shared_ptr<Task>& task, Place target, absl::StatusOr<device::BufferRef> value);
  // A shard's dense bytes.
  struct DenseShard {
    device::ArrayType type;
    net::Payload bytes;
  };
  using OnShard = std::function<void(const absl::StatusOr<DenseShard>&)>;
  // When it is there. NOT_FOUND where there is none. `done` is called once, on any thread.
  void ReadShard(Place place, OnShard done);
  void ReadShard(const store::Shard& shard, OnShard done);
  // The dense bytes, in place where the device shows them; the buffer is on loan while somebody holds them. `done` is
  // called on any thread.
  void ReadBytes(const device::BufferRef& buffer, std::function<void(absl::StatusOr<net::Payload>)> done);
  // In a turn of the loop after the pending shard has settled. From then on its buffer is on loan: a launch that waits
  // for the same shard may start before that turn.
  void WhenSettled(const store::Shard& shard, std::function<void(Worker&)> then);
  // While it is held, launches do not take the buffer by donation. From the moment it is asked for: a launch that comes
  // later may run before the value is read.
  std::shared_ptr<const void> Loan(const device::BufferRef& buffer);
  // The arguments of a launch that must not be donated: those it says, and those on loan.
  std::vector<int64_t> KeepOf(const net::Launch::Order& launch, const std::vector<device::BufferRef>& inputs) const;
  bool IsDevice(int device) const { return device >= 0 && device < num_devices_; }
  void Send(net::Message message) { (void)channel_->Send(std::move(message)); }
  void Closed(const absl::Status& reason);

  const WorkerOptions options_;
  const int num_devices_;
  std::unique_ptr<net::Channel> channel_;
  store::Store store_;
  TaskLedger ledger_;
  std::vector<std::shared_ptr<DeviceQueue>> queues_;
  // When a device's last launch was over: the next one has had the device since then. Shared with launches under way.
  struct Busy {
    std::atomic<int64_t> until_ns = 0;
  };
  std::vector<std::shared_ptr<Busy>> busy_;
  // Shared with launches that wait.
  absl::flat_hash_map<net::ProgramId, std::shared_ptr<Program>> programs_;
  absl::flat_hash_map<const device::Buffer*, std::weak_ptr<const void>> loans_;
  // Launches with collectives, to be ended when another worker fails or the controller is gone.
  absl::flat_hash_map<net::TaskId, std::weak_ptr<collective::Gang>> gangs_;
  absl::Duration heartbeat_;
  // Programs wait for these; the controller answers each, at the latest when the client is gone.
  absl::flat_hash_map<net::RequestId, device::HostCallbacks::Answer> client_calls_;
  uint64_t next_call_ = 1;
  net::Heartbeat last_beat_;
  absl::Time next_beat_;
  bool gone_ = false;
  Promise<Unit> closed_;
  // Callbacks from devices, channel and compiler hold it weakly, run on the loop, and find nobody after Stop.
  std::shared_ptr<Worker*> self_;
};

}  // namespace gangway::worker

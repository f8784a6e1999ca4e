// The controller over real workers: the implementation of controller.h.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/container/node_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gangway/base/strand.h"
#include "gangway/controller/controller.h"
#include "gangway/controller/inspection.h"
#include "gangway/controller/launch_journal.h"
#include "gangway/controller/records.h"
#include "gangway/controller/shard_pieces.h"
#include "gangway/controller/tenants.h"
#include "gangway/controller/transfer_history.h"
#include "gangway/net/channel.h"
#include "gangway/resource/relocation.h"

namespace gangway::controller {

using CompileFunction = std::function<absl::StatusOr<compile::CompiledProgram>(const std::string& artifact,
                                                                               const compile::CompileOptions&)>;

// What one session may take of the controller, with tenants or without: far more than one does that means well.
struct SessionLimits {
  size_t commands = 1 << 20;          // that wait, for the scheduler or for memory
  int64_t bytes = int64_t{16} << 30;  // of its own in these
  int64_t arrays = 1 << 22;
  int64_t programs = 1 << 16;
  int64_t questions = 1 << 20;  // that workers have not answered
  size_t slice_devices = 1 << 16;
};

struct ControllerOptions {
  // Turns an artifact into a per-device program; called on compile threads, several at once. Required.
  CompileFunction compile;
  // None is owned; null: made by the controller itself (a strand, one thread per compilation slot, wall time).
  Executor* loop = nullptr;
  std::vector<Executor*> compile_executors;
  const Clock* clock = nullptr;
  int compile_threads = 2;  // when compile_executors is empty
  // How often workers are to be heard of. One that says nothing for twice as long is lost.
  absl::Duration heartbeat = absl::Seconds(5);
  sched::SchedulerOptions scheduler;
  TenantTable tenants;              // open: whoever reaches the cluster may use it
  size_t journal_capacity = 16384;  // launches remembered after they are over
  SessionLimits session;
  // The largest artifact that is compiled, in bytes.
  int64_t max_program_bytes = int64_t{256} << 20;
  // How long a program or array may wait for memory before it fails.
  absl::Duration memory_patience = absl::Minutes(1);
  // How long a worker that leaves waits for its devices to be needed no more, where there are none to move to.
  absl::Duration leave_patience = absl::Minutes(1);
  // Called with one line for every event an operator wants to know: workers coming and going. On the loop.
  std::function<void(const std::string&)> log;
  InspectOptions inspect;
};

// What the runtime has dispatched, counted since the start.
struct DispatchCounts {
  int64_t launches = 0;         // programs run
  int64_t launch_messages = 0;  // messages that carried launches, however many
};

// Everything but Reap and the constructor belongs to the loop. No call waits for a worker. A lost worker fails what it
// owned, named, and nothing else.
class RuntimeController final : public Controller {
 public:
  explicit RuntimeController(ControllerOptions options);
  // Off the loop, when nobody posts to it any more (the loop itself may still run what it has).
  ~RuntimeController() override;

  // A worker connected; it becomes part of the cluster when it says hello. Any thread.
  void AddWorker(std::unique_ptr<net::Channel> channel);
  // Ready when that many devices are alive. On the loop.
  Future<Unit> DevicesReady(int count);
  // Every 20 ms or so: sends what is not urgent, gives up on silent workers.
  void Tick();
  // Destroys the connections of lost workers. Every now and then, off the loop and outside any handler.
  void Reap();
  // Closes all connections; nothing calls back any more. On the loop, before the destructor.
  void Stop();

  // What is on the devices moves to others, unnoticed by clients: device ids stay what they are, other devices come to
  // sit there. Programs are loaded there first; then arrays follow by copies that stand between what was dispatched
  // before and what comes after. The ready future says that the seats have changed. FAILED_PRECONDITION when somebody
  // uses a target, INVALID_ARGUMENT when it is in another island. On the loop.
  Future<Unit> Relocate(resource::Relocation relocation);

  DispatchCounts dispatch_counts() const { return counts_; }
  const sched::GangScheduler* scheduler(int island) const;

  // Controller:
  Executor& loop() override { return *loop_; }
  const std::vector<DeviceInfo>& devices() const override { return devices_; }
  void Together(absl::FunctionRef<void()> calls) override;
  absl::Status Admit(SessionInfo* info) const override;
  SessionId OpenSession(SessionInfo info) override;
  void CloseSession(SessionId session) override;
  absl::StatusOr<std::vector<DeviceId>> MakeSlice(SessionId session, const resource::SliceRequest& request) override;
  absl::Status FreeSlice(SessionId session, absl::Span<const DeviceId> slice) override;
  absl::StatusOr<ArrayId> MakeArray(SessionId session, ArraySpec spec, std::vector<HostShard> shards) override;
  absl::StatusOr<ArrayId> MakeErrorArray(SessionId session, ArraySpec spec, absl::Status error) override;
  absl::StatusOr<ArrayId> Assemble(SessionId session, ArraySpec spec, absl::Span<const ArrayId> parts) override;
  absl::StatusOr<std::vector<ArrayId>> Disassemble(SessionId session, ArrayId array) override;
  absl::StatusOr<ArrayId> ViewShard(SessionId session, ArrayId array, int shard) override;
  absl::StatusOr<ArrayId> Copy(SessionId session, ArrayId array, std::vector<DeviceId> devices,
                               std::optional<std::string> memory_kind, CopySemantics semantics) override;
  absl::StatusOr<ArrayId> Reshard(SessionId session, ArrayId array, ArraySpec spec, CopySemantics semantics) override;
  absl::StatusOr<ArrayId> Remap(SessionId session, ArrayId array, ArraySpec spec) override;
  Future<std::shared_ptr<const std::string>> Fetch(ArrayId array, int shard) override;
  absl::StatusOr<const ArraySpec*> Spec(ArrayId array) const override;
  Future<Unit> Ready(ArrayId array) override;
  Future<Unit> Enqueued(ArrayId array) override;
  absl::Status Delete(ArrayId array) override;
  absl::Status Donate(ArrayId array) override;
  absl::StatusOr<bool> IsDeleted(ArrayId array) const override;
  void Release(ArrayId array) override;
  std::pair<ProgramId, Future<std::shared_ptr<const Program>>> Compile(SessionId session,
                                                                       CompileRequest request) override;
  void ReleaseProgram(SessionId session, ProgramId program) override;
  absl::StatusOr<ExecuteResult> Execute(SessionId session, ProgramId program, absl::Span<const ArrayId> arguments,
                                        const ExecuteOptions& options) override;
  Statistics Stats() const override;
  Observation Observe() const override;
  std::vector<ProgramState> Programs() const override;
  bool Remembers() const override { return journal_.keeps(); }
  LaunchList LaunchesAfter(uint64_t after) const override;
  std::vector<TransferSample> TransfersAfter(uint64_t after) const override;
  absl::StatusOr<std::shared_ptr<const CompileRequest>> Source(absl::string_view program) const override;
  std::vector<DeviceMemory> Memory() const override;

 private:
  struct WorkerLink {
    std::unique_ptr<net::Channel> channel;
    std::string name;  // "a new worker" until it said hello
    WorkerId id{-1};   // -1 until then
    absl::Time last_heard;
    net::Heartbeat beat;
    absl::InlinedVector<net::BufferId, 2> unfreed;  // to be freed with the next message
    std::string fabric;                             // its end of the data plane; empty: none
    absl::flat_hash_set<WorkerId> peers;            // it has been told of
    bool lost = false;
    absl::Time leaves_since = absl::InfiniteFuture();
    // What is to leave together: some of it waits in the channel, launches among it.
    bool gathers = false;
    bool gathers_launches = false;
  };
  using Bytes = std::shared_ptr<const std::string>;
  struct Request {
    WorkerId worker;
    std::function<void(net::Fetched)> answer;
    std::shared_ptr<SessionUse> asker = nullptr;  // null: nobody's
  };
  // One shard of a source array to become a shard of a new one.
  struct Move {
    ArrayId source;
    int from_position = 0;  // in the source's devices
    int to_position = 0;    // in the new array's
  };

  // --- workers (controller_workers.cc) ---
  void Handle(const std::shared_ptr<WorkerLink>& link, net::Message message);
  void OnHello(const std::shared_ptr<WorkerLink>& link, net::Hello hello);
  // The link's worker, new or back, takes its seats. An error where it may not.
  absl::Status Join(const std::shared_ptr<WorkerLink>& link, const net::Hello& hello);
  void TakeSeatsAgain(const std::shared_ptr<WorkerLink>& link, const net::Hello& hello);
  void TakeNewSeats(const std::shared_ptr<WorkerLink>& link, const net::Hello& hello);
  void LoadAgain(WorkerId worker);
  void LetEarlyJoin();
  void OnTasksDone(WorkerLink& link, const net::TasksDone& report);
  void OnFetched(net::Fetched fetched);
  void OnHostCall(const WorkerLink& link, const net::HostCall& call);
  void OnProgramLoaded(WorkerLink& link, const net::ProgramLoaded& loaded);
  static void NoteMemory(ProgramRecord& record, const net::ProgramMemory& told);
  void Lose(const std::shared_ptr<WorkerLink>& link, const absl::Status& reason);
  void FailWhatItOwned(WorkerId worker, const absl::Status& status);
  void ResolveDeviceWaiters();
  // Sends now; a failure is the task's, or loses the worker's answer.
  void SendTo(WorkerId worker, net::Message message, const std::shared_ptr<TaskRecord>& task);
  void FlushFrees(WorkerLink& link);
  // What waits in the link's channel leaves.
  void Leave(WorkerLink& link);
  // Both know how to reach each other from here on.
  void Introduce(WorkerId a, WorkerId b);
  // UNIMPLEMENTED naming one that cannot be reached by others.
  absl::Status CheckFabric(const Placement& placement) const;
  const std::string& WorkerName(WorkerId worker) const { return cluster_.worker(worker).name; }
  void Log(const std::string& line) const;

  // --- sessions and the order of their commands (controller_sessions.cc) ---
  SessionRecord* FindSession(SessionId id);
  // NOT_FOUND, or RESOURCE_EXHAUSTED when too much waits already. Until sessions come or go.
  absl::StatusOr<SessionRecord*> UsableSession(SessionId id);
  void Run(SessionId session, Command command);
  void Dispatch(Command& command);
  void Drain(SessionId id, SessionRecord& session);
  // Whether every scheduler concerned has admitted the launch, which is the first of what the session holds.
  bool AdmitLaunch(SessionRecord& session, TaskRecord& task);
  void DrainLater(SessionId id);
  void Hold(SessionRecord& session, Command command);
  static void CountHeld(SessionRecord& session, int64_t bytes);
  Command TakeFront(SessionRecord& session);
  // It will never be sent: its questions are answered, what it was to take by donation is freed.
  void Forgo(const Command& command, const absl::Status& why);
  void Admitted(const std::vector<sched::GangId>& gangs);
  std::shared_ptr<TaskRecord> NewTask(SessionId session, std::shared_ptr<const dataflow::Graph> graph);
  void PartDone(const std::shared_ptr<TaskRecord>& task, WorkerId worker, const absl::Status& status,
                absl::Duration took = absl::ZeroDuration());
  // The part of `failed` has ended with that error: the task's from now on.
  void PoisonOutputs(TaskRecord& task, WorkerId failed, const absl::Status& status);
  // All parts are done.
  void TaskOver(const std::shared_ptr<TaskRecord>& task);
  void GiveBackMemory(const TaskRecord& task);
  void LaunchOver(TaskRecord& task);
  // All parts of the task.
  void Fail(const std::shared_ptr<TaskRecord>& task, const absl::Status& status);
  void Watch(TaskRecord& task);
  // A launch is over: into the journal (controller_observe.cc).
  void Note(const TaskRecord& task);
  sched::GangScheduler& SchedulerOf(int island);
  sched::TenantId SchedulerTenant(const SessionInfo& info, int island);
  void ForgetSchedulerTenant(const SessionInfo& info, int island, sched::TenantId tenant);

  // --- quotas of tenants (controller_quotas.cc): RESOURCE_EXHAUSTED naming the tenant, logged now and then ---
  absl::Status Refuse(TenantUse& use, absl::string_view why) const;
  absl::Status CheckDeviceQuota(const SessionRecord& session, absl::Span<const DeviceId> devices) const;
  absl::Status CheckLaunchQuota(const SessionRecord& session) const;
  absl::Status CheckByteQuota(const SessionRecord& session, const Command& command) const;
  // Also what every session is bounded by. `more` are about to be made.
  absl::Status CheckArrayQuota(const SessionRecord& session, int64_t more) const;
  absl::Status CheckProgramQuota(const SessionRecord& session) const;
  // `bytes` of the client's are about to wait, where commands do.
  absl::Status CheckHostQuota(const SessionRecord& session, int64_t bytes) const;
  absl::Status CheckQuestions(const SessionRecord& session) const;

  // --- memory (controller_memory.cc) ---
  // Null for what is too small to be counted. Charged to the session's tenant.
  resource::ClaimRef NewClaim(const SessionRecord& session, const Layout& layout);
  // RESOURCE_EXHAUSTED naming the device that is too small for so much.
  absl::Status CheckCapacity(absl::Span<const DeviceId> devices, int64_t bytes) const;
  // False while there is no room for what the first of the session's commands makes; afterwards it has it. What is
  // beyond the tenant's quota fails in a turn of its own.
  bool TakeMemory(SessionId id, SessionRecord& session);
  void FailFrontLater(SessionId id, const SessionRecord& session, absl::Status why);
  void StopWaiting(SessionId id, SessionRecord& session);
  void RetryMemory();
  void GiveUpOnMemory();
  void FailHeld(const SessionRecord& session, const absl::Status& status);
  absl::Status LacksMemory(const Command& command) const;

  // --- slices that move (controller_relocation.cc) ---
  struct Moving {
    absl::flat_hash_map<DeviceId, DeviceId> to;
    Promise<Unit> done;
  };
  void OnLeaving(WorkerLink& link);
  void LetLeave(const std::shared_ptr<WorkerLink>& link);
  std::vector<bool> UsedDevices() const;
  absl::Status CheckRelocation(const resource::Relocation& relocation) const;
  // UNAVAILABLE naming a worker that arrays and programs were to move to.
  absl::Status CheckTargets(const Moving& moving) const;
  // Does what can be done now for the first of the relocations: loads its programs, then changes the seats.
  void ContinueRelocation();
  void FailRelocation(const absl::Status& status);
  void ChangeSeats(const Moving& moving);
  void FollowArray(ArrayId id, ArrayRecord& array, const Moving& moving);

  // --- arrays (controller_arrays.cc, controller_moves.cc) ---
  absl::StatusOr<ArrayRecord*> FindArray(ArrayId id);
  absl::StatusOr<const ArrayRecord*> FindArray(ArrayId id) const;
  // The array, fit for use: not deleted.
  absl::StatusOr<ArrayRecord*> UsableArray(ArrayId id);
  absl::StatusOr<std::shared_ptr<const Layout>> MakeLayout(ArraySpec spec) const;
  // Within the quota, which is the caller's to check.
  ArrayId AddArray(SessionRecord& session, std::shared_ptr<const Layout> layout, std::shared_ptr<TaskRecord> producer);
  // Why it holds no data; OK as far as is known.
  absl::Status ErrorOf(const ArrayRecord& array) const;
  void FreeData(ArrayRecord& array);
  // The bytes of a shard, asked for by `command`.
  Future<Bytes> AskFor(const SessionRecord& session, const ArrayRecord& array, int shard, Command* command);
  void NoteRead(const ArrayRecord& array);
  static bool IsOftenRead(ProgramRecord& program, int output);
  // A copy of shards under that buffer id, ready to be run.
  absl::StatusOr<Command> CopyCommand(SessionId session, const Layout& layout, const std::vector<Move>& moves,
                                      const std::string& what, net::BufferId buffer);
  absl::StatusOr<ArrayId> MoveShards(SessionId session, std::shared_ptr<const Layout> layout,
                                     const std::vector<Move>& moves, std::string what,
                                     CopySemantics semantics = CopySemantics::kShare);
  // Every worker's part of the moves, by worker.
  std::vector<std::pair<WorkerId, net::CopyBuffer>> PlanMoves(const Layout& layout, const std::vector<Move>& moves);

  // --- arrays split in another way (controller_reshard.cc) ---
  absl::StatusOr<ArrayId> PatchShards(SessionId session, ArrayId source, const std::shared_ptr<const Layout>& layout,
                                      const std::vector<ShardPiece>& pieces);
  std::vector<std::pair<WorkerId, net::PatchBuffer>> PlanPatches(ArrayId source, const Layout& layout,
                                                                 const std::vector<ShardPiece>& pieces);

  // --- programs (controller_programs.cc) ---
  // Compiled, and loaded by all its workers.
  absl::StatusOr<ProgramRecord*> RunnableProgram(ProgramId id);
  // Its outputs are the next arrays to be made.
  std::shared_ptr<TaskRecord> NewLaunch(SessionId session, const ProgramRecord& program, const ExecuteOptions& options);
  // The arrays of one run; all hold the error `poison`, if it is one.
  std::vector<ArrayId> AddOutputs(SessionRecord& session, const ProgramRecord& program, const absl::Status& poison,
                                  Command* command);
  // The array's data goes with the command's launch, or at once where there is none.
  void TakeDonated(ArrayRecord& donated, Command* command);
  absl::Status CheckDonations(absl::Span<const ArrayId> arguments, absl::Span<const int64_t> drops);
  absl::Status CheckRequest(const SessionRecord& session, const CompileRequest& request) const;
  // Nobody's yet.
  ProgramRecord& AddProgram(std::string key, CompileRequest request);
  // On a thread for it.
  void StartCompiling(const ProgramRecord& record, std::shared_ptr<SessionUse> asker);
  void CompiledProgram(ProgramId id, absl::StatusOr<compile::CompiledProgram> compiled);
  absl::Status Lower(ProgramRecord& record);
  // Not yet loaded anywhere.
  absl::StatusOr<std::shared_ptr<Deployment>> NewDeployment(ProgramId program, const std::vector<DeviceId>& devices);
  void Load(ProgramRecord& record, Deployment& deployment, WorkerId worker);
  void FinishProgram(ProgramRecord& record, const absl::Status& status);
  // So many references go; with the last the program.
  void Unuse(ProgramId id, int references);
  // Asks for the digests of what a run gives, where this run is to be looked at.
  void Inspect(SessionId session, ProgramRecord& program, const std::vector<ArrayId>& outputs);
  void Judge(const Inspection& inspection);
  static absl::Status CheckFits(const std::shared_ptr<const Layout>& layout, ProgramRecord& program, size_t parameter);
  absl::Status CheckArguments(ProgramRecord& program, absl::Span<const ArrayId> arguments,
                              const ExecuteOptions& options, net::Launch::Order* launch, absl::Status* poison);

  const ControllerOptions options_;
  std::unique_ptr<Strand> own_loop_;
  Executor* const loop_;
  const SystemClock system_clock_;
  const Clock& clock_;

  resource::Cluster cluster_;
  std::vector<DeviceInfo> devices_;
  std::vector<std::shared_ptr<WorkerLink>> links_;  // by worker id: the connection it has, or had last
  std::vector<std::shared_ptr<WorkerLink>> strangers_;
  std::map<int, std::pair<std::shared_ptr<WorkerLink>, net::Hello>> early_;  // by rank: smaller ones are to join first
  std::vector<std::pair<int, Promise<Unit>>> device_waiters_;

  resource::MemoryBook memory_;
  std::deque<SessionId> memory_queue_;  // whose first command waits for memory, the longest waiting first
  bool retry_posted_ = false;

  std::map<std::string, std::shared_ptr<TenantUse>> tenant_uses_;  // by name
  absl::flat_hash_map<SessionId, SessionRecord> sessions_;
  absl::flat_hash_map<ArrayId, std::unique_ptr<ArrayRecord>> arrays_;
  absl::flat_hash_map<ProgramId, std::unique_ptr<ProgramRecord>> programs_;
  absl::node_hash_map<std::string, ProgramId> program_cache_;  // whose keys stay where they are
  absl::flat_hash_map<net::ProgramId, std::pair<ProgramId, Deployment*>> deployments_;  // all that live
  std::deque<Moving> relocations_;
  absl::flat_hash_map<TaskId, std::shared_ptr<TaskRecord>> tasks_;
  absl::flat_hash_map<net::RequestId, Request> requests_;
  std::map<int, sched::GangScheduler> schedulers_;  // by island
  struct SharedTenant {
    sched::TenantId id;
    int sessions = 0;  // that launched something there
  };
  std::map<std::tuple<int, std::string, int>, SharedTenant> shared_tenants_;  // by island, tenant, priority
  std::vector<int> slices_on_;  // by device: how many slices it is part of
  uint64_t next_session_ = 1, next_array_ = 1, next_program_ = 1, next_deployment_ = 1, next_task_ = 1,
           next_request_ = 1;
  int64_t pending_launches_ = 0;
  absl::Duration unreported_;  // expected device time of launches since the last that reports at once
  int next_compile_executor_ = 0;
  DispatchCounts counts_;
  absl::Duration device_time_;  // of all launches that are over, times the devices of each
  LaunchJournal journal_;
  TransferHistory transfers_;
  int together_ = 0;                                   // calls of Together under way
  std::vector<std::shared_ptr<WorkerLink>> gathered_;  // links that gather
  bool stopped_ = false;
  absl::Time last_tick_ = absl::InfiniteFuture();
  bool divergence_reported_ = false, nan_reported_ = false;  // only the first of each tells something

  absl::Mutex closed_mutex_;
  std::vector<std::unique_ptr<net::Channel>> closed_ ABSL_GUARDED_BY(closed_mutex_);
  // Callbacks of channels and compilers hold it weakly, run on the loop, and find nobody after Stop.
  std::shared_ptr<RuntimeController*> self_;
  std::vector<std::unique_ptr<Executor>> own_compilers_;  // last: their threads end before the rest goes
};

}  // namespace gangway::controller

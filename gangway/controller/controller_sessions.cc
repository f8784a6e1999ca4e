// Sessions and the order of what they do.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/amounts.h"
#include "gangway/base/check.h"
#include "gangway/base/status.h"
#include "gangway/controller/runtime_controller.h"

namespace gangway::controller {

using sched::GangId;

absl::Status RuntimeController::Admit(SessionInfo* info) const {
  GW_CHECK(loop_->InLoop());
  if (options_.tenants.open()) return absl::OkStatus();
  const Tenant* tenant = options_.tenants.Find(info->token);
  if (tenant == nullptr) {
    return absl::PermissionDeniedError(
        absl::StrCat("session ", info->name, ": ",
                     info->token.empty() ? "this cluster wants a tenant's token" : "no tenant has this token"));
  }
  const auto sessions = std::count_if(sessions_.begin(), sessions_.end(),
                                      [&](const auto& entry) { return entry.second.info.tenant == tenant->name; });
  if (tenant->max_sessions > 0 && sessions >= tenant->max_sessions) {
    return absl::ResourceExhaustedError(
        absl::StrCat("tenant ", tenant->name, " has ", sessions, " sessions, as many as it may"));
  }
  info->tenant = tenant->name;
  info->weight = tenant->weight;
  info->host_bytes = tenant_uses_.at(tenant->name)->host_bytes;
  info->priority = std::min(info->priority, tenant->max_priority);
  return absl::OkStatus();
}

SessionId RuntimeController::OpenSession(SessionInfo info) {
  GW_CHECK(loop_->InLoop());
  const SessionId id(next_session_++);
  SessionRecord& session = sessions_[id];
  session.id = id;
  auto tenant = tenant_uses_.find(info.tenant);
  session.use = std::make_shared<SessionUse>(SessionUse{tenant == tenant_uses_.end() ? nullptr : tenant->second});
  session.client = std::make_shared<const ClientName>(ClientName{info.name, info.tenant});
  session.info = std::move(info);
  return id;
}

void RuntimeController::CloseSession(SessionId id) {
  GW_CHECK(loop_->InLoop());
  SessionRecord* session = FindSession(id);
  if (session == nullptr) return;
  // What waits for the scheduler will not run; what was dispatched finishes by itself.
  const absl::Status closed = absl::CancelledError(absl::StrCat("session ", session->info.name, " was closed"));
  std::vector<Command> held(std::make_move_iterator(session->held.begin()),
                            std::make_move_iterator(session->held.end()));
  session->held.clear();
  session->held_uses.clear();
  CountHeld(*session, -session->held_bytes);
  for (Command& command : held) {
    Forgo(command, closed);
    if (command.task != nullptr) Fail(command.task, closed);
    for (Command::Outgoing& out : command.messages) {
      if (std::holds_alternative<net::FreeBuffers>(out.message)) SendTo(out.worker, std::move(out.message), nullptr);
    }
  }
  std::vector<ArrayId> owned;
  for (const auto& [array, record] : arrays_) {
    if (record->session == id) owned.push_back(array);
  }
  for (ArrayId array : owned) Release(array);
  session = FindSession(id);  // whoever heard of a failure may have opened or closed sessions
  if (session == nullptr) return;
  auto programs = std::move(session->programs);
  for (const auto& [program, references] : programs) {
    session->use->AddPrograms(-references);
    Unuse(program, references);
  }
  for (size_t island = 0; island < session->tenants.size(); ++island) {
    if (session->tenants[island].value() < 0) continue;
    ForgetSchedulerTenant(session->info, static_cast<int>(island), session->tenants[island]);
  }
  for (const std::vector<DeviceId>& slice : session->slices) {
    for (DeviceId device : slice) --slices_on_[device.value()];
  }
  std::erase(memory_queue_, id);
  sessions_.erase(id);
}

absl::StatusOr<std::vector<DeviceId>> RuntimeController::MakeSlice(SessionId id,
                                                                   const resource::SliceRequest& request) {
  GW_CHECK(loop_->InLoop());
  GW_ASSIGN_OR_RETURN(SessionRecord * session, UsableSession(id));
  slices_on_.resize(cluster_.devices().size());
  GW_ASSIGN_OR_RETURN_WITH(std::vector<DeviceId> devices, resource::PlanSlice(cluster_, request, slices_on_), "slice");
  GW_RETURN_IF_ERROR_WITH(CheckDeviceQuota(*session, devices), "slice");
  size_t sliced = 0;
  for (const std::vector<DeviceId>& slice : session->slices) sliced += slice.size();
  if (sliced + devices.size() > options_.session.slice_devices) {
    return absl::ResourceExhaustedError(absl::StrCat("session ", session->info.name, ": its slices have ", sliced,
                                                     " devices in all, as many as a session's may"));
  }
  for (DeviceId device : devices) ++slices_on_[device.value()];
  session->slices.push_back(devices);
  return devices;
}

absl::Status RuntimeController::FreeSlice(SessionId id, absl::Span<const DeviceId> slice) {
  GW_CHECK(loop_->InLoop());
  GW_ASSIGN_OR_RETURN(SessionRecord * session, UsableSession(id));
  auto it = std::find(session->slices.begin(), session->slices.end(), slice);
  if (it == session->slices.end()) return absl::NotFoundError("the session has no such slice");
  for (DeviceId device : *it) --slices_on_[device.value()];
  session->slices.erase(it);
  return absl::OkStatus();
}

SessionRecord* RuntimeController::FindSession(SessionId id) {
  auto it = sessions_.find(id);
  return it == sessions_.end() ? nullptr : &it->second;
}

absl::StatusOr<SessionRecord*> RuntimeController::UsableSession(SessionId id) {
  SessionRecord* session = FindSession(id);
  if (session == nullptr) return absl::NotFoundError(absl::StrCat("no session ", id.value()));
  if (session->held.size() >= options_.session.commands || session->held_bytes >= options_.session.bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("session ", session->info.name, " has ", session->held.size(),
                                                     " commands with ", BytesText(session->held_bytes), " waiting"));
  }
  return session;
}

sched::GangScheduler& RuntimeController::SchedulerOf(int island) {
  return schedulers_.try_emplace(island, options_.scheduler).first->second;
}

// A tenant's sessions of one priority share its share; who is nobody's has one of its own.
sched::TenantId RuntimeController::SchedulerTenant(const SessionInfo& info, int island) {
  auto add = [&] {
    return SchedulerOf(island).AddTenant(info.tenant.empty() ? info.name : info.tenant, info.weight, info.priority);
  };
  if (info.tenant.empty()) return add();
  SharedTenant& shared = shared_tenants_[{island, info.tenant, info.priority}];
  if (shared.sessions++ == 0) shared.id = add();
  return shared.id;
}

void RuntimeController::ForgetSchedulerTenant(const SessionInfo& info, int island, sched::TenantId tenant) {
  if (auto shared = shared_tenants_.find({island, info.tenant, info.priority}); shared != shared_tenants_.end()) {
    if (--shared->second.sessions > 0) return;
    shared_tenants_.erase(shared);
  }
  schedulers_.at(island).RemoveTenant(tenant);
}

const sched::GangScheduler* RuntimeController::scheduler(int island) const {
  auto it = schedulers_.find(island);
  return it == schedulers_.end() ? nullptr : &it->second;
}

std::shared_ptr<TaskRecord> RuntimeController::NewTask(SessionId session,
                                                       std::shared_ptr<const dataflow::Graph> graph) {
  auto task = std::make_shared<TaskRecord>(std::move(graph));
  task->id = TaskId(next_task_++);
  task->session = session;
  tasks_.emplace(task->id, task);
  return task;
}

// In the session's order: at once, unless something of it waits for the scheduler.
void RuntimeController::Run(SessionId id, Command command) {
  SessionRecord* session = FindSession(id);
  if (session == nullptr) {  // frees of a session that is being closed
    for (Command::Outgoing& out : command.messages) SendTo(out.worker, std::move(out.message), command.task);
    return;
  }
  const bool may_wait = command.task != nullptr && (command.task->is_launch || !command.claims.empty());
  if (session->held.empty() && !may_wait) return Dispatch(command);
  Hold(*session, std::move(command));
  if (session->held.size() == 1) Drain(id, *session);
}

void RuntimeController::CountHeld(SessionRecord& session, int64_t bytes) {
  session.held_bytes += bytes;
  if (session.use->tenant != nullptr) session.use->tenant->host_bytes->AddAnyway(bytes);
}

void RuntimeController::Hold(SessionRecord& session, Command command) {
  ForEachBuffer(command, [&](net::BufferId buffer) { ++session.held_uses[buffer]; });
  CountHeld(session, command.host_bytes);
  session.held.push_back(std::move(command));
}

Command RuntimeController::TakeFront(SessionRecord& session) {
  Command front = std::move(session.held.front());
  session.held.pop_front();
  CountHeld(session, -front.host_bytes);
  ForEachBuffer(front, [&](net::BufferId buffer) {
    auto it = session.held_uses.find(buffer);
    if (--it->second == 0) session.held_uses.erase(it);
  });
  return front;
}

// Sends from the front until one has to wait: for memory, or for the scheduler. The launch at the front is submitted
// when it gets there, so the scheduler chooses among sessions by their heads. Idempotent.
void RuntimeController::Drain(SessionId id, SessionRecord& session) {
  while (!session.held.empty()) {
    Command& front = session.held.front();
    const bool alive = front.task != nullptr && !front.task->over;
    if (!alive) StopWaiting(id, session);
    if (alive && !TakeMemory(id, session)) return;
    if (alive && front.task->is_launch && !AdmitLaunch(session, *front.task)) return;
    Command next = TakeFront(session);
    Dispatch(next);
  }
}

// The schedulers are asked one after the other, each once the one before has admitted the launch: it keeps its room
// with those while it waits, and since all go by ascending islands no two launches wait for each other.
bool RuntimeController::AdmitLaunch(SessionRecord& session, TaskRecord& task) {
  while (task.admitted < task.islands->size()) {
    if (task.asked > task.admitted) return false;
    const IslandPart& part = (*task.islands)[task.asked++];
    if (static_cast<int>(session.tenants.size()) <= part.island) {
      session.tenants.resize(part.island + 1, sched::TenantId(-1));
    }
    sched::TenantId& tenant = session.tenants[part.island];
    if (tenant.value() < 0) tenant = SchedulerTenant(session.info, part.island);
    sched::Gang gang{GangId(task.id.value()), tenant, sched::Devices(task.islands, &part.devices), task.cost};
    if (SchedulerOf(part.island).Submit(std::move(gang), clock_.Now())) ++task.admitted;
  }
  return true;
}

void RuntimeController::DrainLater(SessionId id) {
  loop_->Post([this, weak = std::weak_ptr<RuntimeController*>(self_), id] {
    if (weak.lock() == nullptr) return;
    if (SessionRecord* session = FindSession(id)) Drain(id, *session);
  });
}

void RuntimeController::Admitted(const std::vector<GangId>& gangs) {
  for (GangId gang : gangs) {
    auto it = tasks_.find(TaskId(gang.value()));
    if (it == tasks_.end()) continue;
    SessionRecord* session = FindSession(it->second->session);
    // It is the front of its session's line: only fronts are submitted.
    if (session == nullptr || session->held.empty() || session->held.front().task != it->second) continue;
    ++it->second->admitted;
    Drain(it->second->session, *session);
  }
}

void RuntimeController::Dispatch(Command& command) {
  const std::shared_ptr<TaskRecord>& task = command.task;
  bool news_due = false;
  if (task != nullptr) {
    if (task->over) return Forgo(command, task->error);  // failed while it waited
    task->dispatched = true;
    if (task->is_launch) {
      ++counts_.launches;
      // Every so often a report is due at once, so that the scheduler sees room before the line runs dry.
      unreported_ += task->cost;
      news_due = counts_.launches % std::max(1, options_.scheduler.lookahead / 4) == 0 ||
                 unreported_ >= options_.scheduler.horizon / 8;
      if (news_due) unreported_ = absl::ZeroDuration();
      task->dispatched_at = clock_.Now();
    }
  }
  Together([&] {
    if (command.launch != nullptr) {
      const net::Launch launch{std::move(command.launch), task->watched || news_due};
      for (WorkerId worker : task->workers()) SendTo(worker, launch, task);
    }
    for (Command::Outgoing& out : command.messages) SendTo(out.worker, std::move(out.message), task);
  });
  command.gives_back.clear();
  if (task != nullptr) task->deployment.reset();
  if (task != nullptr && task->watched && !task->is_launch && !task->over) {
    task->watched = false;
    Watch(*task);
  }
}

void RuntimeController::Forgo(const Command& command, const absl::Status& why) {
  for (const Command::Outgoing& out : command.messages) {
    if (net::RequestId request = RequestOf(out.message); request.value() != 0) OnFetched({request, why, {}});
  }
  if (command.launch == nullptr || command.launch->drop.empty()) return;
  net::FreeBuffers donated;
  for (int64_t index : command.launch->drop) donated.buffers.push_back(command.launch->arguments[index]);
  for (WorkerId worker : command.task->workers()) {
    if (cluster_.worker(worker).alive) SendTo(worker, donated, nullptr);
  }
}

// Somebody waits for a task: its workers are to tell as soon as it is over.
void RuntimeController::Watch(TaskRecord& task) {
  if (std::exchange(task.watched, true) || !task.dispatched || task.over) return;
  for (WorkerId worker : task.workers()) {
    if (task.progress.IsOpen(dataflow::NodeId(0), worker)) SendTo(worker, net::WatchTasks{{task.id}}, nullptr);
  }
}

void RuntimeController::Fail(const std::shared_ptr<TaskRecord>& task, const absl::Status& status) {
  for (WorkerId worker : task->workers()) PartDone(task, worker, status);
}

void RuntimeController::PartDone(const std::shared_ptr<TaskRecord>& task, WorkerId worker, const absl::Status& status,
                                 absl::Duration took) {
  if (task->over) return;
  task->took = std::max(task->took, took);
  const dataflow::Step step = task->progress.PartDone(dataflow::NodeId(0), worker, status);
  if (!step.poisoned.empty()) PoisonOutputs(*task, worker, status);
  if (step.over) return TaskOver(task);
  if (!task->error.ok()) task->done.Set(task->error);
}

// Other workers know nothing of the failure, and must not take their parts for good.
void RuntimeController::PoisonOutputs(TaskRecord& task, WorkerId failed, const absl::Status& status) {
  // Most workers have said already which program it was.
  task.error = absl::StartsWith(status.message(), task.What()) ? status : Annotate(status, task.What());
  net::PoisonBuffers poison;
  ForEachOutput(task, [&](net::BufferId output) { poison.buffers.push_back(output); });
  poison.status = task.error;
  poison.task = task.id;
  for (WorkerId other : task.workers()) {
    if (other != failed && cluster_.worker(other).alive) SendTo(other, poison, nullptr);
  }
}

void RuntimeController::TaskOver(const std::shared_ptr<TaskRecord>& task) {
  task->over = true;
  tasks_.erase(task->id);
  if (!task->dispatched) DrainLater(task->session);
  if (!task->error.ok()) GiveBackMemory(*task);
  if (task->is_launch) LaunchOver(*task);
  task->done.Set(task->error.ok() ? absl::StatusOr<Unit>(Unit{}) : absl::StatusOr<Unit>(task->error));
}

// Of what it was to make and did not.
void RuntimeController::GiveBackMemory(const TaskRecord& task) {
  ForEachOutput(task, [&](net::BufferId output) {
    auto made = arrays_.find(ArrayId(output.value()));
    if (made != arrays_.end()) made->second->memory.clear();
  });
}

void RuntimeController::LaunchOver(TaskRecord& task) {
  --pending_launches_;
  if (task.use != nullptr) --task.use->launches;
  task.deployment.reset();
  std::optional<absl::Duration> took;
  if (task.took > absl::ZeroDuration()) {
    took = task.took;
    auto program = programs_.find(task.program);
    if (program != programs_.end()) program->second->cost += (task.took - program->second->cost) / 8;
  }
  const GangId gang(task.id.value());
  for (const IslandPart& part : *task.islands) {
    sched::GangScheduler& scheduler = SchedulerOf(part.island);
    // One of the two knows it, if it came that far.
    Admitted(scheduler.Finished(gang, clock_.Now(), took));
    Admitted(scheduler.Cancel(gang, clock_.Now()));
  }
  Note(task);
}

}  // namespace gangway::controller

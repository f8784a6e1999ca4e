// Programs: compiled once, loaded by every worker that has devices of them, run by one message per worker.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/base/amounts.h"
#include "gangway/base/check.h"
#include "gangway/base/status.h"
#include "gangway/controller/runtime_controller.h"
#include "gangway/controller/shard_pieces.h"
#include "gangway/mesh/geometry.h"

namespace gangway::controller {
namespace {

// Two requests with equal keys get the same program. The artifact itself is part of it: a hash could collide.
std::string KeyOf(const CompileRequest& request) {
  std::string key =
      absl::StrJoin(request.devices, ",", [](std::string* out, DeviceId id) { absl::StrAppend(out, id.value()); });
  auto add_bits = [&key](const std::vector<bool>& bits) {
    absl::StrAppend(&key, "|");
    for (bool bit : bits) key.push_back(bit ? '1' : '0');
  };
  absl::StrAppend(&key, "|", request.options.num_partitions, "|", request.options.host_collectives, "|",
                  request.options.memory_bytes, "|", request.options.files);
  add_bits(request.options.propagate_to_parameters);
  add_bits(request.options.propagate_to_output);
  absl::StrAppend(&key, "|", request.artifact);
  return key;
}

absl::StatusOr<std::shared_ptr<const Layout>> LayoutOf(const compile::ValueInfo& value, const Program& program,
                                                       const Placement& placement) {
  auto layout = std::make_shared<Layout>();
  layout->spec.dtype = value.shape.dtype();
  layout->spec.dims = value.shape.dims();
  layout->spec.devices = program.devices;
  layout->spec.shard_dims = {ShardShape(value.shape, value.sharding).dims()};
  layout->spec.sharding = value.sharding;
  layout->spec.memory_kind = value.memory_kind;
  layout->placement = placement;
  layout->shard_bytes = ByteWidth(layout->spec.dtype);
  for (int64_t dim : layout->spec.shard_dims[0]) layout->shard_bytes *= dim;
  return std::shared_ptr<const Layout>(std::move(layout));
}

}  // namespace

absl::Status RuntimeController::CheckRequest(const SessionRecord& session, const CompileRequest& request) const {
  GW_RETURN_IF_ERROR(cluster_.Place(request.devices).status());
  if (request.options.num_partitions != static_cast<int64_t>(request.devices.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.options.num_partitions, " partitions for ", request.devices.size(), " devices"));
  }
  if (static_cast<int64_t>(request.artifact.size()) > options_.max_program_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a program of ", BytesText(request.artifact.size()),
                                                     "; this cluster takes up to ",
                                                     BytesText(options_.max_program_bytes)));
  }
  GW_RETURN_IF_ERROR(CheckDeviceQuota(session, request.devices));
  GW_RETURN_IF_ERROR(CheckProgramQuota(session));
  return CheckQuestions(session);
}

std::pair<ProgramId, Future<std::shared_ptr<const Program>>> RuntimeController::Compile(SessionId session,
                                                                                        CompileRequest request) {
  GW_CHECK(loop_->InLoop());
  using Outcome = absl::StatusOr<std::shared_ptr<const Program>>;
  auto fail = [](absl::Status status) {
    return std::make_pair(ProgramId(), Future<std::shared_ptr<const Program>>(Outcome(std::move(status))));
  };
  const auto usable = UsableSession(session);
  if (!usable.ok()) return fail(usable.status());
  SessionRecord& owner = **usable;
  if (absl::Status status = CheckRequest(owner, request); !status.ok()) return fail(Annotate(status, "compile"));
  if (request.options.memory_bytes == 0) request.options.memory_bytes = memory_.LeastLimit(request.devices);
  request.options.files = owner.use->tenant == nullptr ? "" : FolderOf(owner.use->tenant->tenant);
  std::string key = KeyOf(request);
  // Functions of one client are of no use to another.
  if (request.options.host_callbacks > 0) absl::StrAppend(&key, "|program ", next_program_);
  auto cached = program_cache_.find(key);
  ProgramRecord& record =
      cached != program_cache_.end() ? *programs_.at(cached->second) : AddProgram(std::move(key), std::move(request));
  if (++record.references == 1) StartCompiling(record, owner.use);
  ++owner.programs[record.id];
  owner.use->AddPrograms(1);
  return {record.id, record.ready.future()};
}

ProgramRecord& RuntimeController::AddProgram(std::string key, CompileRequest request) {
  const ProgramId id(next_program_++);
  auto record = std::make_unique<ProgramRecord>();
  record->id = id;
  record->devices = request.devices;
  record->request = std::make_shared<const CompileRequest>(std::move(request));
  record->key = &program_cache_.emplace(std::move(key), id).first->first;
  return *programs_.emplace(id, std::move(record)).first->second;
}

void RuntimeController::StartCompiling(const ProgramRecord& record, std::shared_ptr<SessionUse> asker) {
  ++asker->questions;
  const auto& borrowed = options_.compile_executors;
  const size_t slots = borrowed.empty() ? own_compilers_.size() : borrowed.size();
  const size_t slot = next_compile_executor_++ % slots;
  Executor& executor = borrowed.empty() ? *own_compilers_[slot] : *borrowed[slot];
  executor.Post([compile = options_.compile, wanted = std::weak_ptr<const CompileRequest>(record.request),
                 id = record.id, &loop = *loop_, weak = std::weak_ptr<RuntimeController*>(self_),
                 asker = std::move(asker)] {
    loop.Post([asker] { --asker->questions; });
    const std::shared_ptr<const CompileRequest> request = wanted.lock();
    if (request == nullptr) return;  // released meanwhile: others are waiting for this thread
    auto compiled =
        std::make_shared<absl::StatusOr<compile::CompiledProgram>>(compile(request->artifact, request->options));
    loop.Post([weak, id, compiled] {
      if (auto self = weak.lock()) (*self)->CompiledProgram(id, std::move(*compiled));
    });
  });
}

void RuntimeController::CompiledProgram(ProgramId id, absl::StatusOr<compile::CompiledProgram> compiled) {
  auto it = programs_.find(id);
  if (it == programs_.end()) return;  // released meanwhile
  ProgramRecord& record = *it->second;
  if (!compiled.ok()) return FinishProgram(record, compiled.status());
  auto program = std::make_shared<Program>();
  program->id = id;
  program->devices = record.devices;
  program->compiled = *std::move(compiled);
  record.compiled = std::move(program);
  if (absl::Status status = Lower(record); !status.ok()) {
    return FinishProgram(record, Annotate(status, absl::StrCat("program ", record.compiled->compiled.name)));
  }
  for (const resource::Share& share : record.deployment->placement) Load(record, *record.deployment, share.worker);
  ContinueRelocation();
}

absl::StatusOr<std::shared_ptr<Deployment>> RuntimeController::NewDeployment(ProgramId program,
                                                                             const std::vector<DeviceId>& devices) {
  const compile::CompiledProgram& compiled = programs_.at(program)->compiled->compiled;
  GW_ASSIGN_OR_RETURN(Placement placement, cluster_.Place(devices));
  if (placement.size() > 1 && !compiled.stats.collectives.empty()) GW_RETURN_IF_ERROR(CheckFabric(placement));
  auto unload = [this, weak = std::weak_ptr<RuntimeController*>(self_)](Deployment* deployment) {
    const std::unique_ptr<Deployment> gone(deployment);
    if (weak.lock() == nullptr) return;
    deployments_.erase(gone->id);
    for (const resource::Share& share : gone->placement) {
      if (!links_[share.worker.value()]->lost) SendTo(share.worker, net::UnloadProgram{gone->id}, nullptr);
    }
  };
  std::shared_ptr<Deployment> deployment(new Deployment, std::move(unload));
  deployment->id = net::ProgramId(next_deployment_++);
  deployment->placement = std::move(placement);
  deployment->devices = devices;
  deployment->graph = std::make_shared<const dataflow::Graph>(
      dataflow::SingleNode(dataflow::NodeKind::kCompute, compiled.name, static_cast<int>(compiled.parameters.size()),
                           static_cast<int>(compiled.outputs.size()), WorkersOf(deployment->placement)));
  deployments_[deployment->id] = {program, deployment.get()};
  return deployment;
}

// What all executions have in common: the graph, the layouts of what goes in and comes out.
absl::Status RuntimeController::Lower(ProgramRecord& record) {
  const compile::CompiledProgram& compiled = record.compiled->compiled;
  GW_ASSIGN_OR_RETURN(record.deployment, NewDeployment(record.id, record.devices));
  const Placement& placement = record.deployment->placement;
  for (const compile::ValueInfo& value : compiled.parameters) {
    GW_ASSIGN_OR_RETURN(auto layout, LayoutOf(value, *record.compiled, placement));
    record.parameters.push_back(std::move(layout));
    record.fitting.push_back(nullptr);
  }
  for (const compile::ValueInfo& value : compiled.outputs) {
    GW_ASSIGN_OR_RETURN(auto layout, LayoutOf(value, *record.compiled, placement));
    record.outputs.push_back(std::move(layout));
    record.reads.push_back(0);
  }
  record.scratch_bytes = compiled.stats.peak_bytes_per_device;
  for (const auto& layout : record.parameters) record.scratch_bytes -= layout->shard_bytes;
  for (const auto& layout : record.outputs) {
    record.scratch_bytes -= layout->shard_bytes;
    record.output_bytes += layout->shard_bytes;
  }
  record.scratch_bytes = std::max<int64_t>(0, record.scratch_bytes);
  std::map<int, std::vector<int>> by_island;
  for (DeviceId device : record.devices) by_island[cluster_.device(device).island].push_back(device.value());
  std::vector<IslandPart> islands;
  for (auto& [island, devices] : by_island) islands.push_back({island, std::move(devices)});
  record.islands = std::make_shared<const std::vector<IslandPart>>(std::move(islands));
  return absl::OkStatus();
}

void RuntimeController::Load(ProgramRecord& record, Deployment& deployment, WorkerId worker) {
  const compile::CompiledProgram& compiled = record.compiled->compiled;
  net::LoadProgram load;
  load.program = deployment.id;
  load.name = compiled.name;
  // The program lives as long as a channel reads it.
  load.executable = net::Payload(record.compiled, compiled.executable.data(), compiled.executable.size());
  load.num_partitions = static_cast<int>(record.devices.size());
  for (const resource::Share& share : deployment.placement) {
    if (share.worker != worker) continue;
    for (const auto& member : share.members) load.partitions.push_back({member.position, member.local});
  }
  if (!compiled.stats.collectives.empty()) {
    for (DeviceId id : deployment.devices) {
      const resource::Device& device = cluster_.device(id);
      load.participants.push_back(
          absl::StrCat("worker ", WorkerName(device.worker), " ", device.kind, ":", device.local));
      if (deployment.placement.size() > 1) load.owners.push_back(net::PeerId(device.worker.value()));
    }
    for (const resource::Share& share : deployment.placement) Introduce(worker, share.worker);
  }
  deployment.loading.insert(worker);
  WorkerLink& link = *links_[worker.value()];
  absl::Status sent = link.lost ? absl::UnavailableError(absl::StrCat("worker ", link.name, " is lost"))
                                : link.channel->Send(std::move(load));
  if (!sent.ok()) FinishProgram(record, sent);
}

void RuntimeController::OnProgramLoaded(WorkerLink& link, const net::ProgramLoaded& loaded) {
  auto it = deployments_.find(loaded.program);
  if (it == deployments_.end()) return;
  const auto [id, deployment] = it->second;
  auto program = programs_.find(id);
  if (program == programs_.end() || deployment->loading.erase(link.id) == 0) return;
  ProgramRecord& record = *program->second;
  if (loaded.memory.has_value()) NoteMemory(record, *loaded.memory);
  if (loaded.status.ok()) deployment->loaded.insert(link.id);
  if (deployment == record.next.get()) return loaded.status.ok() ? ContinueRelocation() : FailRelocation(loaded.status);
  if (!loaded.status.ok() || deployment->loading.empty()) FinishProgram(record, loaded.status);
}

// Until clients see the program; a worker that loads it later compiles the same.
void RuntimeController::NoteMemory(ProgramRecord& record, const net::ProgramMemory& told) {
  if (record.program != nullptr || record.compiled == nullptr) return;
  net::ProgramMemory& memory =
      record.compiled->memory.has_value() ? *record.compiled->memory : record.compiled->memory.emplace(told);
  memory.code = std::max(memory.code, told.code);
  memory.arguments = std::max(memory.arguments, told.arguments);
  memory.outputs = std::max(memory.outputs, told.outputs);
  memory.aliased = std::max(memory.aliased, told.aliased);
  memory.temporaries = std::max(memory.temporaries, told.temporaries);
  memory.peak = std::max(memory.peak, told.peak);
  record.scratch_bytes = memory.temporaries;
}

void RuntimeController::FinishProgram(ProgramRecord& record, const absl::Status& status) {
  // A worker that came back has it again, or will refuse its launches; the first failure is the program's.
  if (record.program != nullptr || !record.error.ok()) return;
  absl::StatusOr<std::shared_ptr<const Program>> outcome = record.compiled;
  if (status.ok()) {
    record.program = record.compiled;
  } else {
    outcome = status;
    record.error = status;
    // The next who asks shall have it tried again.
    if (record.key != nullptr) program_cache_.erase(*std::exchange(record.key, nullptr));
  }
  // In a turn of its own: whoever waits may release the program at once, and our callers still hold the record.
  loop_->Post([ready = record.ready, outcome = std::move(outcome)] { ready.Set(outcome); });
}

void RuntimeController::ReleaseProgram(SessionId session, ProgramId id) {
  GW_CHECK(loop_->InLoop());
  SessionRecord* owner = FindSession(session);
  if (owner == nullptr) return;
  auto held = owner->programs.find(id);
  if (held == owner->programs.end()) return;
  owner->use->AddPrograms(-1);
  if (--held->second == 0) owner->programs.erase(held);
  Unuse(id, 1);
}

void RuntimeController::Unuse(ProgramId id, int references) {
  auto it = programs_.find(id);
  if (it == programs_.end() || (it->second->references -= references) > 0) return;
  std::unique_ptr<ProgramRecord> record = std::move(it->second);
  programs_.erase(it);
  if (record->key != nullptr) program_cache_.erase(*record->key);
  record->ready.Set(absl::CancelledError("the program was released while it was compiled"));
}

// Whether an array like that may be this parameter. Remembers what may.
absl::Status RuntimeController::CheckFits(const std::shared_ptr<const Layout>& layout, ProgramRecord& program,
                                          size_t parameter) {
  if (layout == program.parameters[parameter] || layout == program.fitting[parameter]) return absl::OkStatus();
  const ArraySpec& spec = layout->spec;
  const ArraySpec& wanted = program.parameters[parameter]->spec;
  if (spec.holds_strings) return absl::InvalidArgumentError("it is an array of strings; programs take none");
  if (spec.dtype != wanted.dtype || spec.dims != wanted.dims) {
    return absl::InvalidArgumentError(absl::StrCat("it is ", Shape(spec.dtype, spec.dims).ToString(),
                                                   ", the parameter ", Shape(wanted.dtype, wanted.dims).ToString()));
  }
  if (spec.devices != wanted.devices) {
    return absl::InvalidArgumentError("it is on other devices than the program");
  }
  for (const DimVector& dims : spec.shard_dims) {
    if (dims == wanted.shard_dims[0]) continue;
    return absl::InvalidArgumentError(absl::StrCat("it has shards of ", Shape(spec.dtype, dims).ToString(),
                                                   ", the program takes ",
                                                   Shape(wanted.dtype, wanted.shard_dims[0]).ToString()));
  }
  if (HoldOtherParts(spec, wanted)) {
    return absl::InvalidArgumentError(absl::StrCat("it is split as ", spec.sharding->ToString(), ", the program takes ",
                                                   wanted.sharding->ToString()));
  }
  program.fitting[parameter] = layout;
  return absl::OkStatus();
}

// Fills the launch's arguments, keeps and drops. `*poison` gets the error of an argument that failed.
absl::Status RuntimeController::CheckArguments(ProgramRecord& program, absl::Span<const ArrayId> arguments,
                                               const ExecuteOptions& options, net::Launch::Order* launch,
                                               absl::Status* poison) {
  const compile::CompiledProgram& compiled = program.program->compiled;
  if (arguments.size() != compiled.parameters.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("takes ", compiled.parameters.size(), " arguments, got ", arguments.size()));
  }
  launch->arguments.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    GW_ASSIGN_OR_RETURN_WITH(ArrayRecord * array, UsableArray(arguments[i]), absl::StrCat("argument ", i));
    const absl::Status error = ErrorOf(*array);
    poison->Update(error);
    // What was never made may lack a type.
    if (error.ok()) GW_RETURN_IF_ERROR_WITH(CheckFits(array->layout, program, i), absl::StrCat("argument ", i));
    launch->arguments.push_back(array->buffer);
    const bool donates = i < compiled.donation.size() && compiled.donation[i] != compile::Donation::kNone;
    if (!donates) continue;
    const bool keep_array = options.non_donatable.contains(static_cast<int>(i));
    if (keep_array || array->HasCopiesInPlace()) launch->keep.push_back(static_cast<int64_t>(i));
    if (!keep_array) launch->drop.push_back(static_cast<int64_t>(i));
  }
  return CheckDonations(arguments, launch->drop);
}

// What is donated may be no other argument, nor a shard of one.
absl::Status RuntimeController::CheckDonations(absl::Span<const ArrayId> arguments, absl::Span<const int64_t> drops) {
  if (drops.empty()) return absl::OkStatus();
  absl::flat_hash_map<const SharedShard*, int64_t> users;
  absl::flat_hash_map<ArrayId, int64_t> uses;
  for (ArrayId argument : arguments) {
    ++uses[argument];
    for (const auto& shard : arrays_[argument]->shared) {
      if (shard != nullptr) ++users[shard.get()];
    }
  }
  for (int64_t drop : drops) {
    bool alone = uses[arguments[drop]] == 1;
    for (const auto& shard : arrays_[arguments[drop]]->shared) alone &= shard == nullptr || users[shard.get()] == 1;
    if (alone) continue;
    return absl::InvalidArgumentError(absl::StrCat("argument ", drop, " is donated and used by another argument"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ProgramRecord*> RuntimeController::RunnableProgram(ProgramId id) {
  auto it = programs_.find(id);
  if (it == programs_.end()) return absl::NotFoundError(absl::StrCat("no program ", id.value()));
  ProgramRecord& program = *it->second;
  if (!program.error.ok()) return program.error;
  if (program.program == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("program ", id.value(), " is not compiled yet"));
  }
  const Deployment& deployment = *program.deployment;
  if (deployment.loaded.size() == deployment.placement.size()) return &program;
  for (const resource::Share& share : deployment.placement) {
    if (deployment.loaded.contains(share.worker)) continue;
    return absl::UnavailableError(absl::StrCat("program ", program.program->compiled.name, ": worker ",
                                               WorkerName(share.worker), " is lost or still loading it"));
  }
  return &program;
}

std::shared_ptr<TaskRecord> RuntimeController::NewLaunch(SessionId session, const ProgramRecord& program,
                                                         const ExecuteOptions& options) {
  std::shared_ptr<TaskRecord> task = NewTask(session, program.deployment->graph);
  task->is_launch = true;
  task->watched = options.notify;
  task->islands = program.islands;
  task->program = program.id;
  task->cost = program.cost;
  task->submitted = clock_.Now();
  task->deployment = program.deployment;
  task->first_output = net::BufferId(next_array_);
  task->num_outputs = static_cast<int>(program.outputs.size());
  return task;
}

std::vector<ArrayId> RuntimeController::AddOutputs(SessionRecord& session, const ProgramRecord& program,
                                                   const absl::Status& poison, Command* command) {
  std::vector<ArrayId> outputs;
  outputs.reserve(program.outputs.size());
  for (const auto& layout : program.outputs) {
    outputs.push_back(AddArray(session, layout, command->task));
    ArrayRecord& output = *arrays_[outputs.back()];
    output.program = program.id;
    output.output = static_cast<int>(outputs.size()) - 1;
    if (!poison.ok()) {
      output.error = poison;
    } else if (resource::ClaimRef claim = NewClaim(session, *layout)) {
      output.memory.push_back(claim);
      command->claims.push_back(std::move(claim));
    }
  }
  return outputs;
}

void RuntimeController::TakeDonated(ArrayRecord& donated, Command* command) {
  for (const auto& shard : donated.shared) {
    if (shard != nullptr) shard->gone = true;
  }
  donated.deleted = true;
  donated.shared.clear();
  if (command->task == nullptr) return FreeData(donated);
  std::move(donated.memory.begin(), donated.memory.end(), std::back_inserter(command->gives_back));
  donated.memory.clear();
}

absl::StatusOr<ExecuteResult> RuntimeController::Execute(SessionId session, ProgramId id,
                                                         absl::Span<const ArrayId> arguments,
                                                         const ExecuteOptions& options) {
  GW_CHECK(loop_->InLoop());
  GW_ASSIGN_OR_RETURN(SessionRecord * owner, UsableSession(session));
  GW_RETURN_IF_ERROR(CheckLaunchQuota(*owner));
  GW_ASSIGN_OR_RETURN(ProgramRecord * runnable, RunnableProgram(id));
  ProgramRecord& program = *runnable;
  const auto context = [&] { return absl::StrCat("program ", program.program->compiled.name); };
  GW_RETURN_IF_ERROR_WITH(CheckArrayQuota(*owner, static_cast<int64_t>(program.outputs.size())), context());
  net::Launch::Order launch;
  absl::Status poison;
  GW_RETURN_IF_ERROR_WITH(CheckArguments(program, arguments, options, &launch, &poison), context());
  if (poison.ok()) {
    GW_RETURN_IF_ERROR_WITH(CheckCapacity(program.devices, program.output_bytes + program.scratch_bytes), context());
  }
  Command command;
  if (poison.ok()) command.task = NewLaunch(session, program, options);
  command.scratch = program.scratch_bytes;
  launch.first_output = net::BufferId(next_array_);
  ExecuteResult result{AddOutputs(*owner, program, poison, &command), ReadyFuture()};
  for (int64_t drop : launch.drop) TakeDonated(*arrays_[arguments[drop]], &command);
  if (!poison.ok()) {
    result.done = Future<Unit>(absl::StatusOr<Unit>(poison));
    return result;
  }
  launch.task = command.task->id;
  launch.program = program.deployment->id;
  result.done = command.task->done.future();
  ++pending_launches_;
  command.task->client = owner->client;
  command.task->use = owner->use->tenant;
  if (command.task->use != nullptr) ++command.task->use->launches;
  command.launch = std::make_shared<const net::Launch::Order>(std::move(launch));
  for (ArrayId made : result.outputs) {
    ArrayRecord& output = *arrays_[made];
    if (IsOftenRead(program, output.output)) output.early = AskFor(*owner, output, 0, &command);
  }
  Run(session, std::move(command));
  if (options_.inspect.Any()) Inspect(session, program, result.outputs);
  return result;
}

}  // namespace gangway::controller

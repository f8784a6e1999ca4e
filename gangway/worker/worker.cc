#include "gangway/worker/worker.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "gangway/base/check.h"
#include "gangway/base/status.h"
#include "gangway/worker/digest.h"

namespace gangway::worker {
namespace {

absl::Status CheckBytes(const net::MakeBuffer::Piece& piece, DType dtype) {
  GW_ASSIGN_OR_RETURN(uint64_t bytes, DenseBytes(dtype, piece.dims));
  if (bytes == piece.bytes.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("got ", piece.bytes.size(), " bytes for ", bytes));
}

std::optional<net::ProgramMemory> MemoryOf(const device::Executable* executable) {
  const auto memory = executable == nullptr ? std::nullopt : executable->memory();
  if (!memory.has_value()) return std::nullopt;
  return net::ProgramMemory{memory->code,    memory->arguments,   memory->outputs,
                            memory->aliased, memory->temporaries, memory->peak};
}

}  // namespace

Worker::Worker(WorkerOptions options, std::unique_ptr<net::Channel> channel)
    : options_(std::move(options)),
      num_devices_(static_cast<int>(options_.client->devices().size())),
      channel_(std::move(channel)),
      store_(num_devices_),
      ledger_(options_.loop,
              [this](net::TasksDone report, bool urgent) {
                (void)(urgent ? channel_->Send(std::move(report)) : channel_->SendLater(std::move(report)));
              }),
      heartbeat_(options_.heartbeat),
      self_(std::make_shared<Worker*>(this)) {
  for (int i = 0; i < num_devices_; ++i) {
    queues_.push_back(std::make_shared<DeviceQueue>(options_.loop));
    busy_.push_back(std::make_shared<Busy>());
  }
}

Worker::~Worker() = default;

void Worker::Stop() {
  self_.reset();
  ledger_.Stop();
  channel_->Close(absl::UnavailableError(absl::StrCat("worker ", options_.name, " stops")));
  Closed(absl::CancelledError("stopped"));
}

void Worker::Start() {
  std::weak_ptr<Worker*> weak = self_;
  std::shared_ptr<Executor> loop = options_.loop;
  net::ChannelHandler handler;
  handler.on_messages = [weak, loop](std::vector<net::Message> messages) {
    auto box = std::make_shared<std::vector<net::Message>>(std::move(messages));
    loop->Post([weak, box] {
      auto self = weak.lock();
      if (self == nullptr) return;
      for (net::Message& message : *box) (*self)->Handle(std::move(message));
    });
  };
  handler.on_close = [weak, loop](const absl::Status& reason) {
    loop->Post([weak, reason] {
      if (auto self = weak.lock()) (*self)->Closed(reason);
    });
  };

  net::Hello hello;
  hello.worker = options_.name;
  hello.platform = std::string(options_.client->platform());
  hello.island = options_.island;
  hello.rank = options_.rank;
  if (options_.fabric != nullptr) hello.fabric = options_.fabric->address();
  for (device::Device* device : options_.client->devices()) {
    net::DeviceDescription description;
    description.kind = std::string(device->kind());
    description.coords.assign(device->coords().begin(), device->coords().end());
    description.memory_bytes = options_.device_memory > 0 ? options_.device_memory : device->memory_stats().bytes_limit;
    hello.devices.push_back(std::move(description));
  }
  next_beat_ = options_.clock->Now() + heartbeat_;
  channel_->Start(std::move(handler));
  Send(std::move(hello));
}

void Worker::Tick() {
  if (gone_) return;
  ledger_.Flush();
  absl::erase_if(loans_, [](const auto& entry) { return entry.second.expired(); });
  absl::erase_if(gangs_, [](const auto& entry) { return entry.second.expired(); });
  net::Heartbeat beat = {store_.bytes(), store_.buffers(), ledger_.pending(), store_.device_bytes()};
  if (options_.fabric != nullptr) {
    beat.sent_bytes = options_.fabric->sent_bytes();
    beat.received_bytes = options_.fabric->received_bytes();
  }
  const absl::Time now = options_.clock->Now();
  if (now >= next_beat_ || !(beat == last_beat_)) {
    (void)channel_->SendLater(beat);
    last_beat_ = beat;
    next_beat_ = now + heartbeat_;
  }
  channel_->Flush();
}

void Worker::Closed(const absl::Status& reason) {
  if (gone_) return;
  gone_ = true;
  for (auto& queue : queues_) queue->Clear();
  // What has begun holds the devices until others come: those here that were only queued, or other workers.
  for (const auto& [task, gang] : std::exchange(gangs_, {})) {
    if (auto alive = gang.lock()) alive->Poison(reason);
  }
  if (options_.fabric != nullptr) options_.fabric->DisconnectAll(reason);
  for (auto& [id, answer] : std::exchange(client_calls_, {})) answer(absl::CancelledError(reason.message()));
  store_.Clear();
  programs_.clear();
  closed_.Set(Annotate(reason, absl::StrCat("worker ", options_.name, ": controller is gone")));
}

void Worker::Handle(net::Message message) {
  if (gone_) return;
  std::visit([this](auto&& m) { On(std::move(m)); }, std::move(message));
}

void Worker::On(net::Welcome message) {
  if (options_.fabric != nullptr) options_.fabric->Introduce(message.self);
  // Half of it, so that one that is late is no reason to worry.
  if (message.heartbeat_ms > 0) heartbeat_ = absl::Milliseconds(message.heartbeat_ms) / 2;
}

void Worker::On(net::Peer message) {
  if (options_.fabric != nullptr) options_.fabric->Connect(message.peer, message.name, message.fabric);
}

void Worker::On(net::PeerLost message) {
  if (options_.fabric != nullptr) options_.fabric->Disconnect(message.peer, message.status);
}

template <typename T>
void Worker::On(T message) {
  channel_->Close(absl::InvalidArgumentError(
      absl::StrCat("worker ", options_.name, " got a message for controllers: ", net::MessageName(message))));
}

absl::Status Worker::CheckProgram(const Program& program) const {
  for (const auto& part : program.partitions) {
    if (!IsDevice(part.device)) {
      return absl::InvalidArgumentError(absl::StrCat("worker ", options_.name, " has no device ", part.device));
    }
  }
  if (program.owners.empty()) return absl::OkStatus();
  if (program.owners.size() != program.participants.size()) {
    return absl::InvalidArgumentError(absl::StrCat("program ", program.name, ": ", program.owners.size(), " owners of ",
                                                   program.participants.size(), " partitions"));
  }
  if (options_.fabric == nullptr) {
    return absl::UnimplementedError(absl::StrCat("worker ", options_.name, " has no data plane to other workers"));
  }
  return absl::OkStatus();
}

void Worker::On(net::LoadProgram message) {
  auto program = std::make_shared<Program>();
  program->name = message.name;
  program->num_partitions = message.num_partitions;
  program->partitions = message.partitions;
  program->participants = std::move(message.participants);
  program->owners = std::move(message.owners);
  program->status = absl::UnavailableError(absl::StrCat("program ", message.name, " is still being compiled"));
  if (absl::Status status = CheckProgram(*program); !status.ok()) {
    Send(net::ProgramLoaded{message.program, status, std::nullopt});
    return;
  }
  programs_[message.program] = program;
  auto compile = [client = options_.client, loop = options_.loop, weak = std::weak_ptr<Worker*>(self_), program,
                  id = message.program, bytes = message.executable] {
    device::CompileRequest request;
    request.name = program->name;
    request.hlo = bytes.view();
    request.num_partitions = program->num_partitions;
    auto compiled = client->Compile(request);
    loop->Post([weak, program, id, compiled] {
      auto self = weak.lock();
      if (self == nullptr || (*self)->gone_) return;
      Worker& worker = **self;
      if (compiled.ok()) program->executable = *compiled;
      program->status =
          Annotate(compiled.status(), absl::StrCat("program ", program->name, " on worker ", worker.options_.name));
      worker.Send(net::ProgramLoaded{id, program->status, MemoryOf(program->executable.get())});
    });
  };
  options_.compile->Post(std::move(compile));
}

void Worker::On(net::UnloadProgram message) { programs_.erase(message.program); }

void Worker::On(net::MakeBuffer message) {
  int parts = 0;
  for (const auto& piece : message.pieces) parts += static_cast<int>(piece.devices.size());
  auto task = ledger_.Begin(message.task, parts, /*report=*/false);
  (void)store_.Create(message.buffer);  // or it was expected
  for (const auto& piece : message.pieces) {
    absl::Status valid = CheckBytes(piece, message.dtype);
    device::HostArray array;
    array.type = {message.dtype, piece.dims};
    array.data = piece.bytes.data();
    array.owner = piece.bytes.owner();
    for (int device : piece.devices) {
      if (!IsDevice(device)) {
        task->PartDone(absl::InvalidArgumentError(absl::StrCat("worker ", options_.name, ": no device ", device)));
      } else if (!valid.ok()) {
        PutPart(task, {message.buffer, device}, valid);
      } else {
        PutPart(task, {message.buffer, device}, options_.client->FromHost(*options_.client->devices()[device], array));
      }
    }
  }
}

void Worker::PutPart(const std::shared_ptr<Task>& task, Place target, absl::StatusOr<device::BufferRef> value) {
  if (!value.ok()) {
    (void)store_.Put(target.buffer, target.device, store::Shard(value.status()));
    task->PartDone(value.status());
    return;
  }
  absl::Status put = store_.Put(target.buffer, target.device, store::Shard(*value));
  if (!put.ok()) {
    // Freed meanwhile: nobody misses it.
    task->PartDone(absl::IsNotFound(put) ? absl::OkStatus() : put);
    return;
  }
  (*value)->Ready().OnReady([task](const absl::StatusOr<Unit>& ready) { task->PartDone(ready.status()); });
}

void Worker::On(net::ExpectBuffer message) {
  (void)store_.Create(message.buffer);
  for (int device : message.devices) {
    if (IsDevice(device)) (void)store_.Put(message.buffer, device, store::Shard::Pending());
  }
}

// One launch under way: everything its parts need, whatever is freed meanwhile.
struct Worker::Run {
  std::shared_ptr<const net::Launch::Order> order;
  std::shared_ptr<Program> program;
  std::shared_ptr<collective::Gang> gang;
  std::shared_ptr<Task> task;
  std::shared_ptr<device::HostCallbacks> callbacks;
};

// The calls of one launch to its client, by way of the controller. From any thread to the loop.
class Worker::ClientCalls final : public device::HostCallbacks {
 public:
  ClientCalls(std::shared_ptr<Executor> loop, std::weak_ptr<Worker*> worker, TaskId task)
      : loop_(std::move(loop)), worker_(std::move(worker)), task_(task) {}

  void Call(int device, int callback, std::string operands, Answer answer) override {
    net::Payload bytes(std::make_shared<const std::string>(std::move(operands)));
    net::HostCall call = {net::RequestId(), task_, device, callback, std::move(bytes)};
    loop_->Post([worker = worker_, call = std::move(call), answer = std::move(answer)] {
      auto self = worker.lock();
      if (self == nullptr) return answer(absl::CancelledError("the worker stops"));
      (*self)->CallClient(call, answer);
    });
  }

 private:
  const std::shared_ptr<Executor> loop_;  // shared: programs may call after the worker is gone
  const std::weak_ptr<Worker*> worker_;
  const TaskId task_;
};

void Worker::CallClient(net::HostCall call, device::HostCallbacks::Answer answer) {
  if (gone_) return answer(absl::CancelledError("the controller is gone"));
  call.call = net::RequestId(next_call_++);
  client_calls_.emplace(call.call, std::move(answer));
  Send(std::move(call));
}

void Worker::On(net::HostCallAnswer message) {
  auto it = client_calls_.find(message.call);
  if (it == client_calls_.end()) return;
  device::HostCallbacks::Answer answer = std::move(it->second);
  client_calls_.erase(it);
  if (!message.status.ok()) return answer(message.status);
  answer(message.results.AsString());
}

void Worker::On(net::Launch message) {
  auto run = std::make_shared<Run>();
  run->order = std::move(message.order);
  const net::Launch::Order& launch = *run->order;
  auto it = programs_.find(launch.program);
  absl::Status status;
  if (it == programs_.end()) {
    status = absl::NotFoundError(absl::StrCat("worker ", options_.name, " has no program ", launch.program.value()));
  } else {
    run->program = it->second;
    status = run->program->status;
  }
  const int parts = status.ok() ? static_cast<int>(run->program->partitions.size()) : 1;
  run->task = ledger_.Begin(launch.task, parts, message.report);
  run->callbacks = std::make_shared<ClientCalls>(options_.loop, self_, launch.task);
  if (status.ok()) {
    status = StartRun(run);
    if (!status.ok()) {
      for (int i = 1; i < parts; ++i) run->task->PartDone(status);
    }
  }
  if (!status.ok()) run->task->PartDone(status);
  for (int64_t index : launch.drop) {
    if (index >= 0 && index < static_cast<int64_t>(launch.arguments.size())) store_.Free(launch.arguments[index]);
  }
}

absl::Status Worker::StartRun(const std::shared_ptr<Run>& run) {
  const net::Launch::Order& launch = *run->order;
  Program& program = *run->program;
  const size_t num_outputs = program.executable->outputs().size();
  for (size_t i = 0; i < num_outputs; ++i) {
    GW_RETURN_IF_ERROR_WITH(store_.Create(net::BufferId(launch.first_output.value() + i)).status(), program.name);
  }
  std::vector<const store::LogicalBuffer*> arguments;
  arguments.reserve(launch.arguments.size());
  absl::Status missing;
  for (net::BufferId id : launch.arguments) {
    arguments.push_back(store_.Find(id));
    if (arguments.back() == nullptr) {
      missing = absl::NotFoundError(absl::StrCat("program ", program.name, ": argument ", arguments.size() - 1,
                                                 " (buffer ", id.value(), ") is not on worker ", options_.name));
    }
  }
  if (missing.ok() && !program.participants.empty()) {
    run->gang = options_.gangs->MakeGang(
        {static_cast<int64_t>(launch.task.value()), program.name, program.participants, program.owners},
        program.owners.empty() ? nullptr : options_.fabric);
    gangs_[launch.task] = run->gang;
  }
  std::vector<store::Shard> inputs;
  for (const auto& part : program.partitions) {
    if (!missing.ok()) {
      FailPart(run, part.device, missing);
      continue;
    }
    inputs.clear();
    bool wait = !queues_[part.device]->idle();
    for (const store::LogicalBuffer* argument : arguments) {
      inputs.push_back((*argument)[part.device]);
      wait |= inputs.back().pending();
    }
    if (!wait) {
      RunPart(run, part, inputs);
      continue;
    }
    // The outputs exist from here on, so that later messages can name them.
    for (size_t i = 0; i < num_outputs; ++i) {
      (void)store_.Put(net::BufferId(launch.first_output.value() + i), part.device, store::Shard::Pending());
    }
    queues_[part.device]->Push({inputs, [this, run, part, inputs] { RunPart(run, part, inputs); }});
  }
  return absl::OkStatus();
}

void Worker::RunPart(const std::shared_ptr<Run>& run, const net::LoadProgram::Partition& part,
                     const std::vector<store::Shard>& inputs) {
  std::vector<device::BufferRef> buffers;
  buffers.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].exists()) {
      return FailPart(run, part.device,
                      absl::InvalidArgumentError(absl::StrCat("program ", run->program->name, ": argument ", i,
                                                              " has no shard on device ", part.device, " of worker ",
                                                              options_.name)));
    }
    auto value = inputs[i].Value();
    if (!value.ok()) return FailPart(run, part.device, value.status());
    buffers.push_back(*std::move(value));
  }
  device::ExecuteOptions options;
  options.launch = {static_cast<int64_t>(run->order->task.value()), part.partition, run->program->num_partitions,
                    run->gang, run->callbacks};
  options.keep_inputs = KeepOf(*run->order, buffers);
  device::Execution execution =
      run->program->executable->Execute(*options_.client->devices()[part.device], buffers, options);
  for (size_t i = 0; i < execution.outputs.size(); ++i) {
    (void)store_.Put(net::BufferId(run->order->first_output.value() + i), part.device,
                     store::Shard(std::move(execution.outputs[i])));
  }
  execution.done.OnReady([task = run->task, busy = busy_[part.device], clock = options_.clock,
                          queued = absl::ToUnixNanos(options_.clock->Now())](const absl::StatusOr<Unit>& done) {
    const int64_t now = absl::ToUnixNanos(clock->Now());
    const int64_t began = std::max(queued, busy->until_ns.exchange(now));
    task->PartDone(done.status(), absl::Nanoseconds(std::max<int64_t>(0, now - began)));
  });
}

void Worker::FailPart(const std::shared_ptr<Run>& run, int device, const absl::Status& status) {
  if (run->gang != nullptr) run->gang->Poison(status);  // the others must not wait for this one
  for (size_t i = 0; i < run->program->executable->outputs().size(); ++i) {
    (void)store_.Put(net::BufferId(run->order->first_output.value() + i), device, store::Shard(status));
  }
  run->task->PartDone(status);
}

void Worker::On(net::FetchShard message) {
  const bool digest = message.digest;
  ReadShard({message.buffer, message.device},
            [weak = std::weak_ptr<Worker*>(self_), loop = options_.loop, request = message.request,
             digest](const absl::StatusOr<DenseShard>& shard) {
              net::Fetched fetched{request, shard.status(), {}};
              if (shard.ok() && digest) fetched.digest = DigestOf(shard->bytes.view(), shard->type.dtype);
              if (shard.ok() && !digest) fetched.bytes = shard->bytes;
              loop->Post([weak, fetched] {
                if (auto self = weak.lock()) (*self)->Send(fetched);
              });
            });
}

void Worker::ReadShard(Place place, OnShard done) {
  const store::LogicalBuffer* buffer = store_.Find(place.buffer);
  if (buffer == nullptr || !IsDevice(place.device) || !(*buffer)[place.device].exists()) {
    return done(absl::NotFoundError(absl::StrCat("buffer ", place.buffer.value(), " has no shard on device ",
                                                 place.device, " of worker ", options_.name)));
  }
  ReadShard((*buffer)[place.device], std::move(done));
}

void Worker::ReadShard(const store::Shard& shard, OnShard done) {
  if (shard.pending()) {
    return WhenSettled(shard, [shard, done = std::move(done)](Worker& worker) { worker.ReadShard(shard, done); });
  }
  auto value = shard.Value();
  if (!value.ok()) return done(value.status());
  ReadBytes(*value, [type = (*value)->type(), done = std::move(done)](const absl::StatusOr<net::Payload>& bytes) {
    bytes.ok() ? done(DenseShard{type, *bytes}) : done(bytes.status());
  });
}

void Worker::WhenSettled(const store::Shard& shard, std::function<void(Worker&)> then) {
  shard.OnSettled([weak = std::weak_ptr<Worker*>(self_), loop = options_.loop, shard, then = std::move(then)] {
    std::shared_ptr<const void> loan;
    const auto value = shard.Value();
    if (auto self = weak.lock(); self != nullptr && value.ok()) loan = (*self)->Loan(*value);
    loop->Post([weak, then, loan] {
      if (auto self = weak.lock()) then(**self);
    });
  });
}

void Worker::ReadBytes(const device::BufferRef& buffer, std::function<void(absl::StatusOr<net::Payload>)> done) {
  auto loan = Loan(buffer);
  buffer->View().OnReady([buffer, loan, done](const absl::StatusOr<absl::Span<const std::byte>>& view) {
    if (view.ok()) {
      return done(net::Payload(loan, view->data(), view->size()));
    }
    if (!absl::IsUnimplemented(view.status())) return done(view.status());
    auto bytes = std::make_shared<std::string>(buffer->size_bytes(), '\0');
    buffer->ToHost(bytes->data()).OnReady([buffer, loan, bytes, done](const absl::StatusOr<Unit>& copied) {
      copied.ok() ? done(net::Payload(bytes)) : done(copied.status());
    });
  });
}

std::shared_ptr<const void> Worker::Loan(const device::BufferRef& buffer) {
  std::weak_ptr<const void>& entry = loans_[buffer.get()];
  if (auto loan = entry.lock()) return loan;
  // An owner of its own: it lives as long as somebody reads, not as long as somebody holds the buffer.
  auto loan = std::make_shared<const device::BufferRef>(buffer);
  entry = loan;
  return loan;
}

std::vector<int64_t> Worker::KeepOf(const net::Launch::Order& launch,
                                    const std::vector<device::BufferRef>& inputs) const {
  std::vector<int64_t> keep = launch.keep;
  if (loans_.empty()) return keep;
  for (int64_t index : launch.drop) {
    if (index < 0 || index >= static_cast<int64_t>(inputs.size())) continue;
    auto loan = loans_.find(inputs[index].get());
    if (loan != loans_.end() && !loan->second.expired()) keep.push_back(index);
  }
  std::sort(keep.begin(), keep.end());
  keep.erase(std::unique(keep.begin(), keep.end()), keep.end());
  return keep;
}

void Worker::On(net::FreeBuffers message) {
  for (net::BufferId id : message.buffers) store_.Free(id);
}

void Worker::On(net::PoisonBuffers message) {
  if (message.task.value() != 0) {
    auto gang = gangs_.find(message.task);
    if (gang != gangs_.end()) {
      if (auto alive = gang->second.lock()) alive->Poison(message.status);
      gangs_.erase(gang);
    }
    if (options_.fabric != nullptr) options_.fabric->Abandon(message.task.value(), message.status);
  }
  for (net::BufferId id : message.buffers) (void)store_.Poison(id, message.status);
}

void Worker::On(net::WatchTasks message) { ledger_.Watch(message.tasks); }

}  // namespace gangway::worker

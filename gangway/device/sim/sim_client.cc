#include "gangway/device/sim/sim_client.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gangway/base/executor.h"
#include "gangway/base/status.h"
#include "gangway/collective/gang.h"

namespace gangway::device {
namespace {

// Inputs come from launches and copies of this process, which always end.
constexpr absl::Duration kProducerDeadline = absl::Minutes(10);

absl::Status DeletedError() { return absl::FailedPreconditionError("the buffer was deleted or donated"); }

int64_t DenseBytes(const ArrayType& type) {
  int64_t bytes = ByteWidth(type.dtype);
  for (int64_t dim : type.dims) bytes *= dim;
  return bytes;
}

std::string Describe(const ArrayType& type) {
  return absl::StrCat(DTypeName(type.dtype), "[", absl::StrJoin(type.dims, ","), "]");
}

class SimDevice final : public Device {
 public:
  explicit SimDevice(int id) : id_(id), name_(absl::StrCat("sim:", id)), thread_(MakeThreadExecutor(name_)) {}

  int id() const override { return id_; }
  absl::string_view kind() const override { return "sim"; }
  absl::Span<const int64_t> coords() const override { return {}; }
  MemoryStats memory_stats() const override { return {in_use_.load(), peak_.load(), 0}; }

  const std::string& name() const { return name_; }
  Executor& thread() { return *thread_; }
  void Account(int64_t bytes) {
    const int64_t now = in_use_ += bytes;
    int64_t peak = peak_;
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
  }

 private:
  const int id_;
  const std::string name_;
  std::atomic<int64_t> in_use_ = 0, peak_ = 0;
  std::unique_ptr<Executor> thread_;  // last: its tasks use the members above
};

class SimBuffer final : public Buffer, public std::enable_shared_from_this<SimBuffer> {
 public:
  SimBuffer(SimDevice& device, ArrayType type) : device_(device), type_(std::move(type)), size_(DenseBytes(type_)) {}
  ~SimBuffer() override { Delete(); }

  const ArrayType& type() const override { return type_; }
  Device& device() const override { return device_; }
  int64_t size_bytes() const override { return size_; }
  Future<Unit> Ready() const override { return settled_.future(); }
  Future<Unit> ToHost(void* dst) override;
  Future<absl::Span<const std::byte>> View() override;
  BufferRef CopyTo(Device& target) override;
  void Delete() override;
  bool deleted() const override {
    absl::MutexLock lock(&mutex_);
    return deleted_;
  }

  SimDevice& sim_device() const { return device_; }
  // The value or the error of whatever should have produced it; once.
  void Settle(absl::StatusOr<SimValue> value);
  // A use reads the value although Delete is called meanwhile.
  absl::Status BeginUse();
  void EndUse();
  absl::StatusOr<SimValue> WaitForValue();

 private:
  absl::StatusOr<SimValue> value() const;
  void Release() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  SimDevice& device_;
  const ArrayType type_;
  const int64_t size_;
  Promise<Unit> settled_;
  mutable absl::Mutex mutex_;
  SimValue value_ ABSL_GUARDED_BY(mutex_);
  int uses_ ABSL_GUARDED_BY(mutex_) = 0;
  bool deleted_ ABSL_GUARDED_BY(mutex_) = false;
};

void SimBuffer::Settle(absl::StatusOr<SimValue> value) {
  if (value.ok()) {
    absl::MutexLock lock(&mutex_);
    if (!deleted_ || uses_ > 0) {
      value_ = *std::move(value);
      device_.Account(size_);
    }
  }
  settled_.Set(value.ok() ? absl::StatusOr<Unit>(Unit{}) : value.status());
}

void SimBuffer::Release() {
  if (value_ == nullptr) return;
  value_.reset();
  device_.Account(-size_);
}

absl::Status SimBuffer::BeginUse() {
  absl::MutexLock lock(&mutex_);
  if (deleted_) return DeletedError();
  ++uses_;
  return absl::OkStatus();
}

void SimBuffer::EndUse() {
  absl::MutexLock lock(&mutex_);
  if (--uses_ == 0 && deleted_) Release();
}

void SimBuffer::Delete() {
  absl::MutexLock lock(&mutex_);
  deleted_ = true;
  if (uses_ == 0) Release();
}

absl::StatusOr<SimValue> SimBuffer::value() const {
  absl::MutexLock lock(&mutex_);
  if (value_ == nullptr) return DeletedError();
  return value_;
}

absl::StatusOr<SimValue> SimBuffer::WaitForValue() {
  GW_RETURN_IF_ERROR(
      settled_.future().Await(absl::Now() + kProducerDeadline, absl::StrCat("an input of ", device_.name())).status());
  return value();
}

Future<Unit> SimBuffer::ToHost(void* dst) {
  if (absl::Status status = BeginUse(); !status.ok()) return Future<Unit>(status);
  Promise<Unit> promise;
  Ready().OnReady([self = shared_from_this(), dst, promise](const absl::StatusOr<Unit>& outcome) {
    absl::StatusOr<SimValue> value = outcome.ok() ? self->value() : outcome.status();
    if (value.ok() && self->size_ > 0) std::memcpy(dst, (*value)->data(), (*value)->size());
    self->EndUse();
    promise.Set(value.ok() ? absl::StatusOr<Unit>(Unit{}) : value.status());
  });
  return promise.future();
}

Future<absl::Span<const std::byte>> SimBuffer::View() {
  using Bytes = absl::Span<const std::byte>;
  Promise<Bytes> promise;
  Ready().OnReady([self = shared_from_this(), promise](const absl::StatusOr<Unit>& outcome) {
    absl::StatusOr<SimValue> value = outcome.ok() ? self->value() : outcome.status();
    if (!value.ok()) return promise.Set(value.status());
    promise.Set(absl::MakeConstSpan(reinterpret_cast<const std::byte*>((*value)->data()), (*value)->size()));
  });
  return promise.future();
}

BufferRef SimBuffer::CopyTo(Device& target) {
  auto copy = std::make_shared<SimBuffer>(static_cast<SimDevice&>(target), type_);
  if (absl::Status status = BeginUse(); !status.ok()) {
    copy->Settle(status);
    return copy;
  }
  Ready().OnReady([self = shared_from_this(), copy](const absl::StatusOr<Unit>& outcome) {
    copy->Settle(outcome.ok() ? self->value() : outcome.status());
    self->EndUse();
  });
  return copy;
}

class SimExecutable final : public Executable, public std::enable_shared_from_this<SimExecutable> {
 public:
  SimExecutable(std::string name, std::shared_ptr<const SimProgram> program)
      : name_(std::move(name)), program_(std::move(program)) {}

  absl::string_view name() const override { return name_; }
  absl::Span<const ArrayType> outputs() const override { return program_->outputs(); }
  std::optional<ProgramMemory> memory() const override {
    ProgramMemory memory;
    for (const ArrayType& type : program_->inputs()) memory.arguments += DenseBytes(type);
    for (const ArrayType& type : program_->outputs()) memory.outputs += DenseBytes(type);
    return memory;
  }
  Execution Execute(Device& device, absl::Span<const BufferRef> inputs, const ExecuteOptions& options) override;

 private:
  struct Queued {
    SimDevice* device = nullptr;
    std::vector<std::shared_ptr<SimBuffer>> inputs;
    std::vector<std::shared_ptr<SimBuffer>> outputs;
    ExecuteOptions options;
    absl::Status refused;
    Promise<Unit> done;
  };

  absl::Status CheckInputs(Device& device, absl::Span<const BufferRef> inputs) const;
  absl::StatusOr<std::vector<SimValue>> Launch(Queued& queued) const;
  void RunQueued(Queued& queued) const;

  const std::string name_;
  const std::shared_ptr<const SimProgram> program_;
};

absl::Status SimExecutable::CheckInputs(Device& device, absl::Span<const BufferRef> inputs) const {
  const auto& expected = program_->inputs();
  if (inputs.size() != expected.size()) {
    return absl::InvalidArgumentError(absl::StrCat(inputs.size(), " inputs for ", expected.size(), " parameters"));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (&inputs[i]->device() != &device) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " is on another device"));
    }
    if (inputs[i]->type() != expected[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " is ", Describe(inputs[i]->type()), ", not ", Describe(expected[i])));
    }
  }
  return absl::OkStatus();
}

Execution SimExecutable::Execute(Device& device, absl::Span<const BufferRef> inputs, const ExecuteOptions& options) {
  auto queued = std::make_shared<Queued>();
  queued->device = static_cast<SimDevice*>(&device);
  queued->options = options;
  queued->refused = CheckInputs(device, inputs);
  for (size_t i = 0; i < inputs.size() && queued->refused.ok(); ++i) {
    auto input = std::static_pointer_cast<SimBuffer>(inputs[i]);
    queued->refused = Annotate(input->BeginUse(), absl::StrCat("input ", i));
    if (queued->refused.ok()) queued->inputs.push_back(std::move(input));
  }
  // Donated inputs are gone for whoever comes later, as soon as the launch is queued.
  if (queued->refused.ok()) {
    for (int64_t i : program_->donated()) {
      if (!std::binary_search(options.keep_inputs.begin(), options.keep_inputs.end(), i)) queued->inputs[i]->Delete();
    }
  }
  Execution execution{{}, queued->done.future()};
  for (const ArrayType& type : program_->outputs()) {
    queued->outputs.push_back(std::make_shared<SimBuffer>(*queued->device, type));
    execution.outputs.push_back(queued->outputs.back());
  }
  queued->device->thread().Post([self = shared_from_this(), queued] { self->RunQueued(*queued); });
  return execution;
}

absl::StatusOr<std::vector<SimValue>> SimExecutable::Launch(Queued& queued) const {
  GW_RETURN_IF_ERROR(queued.refused);
  std::vector<SimValue> inputs;
  for (size_t i = 0; i < queued.inputs.size(); ++i) {
    GW_ASSIGN_OR_RETURN_WITH(SimValue value, queued.inputs[i]->WaitForValue(), absl::StrCat("input ", i));
    inputs.push_back(std::move(value));
  }
  return program_->Run(inputs, queued.options.launch);
}

void SimExecutable::RunQueued(Queued& queued) const {
  absl::StatusOr<std::vector<SimValue>> results = Launch(queued);
  absl::Status status = results.status();
  if (!status.ok()) {
    status = Annotate(status, absl::StrCat("program ", name_, ", launch ", queued.options.launch.launch_id, " on ",
                                           queued.device->name()));
    if (collective::Gang* gang = queued.options.launch.gang.get(); gang != nullptr) {
      gang->Poison(status);
      status = gang->status();
    }
  }
  for (const auto& input : queued.inputs) input->EndUse();
  for (size_t i = 0; i < queued.outputs.size(); ++i) {
    queued.outputs[i]->Settle(status.ok() ? absl::StatusOr<SimValue>((*results)[i]) : status);
  }
  queued.inputs.clear();
  queued.outputs.clear();
  queued.options.launch.gang.reset();
  queued.done.Set(status.ok() ? absl::StatusOr<Unit>(Unit{}) : status);
}

// Dense row-major copy of an array with any strides.
SimValue Densify(const HostArray& array) {
  auto bytes = std::make_shared<std::vector<char>>(DenseBytes(array.type));
  const int64_t width = ByteWidth(array.type.dtype);
  if (array.byte_strides.empty() || bytes->empty()) {
    if (!bytes->empty()) std::memcpy(bytes->data(), array.data, bytes->size());
    return bytes;
  }
  const size_t rank = array.type.dims.size();
  std::vector<int64_t> index(rank, 0);
  const char* from = static_cast<const char*>(array.data);
  for (char* to = bytes->data(); to < bytes->data() + bytes->size(); to += width) {
    std::memcpy(to, from, width);
    for (size_t d = rank; d-- > 0;) {
      from += array.byte_strides[d];
      if (++index[d] < array.type.dims[d]) break;
      from -= array.type.dims[d] * array.byte_strides[d];
      index[d] = 0;
    }
  }
  return bytes;
}

class SimClient final : public Client {
 public:
  explicit SimClient(SimOptions options) : options_(std::move(options)) {
    for (int id = 0; id < options_.devices; ++id) {
      owned_.push_back(std::make_unique<SimDevice>(id));
      devices_.push_back(owned_.back().get());
    }
  }

  absl::string_view platform() const override { return "sim"; }
  absl::string_view platform_version() const override { return "1"; }
  absl::Span<Device* const> devices() const override { return devices_; }
  absl::StatusOr<std::shared_ptr<Executable>> Compile(const CompileRequest& request) override {
    GW_ASSIGN_OR_RETURN_WITH(std::shared_ptr<const SimProgram> program, options_.compile(request),
                             absl::StrCat("compiling program ", request.name));
    return std::make_shared<SimExecutable>(request.name, std::move(program));
  }
  absl::StatusOr<BufferRef> FromHost(Device& device, const HostArray& array) override {
    if (!IsElement(array.type.dtype)) {
      return absl::UnimplementedError(absl::StrCat("no arrays of element type ", DTypeName(array.type.dtype)));
    }
    if (!array.byte_strides.empty() && array.byte_strides.size() != array.type.dims.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(array.byte_strides.size(), " strides for an array of rank ", array.type.dims.size()));
    }
    auto buffer = std::make_shared<SimBuffer>(static_cast<SimDevice&>(device), array.type);
    buffer->Settle(Densify(array));
    return buffer;
  }

 private:
  const SimOptions options_;
  std::vector<std::unique_ptr<SimDevice>> owned_;
  std::vector<Device*> devices_;
};

}  // namespace

std::unique_ptr<Client> MakeSimClient(SimOptions options) { return std::make_unique<SimClient>(std::move(options)); }

}  // namespace gangway::device

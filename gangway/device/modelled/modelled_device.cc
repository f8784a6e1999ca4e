#include "gangway/device/modelled/modelled_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gangway/collective/gang.h"

namespace gangway::device {
namespace {

class ModelledDevice final : public Device {
 public:
  explicit ModelledDevice(int id) : id_(id) {}
  int id() const override { return id_; }
  absl::string_view kind() const override { return "modelled"; }
  absl::Span<const int64_t> coords() const override { return {}; }
  MemoryStats memory_stats() const override { return {}; }

  // Ready when the last launch queued so far is over.
  Future<Unit> idle = ReadyFuture();

 private:
  const int id_;
};

class ModelledBuffer final : public Buffer, public std::enable_shared_from_this<ModelledBuffer> {
 public:
  ModelledBuffer(ArrayType type, Device& device) : type_(std::move(type)), device_(device) {
    size_ = ByteWidth(type_.dtype);
    for (int64_t dim : type_.dims) size_ *= dim;
    bytes.resize(size_);
  }
  const ArrayType& type() const override { return type_; }
  Device& device() const override { return device_; }
  int64_t size_bytes() const override { return size_; }
  Future<Unit> Ready() const override { return ready.future(); }
  Future<Unit> ToHost(void* dst) override {
    if (deleted_) return Future<Unit>(DeletedError());
    Promise<Unit> done;
    auto self = shared_from_this();
    Ready().OnReady([self, dst, done](const absl::StatusOr<Unit>& outcome) {
      if (outcome.ok()) std::memcpy(dst, self->bytes.data(), self->bytes.size());
      done.Set(outcome);
    });
    return done.future();
  }
  Future<absl::Span<const std::byte>> View() override {
    if (deleted_) return Future<absl::Span<const std::byte>>(DeletedError());
    Promise<absl::Span<const std::byte>> view;
    auto self = shared_from_this();
    Ready().OnReady([self, view](const absl::StatusOr<Unit>& outcome) {
      if (!outcome.ok()) return view.Set(outcome.status());
      view.Set(absl::MakeConstSpan(reinterpret_cast<const std::byte*>(self->bytes.data()), self->bytes.size()));
    });
    return view.future();
  }
  BufferRef CopyTo(Device& target) override {
    auto copy = std::make_shared<ModelledBuffer>(type_, target);
    if (deleted_) {
      copy->ready.Set(DeletedError());
      return copy;
    }
    auto self = shared_from_this();
    Ready().OnReady([self, copy](const absl::StatusOr<Unit>& outcome) {
      copy->bytes = self->bytes;
      copy->ready.Set(outcome);
    });
    return copy;
  }
  void Delete() override { deleted_ = true; }
  bool deleted() const override { return deleted_; }

  int32_t first() const {
    int32_t value = 0;
    std::memcpy(&value, bytes.data(), std::min<size_t>(sizeof(value), bytes.size()));
    return value;
  }

  Promise<Unit> ready;
  std::string bytes;

 private:
  static absl::Status DeletedError() { return absl::FailedPreconditionError("the buffer was deleted or donated"); }

  const ArrayType type_;
  Device& device_;
  int64_t size_;
  bool deleted_ = false;
};

struct ModelledProgram {
  int outputs = 1;
  int elements = -1;  // of each output; -1: a scalar
  absl::Duration time;
  bool all_reduce = false;
  int donates = -1;  // an argument
  bool fail = false;
};

absl::StatusOr<ModelledProgram> ParseProgram(absl::string_view text) {
  ModelledProgram program;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(word, absl::MaxSplits('=', 1));
    double ms = 0;
    if (pair.first == "elements" && absl::SimpleAtoi(pair.second, &program.elements)) continue;
    if (pair.first == "outputs" && absl::SimpleAtoi(pair.second, &program.outputs)) continue;
    if (pair.first == "donates" && absl::SimpleAtoi(pair.second, &program.donates)) continue;
    if (pair.first == "ms" && absl::SimpleAtod(pair.second, &ms)) {
      program.time = absl::Milliseconds(ms);
    } else if (word == "all_reduce") {
      program.all_reduce = true;
    } else if (word == "fail") {
      program.fail = true;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("modelled program: ", word));
    }
  }
  return program;
}

// Launches hold it: it may be dropped while some are queued.
class ModelledExecutable final : public Executable, public std::enable_shared_from_this<ModelledExecutable> {
 public:
  ModelledExecutable(SimTimeline& timeline, ModelledOptions options, std::string name, ModelledProgram program)
      : timeline_(timeline), options_(std::move(options)), name_(std::move(name)), program_(program) {
    ArrayType type{DType::kS32, {}};
    if (program_.elements >= 0) type.dims = {program_.elements};
    outputs_.assign(program_.outputs, type);
  }
  absl::string_view name() const override { return name_; }
  absl::Span<const ArrayType> outputs() const override { return outputs_; }
  std::optional<ProgramMemory> memory() const override { return std::nullopt; }

  Execution Execute(Device& device, absl::Span<const BufferRef> inputs, const ExecuteOptions& options) override {
    auto& modelled = static_cast<ModelledDevice&>(device);
    auto launch = std::make_shared<Launch>();
    for (const BufferRef& input : inputs) {
      launch->inputs.push_back(std::static_pointer_cast<ModelledBuffer>(input));
      if (input->deleted()) launch->status.Update(absl::FailedPreconditionError("input was deleted"));
    }
    const auto& kept = options.keep_inputs;
    const bool keeps = std::find(kept.begin(), kept.end(), program_.donates) != kept.end();
    if (program_.donates >= 0 && program_.donates < static_cast<int>(inputs.size()) && !keeps) {
      inputs[program_.donates]->Delete();
    }
    launch->gang = options.launch.gang;
    launch->partition = options.launch.partition;
    Execution execution{{}, launch->done.future()};
    for (const ArrayType& type : outputs_) {
      launch->outputs.push_back(std::make_shared<ModelledBuffer>(type, device));
      execution.outputs.push_back(launch->outputs.back());
    }
    if (program_.fail) launch->status.Update(absl::InternalError(absl::StrCat("program ", name_, " fails")));
    if (options_.broken != nullptr && (*options_.broken)[device.id()]) {
      launch->status.Update(absl::InternalError(absl::StrCat(options_.name, " device ", device.id(), " is broken")));
    }
    // Waits for the launch before it on the device and for its inputs.
    launch->missing = 1 + static_cast<int>(inputs.size());
    auto arrived = [this, self = shared_from_this(), launch](const absl::StatusOr<Unit>& outcome) {
      launch->status.Update(outcome.status());
      if (--launch->missing == 0) Start(launch);
    };
    Future<Unit> before = std::exchange(modelled.idle, launch->done_or_failed.future());
    before.OnReady([arrived](const absl::StatusOr<Unit>&) { arrived(Unit{}); });
    for (const auto& input : launch->inputs) input->ready.future().OnReady(arrived);
    return execution;
  }

 private:
  struct Launch {
    std::vector<std::shared_ptr<ModelledBuffer>> inputs, outputs;
    std::shared_ptr<collective::Gang> gang;
    int partition = 0;
    int missing = 0;
    absl::Status status;
    int32_t value = 1;
    Promise<Unit> done;
    Promise<Unit> done_or_failed;
  };

  void Start(const std::shared_ptr<Launch>& launch) {
    if (!launch->status.ok()) return Finish(launch);
    for (const auto& input : launch->inputs) launch->value += input->first();
    timeline_.After(program_.time, [this, self = shared_from_this(), launch] {
      if (!program_.all_reduce || launch->gang == nullptr) return Finish(launch);
      collective::Contribution contribution;
      contribution.operands.push_back({DType::kS32, {}, &launch->value});
      contribution.results.push_back({DType::kS32, {}, &launch->value});
      contribution.done = [this, self = shared_from_this(), launch](const absl::Status& status) {
        launch->status.Update(status);
        Finish(launch);
      };
      launch->gang->Join(launch->partition, Everybody(launch->gang->launch().participants.size()),
                         std::move(contribution));
    });
  }

  std::shared_ptr<const collective::Op> Everybody(size_t participants) {
    std::vector<int64_t> group(participants);
    for (size_t i = 0; i < participants; ++i) group[i] = static_cast<int64_t>(i);
    collective::Op op;
    op.kind = collective::Kind::kAllReduce;
    auto made = collective::MakeGroupOp(op, group, static_cast<int64_t>(participants), static_cast<int>(participants));
    return std::make_shared<const collective::Op>(*std::move(made));
  }

  void Finish(const std::shared_ptr<Launch>& launch) {
    if (!launch->status.ok() && launch->gang != nullptr) launch->gang->Poison(launch->status);
    absl::StatusOr<Unit> outcome = Unit{};
    if (!launch->status.ok()) outcome = launch->status;
    for (const auto& output : launch->outputs) {
      std::memcpy(output->bytes.data(), &launch->value, sizeof(launch->value));
      output->ready.Set(outcome);
    }
    launch->done.Set(outcome);
    launch->done_or_failed.Set(Unit{});
  }

  SimTimeline& timeline_;
  const ModelledOptions options_;
  const std::string name_;
  const ModelledProgram program_;
  std::vector<ArrayType> outputs_;
};

class ModelledClient final : public Client {
 public:
  ModelledClient(SimTimeline& timeline, ModelledOptions options) : timeline_(timeline), options_(std::move(options)) {
    for (int i = 0; i < options_.devices; ++i) {
      owned_.push_back(std::make_unique<ModelledDevice>(i));
      devices_.push_back(owned_.back().get());
    }
  }
  absl::string_view platform() const override { return "modelled"; }
  absl::string_view platform_version() const override { return "1"; }
  absl::Span<Device* const> devices() const override { return devices_; }
  absl::StatusOr<std::shared_ptr<Executable>> Compile(const CompileRequest& request) override {
    auto program = ParseProgram(request.hlo);
    if (!program.ok()) return program.status();
    return std::make_shared<ModelledExecutable>(timeline_, options_, request.name, *program);
  }
  absl::StatusOr<BufferRef> FromHost(Device& device, const HostArray& array) override {
    auto buffer = std::make_shared<ModelledBuffer>(array.type, device);
    std::memcpy(buffer->bytes.data(), array.data, buffer->bytes.size());
    buffer->ready.Set(Unit{});
    return BufferRef(std::move(buffer));
  }

 private:
  SimTimeline& timeline_;
  const ModelledOptions options_;
  std::vector<std::unique_ptr<ModelledDevice>> owned_;
  std::vector<Device*> devices_;
};

}  // namespace

std::unique_ptr<Client> MakeModelledClient(SimTimeline& timeline, ModelledOptions options) {
  return std::make_unique<ModelledClient>(timeline, std::move(options));
}

}  // namespace gangway::device

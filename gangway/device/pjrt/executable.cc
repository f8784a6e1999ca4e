#include "gangway/device/pjrt/executable.h"

#include <time.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/collective/gang.h"
#include "gangway/device/pjrt/event.h"
#include "gangway/device/pjrt/types.h"

namespace gangway::device::pjrt {
namespace {

// All hosted calls have a target that begins so; programs without one need no execute context.
constexpr absl::string_view kHostedPrefix = "gangway.";

// Waits for its client or for a file, or needs the stack that LAPACK may want: never on the lane.
bool CallsHost(absl::string_view hlo) {
  return absl::StrContains(hlo, "gangway.host_callback") || absl::StrContains(hlo, "gangway.file_") ||
         absl::StrContains(hlo, "lapack_");
}

// A switch of threads costs some microseconds: longer launches gain little on the lane, and hold up the other devices'.
constexpr int64_t kSmallNs = 50000;
constexpr int kLaunchesToMeasure = 24;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kLaneWorks = false;  // the sanitizers know nothing of stacks that change under a thread
#else
constexpr bool kLaneWorks = true;
#endif

int64_t ThreadNanoseconds() {
  timespec spent;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return spent.tv_sec * int64_t{1000000000} + spent.tv_nsec;
}

// Until the future is ready, giving the lane to others.
void WaitOn(Fiber& fiber, const Future<Unit>& future) {
  if (future.IsReady()) return;
  future.OnReady([&fiber](const absl::StatusOr<Unit>&) { fiber.Wake(absl::OkStatus()); });
  fiber.Suspend().IgnoreError();
}

}  // namespace

void Size::Note(int64_t nanoseconds) {
  const int64_t mean = mean_ns_.load(std::memory_order_relaxed);
  const int64_t next = mean + (nanoseconds - mean) / 8;
  mean_ns_.store(next, std::memory_order_relaxed);
  if (++measured_ < kLaunchesToMeasure || never_) return;
  // Between the two it stays where it is.
  if (next < kSmallNs) small_ = kLaneWorks;
  if (next > 4 * kSmallNs) small_ = false;
}

void Size::NeverSmall() {
  never_ = true;
  small_ = false;
}

struct PjrtExecutable::Queued {
  PjrtDevice* device = nullptr;
  std::vector<std::shared_ptr<PjrtBuffer>> inputs;  // each in use until the launch is over
  std::vector<std::shared_ptr<PjrtBuffer>> outputs;
  ExecuteOptions options;
  absl::Status refused;  // what was wrong already when it was queued
  Promise<Unit> done;
};

absl::StatusOr<std::shared_ptr<PjrtExecutable>> PjrtExecutable::Compile(std::shared_ptr<const Instance> instance,
                                                                        const CompileRequest& request) {
  const bool hosted_ops = absl::StrContains(request.hlo, kHostedPrefix);
  if (hosted_ops && !instance->hosted_ops) {
    return absl::UnimplementedError(absl::StrCat("program ", request.name, " has hosted collectives, which plugin ",
                                                 instance->plugin->path(), " cannot run"));
  }
  const std::string context = absl::StrCat("program ", request.name);
  GW_ASSIGN_OR_RETURN_WITH(std::unique_ptr<Program> program, Program::Compile(std::move(instance), request), context);
  std::shared_ptr<PjrtExecutable> made(new PjrtExecutable(request.name, std::move(program)));
  made->hosted_ops_ = hosted_ops;
  if (CallsHost(request.hlo)) made->size_.NeverSmall();
  GW_RETURN_IF_ERROR_WITH(made->ReadSignature(), context);
  return made;
}

absl::Status PjrtExecutable::ReadSignature() {
  const Instance& instance = program_->instance();
  const PJRT_Api& api = instance.api();
  GW_PJRT_ARGS(PJRT_LoadedExecutable_GetExecutable_Args, get);
  get.loaded_executable = program_->handle();
  GW_RETURN_IF_ERROR(instance.Call(api.PJRT_LoadedExecutable_GetExecutable, get));
  auto destroy = [&instance](PJRT_Executable* executable) {
    GW_PJRT_ARGS(PJRT_Executable_Destroy_Args, args);
    args.executable = executable;
    instance.Call(instance.api().PJRT_Executable_Destroy, args).IgnoreError();
  };
  std::unique_ptr<PJRT_Executable, decltype(destroy)> executable(get.executable, destroy);
  GW_PJRT_ARGS(PJRT_Executable_OutputElementTypes_Args, types);
  types.executable = executable.get();
  GW_RETURN_IF_ERROR(instance.Call(api.PJRT_Executable_OutputElementTypes, types));
  GW_PJRT_ARGS(PJRT_Executable_OutputDimensions_Args, dims);
  dims.executable = executable.get();
  GW_RETURN_IF_ERROR(instance.Call(api.PJRT_Executable_OutputDimensions, dims));
  const int64_t* at = dims.dims;
  for (size_t i = 0; i < types.num_output_types; ++i) {
    std::optional<DType> dtype = FromPjrt(types.output_types[i]);
    if (!dtype.has_value()) {
      return absl::UnimplementedError(absl::StrCat("output ", i, " has element type ", types.output_types[i],
                                                   " of the C API, which we do not know"));
    }
    outputs_.push_back({*dtype, std::vector<int64_t>(at, at + dims.dim_sizes[i])});
    at += dims.dim_sizes[i];
  }
  ReadMemory(executable.get());
  return absl::OkStatus();
}

void PjrtExecutable::ReadMemory(PJRT_Executable* executable) {
  const Instance& instance = program_->instance();
  if (!GW_PJRT_HAS(instance.api(), PJRT_Executable_GetCompiledMemoryStats)) return;
  GW_PJRT_ARGS(PJRT_Executable_GetCompiledMemoryStats_Args, args);
  args.executable = executable;
  if (!instance.Call(instance.api().PJRT_Executable_GetCompiledMemoryStats, args).ok()) return;
  // What an older plugin does not know of stays 0.
  memory_ = {args.generated_code_size_in_bytes, args.argument_size_in_bytes, args.output_size_in_bytes,
             args.alias_size_in_bytes,          args.temp_size_in_bytes,     args.peak_memory_in_bytes};
}

Execution PjrtExecutable::Execute(Device& device, absl::Span<const BufferRef> inputs, const ExecuteOptions& options) {
  auto queued = std::make_shared<Queued>();
  queued->device = static_cast<PjrtDevice*>(&device);
  queued->options = options;
  for (size_t i = 0; i < inputs.size() && queued->refused.ok(); ++i) {
    auto input = std::static_pointer_cast<PjrtBuffer>(inputs[i]);
    if (&input->device() != &device) {
      queued->refused = absl::InvalidArgumentError(absl::StrCat("input ", i, " is on ",
                                                                static_cast<PjrtDevice&>(input->device()).name(),
                                                                ", not on ", queued->device->name()));
    } else {
      queued->refused = Annotate(input->BeginUse(), absl::StrCat("input ", i));
    }
    if (queued->refused.ok()) queued->inputs.push_back(std::move(input));
  }
  Execution execution{{}, queued->done.future()};
  for (const ArrayType& type : outputs_) {
    queued->outputs.push_back(PjrtBuffer::Pending(*queued->device, type, execution.done));
    execution.outputs.push_back(queued->outputs.back());
  }
  queued->device->launches().Push(
      [self = shared_from_this(), queued](Fiber* fiber) { self->RunQueued(*queued, fiber); }, size_.IsSmall());
  return execution;
}

std::string PjrtExecutable::Describe(const Queued& queued) const {
  return absl::StrCat("program ", name_, ", launch ", queued.options.launch.launch_id, " on ", queued.device->name());
}

void PjrtExecutable::RunQueued(Queued& queued, Fiber* fiber) {
  std::vector<PJRT_Buffer*> results(outputs_.size(), nullptr);
  absl::Status status = queued.refused.ok() ? Launch(queued, fiber, results) : queued.refused;
  if (!status.ok()) {
    status = Annotate(status, Describe(queued));
    if (collective::Gang* gang = queued.options.launch.gang.get(); gang != nullptr) {
      gang->Poison(status);
      status = gang->status();  // the first error of the launch, wherever it happened
    }
  }
  for (const auto& input : queued.inputs) {
    input->NoteDonation();
    input->EndUse();
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] != nullptr) queued.outputs[i]->Fulfil(results[i]);
  }
  // What the launch held goes before anybody hears that it is over.
  queued.inputs.clear();
  queued.outputs.clear();
  queued.options.launch.gang.reset();
  queued.options.launch.callbacks.reset();
  queued.done.Set(status.ok() ? absl::StatusOr<Unit>(Unit{}) : status);
}

absl::Status PjrtExecutable::Launch(Queued& queued, Fiber* fiber, std::vector<PJRT_Buffer*>& results) {
  if (!hosted_ops_) return LaunchWith(queued, nullptr, fiber, results);
  const Plugin& plugin = *program_->instance().plugin;
  HostedLaunch hosted;
  hosted.launch = &queued.options.launch;
  hosted.ops = &ops_;
  hosted.device = queued.device;
  hosted.fiber = fiber;
  hosted.lane = &queued.device->launches().lane();
  hosted.thread = std::this_thread::get_id();
  GW_ASSIGN_OR_RETURN(PJRT_ExecuteContext * context, MakeExecuteContext(plugin, &hosted));
  auto spent = [fiber] { return fiber == nullptr ? ThreadNanoseconds() : fiber->spent_ns(); };
  const int64_t before = spent();
  hosted.HandOver();
  absl::Status status = LaunchWith(queued, context, fiber, results);
  hosted.TakeOver();
  size_.Note(spent() - before);
  if (hosted.elsewhere) size_.NeverSmall();
  DestroyExecuteContext(plugin, context);
  return status;
}

absl::Status PjrtExecutable::LaunchWith(Queued& queued, PJRT_ExecuteContext* context, Fiber* fiber,
                                        std::vector<PJRT_Buffer*>& results) {
  const std::shared_ptr<const Instance>& instance = queued.device->instance();
  std::optional<LoadedCopy::Use> copy;  // until the launch is over
  if (!program_->IsFor(*instance)) {
    GW_ASSIGN_OR_RETURN_WITH(copy, program_->CopyFor(instance).Get(), "loading the program");
  }
  std::vector<PJRT_Buffer*> arguments;
  std::vector<int64_t> kept = queued.options.keep_inputs;
  for (size_t i = 0; i < queued.inputs.size(); ++i) {
    if (fiber != nullptr) WaitOn(*fiber, queued.inputs[i]->available());
    GW_ASSIGN_OR_RETURN_WITH(PJRT_Buffer * argument, queued.inputs[i]->WaitForHandle(), absl::StrCat("input ", i));
    arguments.push_back(argument);
    // A copy that is under way reads it: given away now, it would come when this launch is over, and devices that wait
    // for the copy may be those that this launch waits for.
    if (queued.inputs[i]->UsedByOthers()) kept.push_back(static_cast<int64_t>(i));
  }
  PJRT_ExecuteOptions options = {};
  options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
  options.context = context;
  options.non_donatable_input_indices = kept.data();
  options.num_non_donatable_input_indices = kept.size();
  PJRT_Buffer* const* argument_list = arguments.data();
  PJRT_Buffer** result_list = results.data();
  PJRT_Event* complete = nullptr;
  GW_PJRT_ARGS(PJRT_LoadedExecutable_Execute_Args, args);
  args.executable = copy.has_value() ? copy->handle() : program_->handle();
  args.options = &options;
  args.argument_lists = &argument_list;
  args.num_devices = 1;
  args.num_args = arguments.size();
  args.output_lists = &result_list;
  args.device_complete_events = &complete;
  args.execute_device = queued.device->handle();
  GW_RETURN_IF_ERROR(instance->Call(instance->api().PJRT_LoadedExecutable_Execute, args));
  if (fiber != nullptr && !IsReady(*instance->plugin, complete)) {
    const Future<Unit> over = ToFuture(instance->plugin, complete);
    WaitOn(*fiber, over);
    return over.Await(absl::InfinitePast(), "a launch that is over").status();
  }
  return Await(*instance->plugin, complete);
}

}  // namespace gangway::device::pjrt

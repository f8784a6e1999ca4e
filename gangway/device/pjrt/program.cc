#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/device/pjrt/compile_options.h"
#include "gangway/device/pjrt/executable.h"

namespace gangway::device::pjrt {
namespace {

void Destroy(const Instance& instance, PJRT_LoadedExecutable* handle) {
  if (handle == nullptr) return;
  GW_PJRT_ARGS(PJRT_LoadedExecutable_Destroy_Args, args);
  args.executable = handle;
  instance.Call(instance.api().PJRT_LoadedExecutable_Destroy, args).IgnoreError();
}

std::string OptionsFor(const Instance& instance, absl::string_view hlo) {
  return CompileOptionsFor(instance.platform, instance.deterministic, hlo);
}

absl::StatusOr<PJRT_LoadedExecutable*> CompileHandle(const Instance& instance, const CompileRequest& request) {
  const std::string options = OptionsFor(instance, request.hlo);
  std::string code(request.hlo);
  PJRT_Program program = {};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  program.code = code.data();
  program.code_size = code.size();
  program.format = "hlo";
  program.format_size = 3;
  GW_PJRT_ARGS(PJRT_Client_Compile_Args, args);
  args.client = instance.client;
  args.program = &program;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  // A plugin that is C++ may throw at what a program made it do, which no other program is to suffer from.
  try {
    GW_RETURN_IF_ERROR(instance.Call(instance.api().PJRT_Client_Compile, args));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the plugin's compiler failed: ", error.what()));
  }
  return args.executable;
}

absl::StatusOr<PJRT_LoadedExecutable*> LoadHandle(const Instance& instance, absl::string_view serialized) {
  if (!GW_PJRT_HAS(instance.api(), PJRT_Executable_DeserializeAndLoad)) {
    return absl::UnimplementedError("the plugin cannot load serialized programs");
  }
  GW_PJRT_ARGS(PJRT_Executable_DeserializeAndLoad_Args, args);
  args.client = instance.client;
  args.serialized_executable = serialized.data();
  args.serialized_executable_size = serialized.size();
  GW_RETURN_IF_ERROR(instance.Call(instance.api().PJRT_Executable_DeserializeAndLoad, args));
  return args.loaded_executable;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Program>> Program::Compile(std::shared_ptr<const Instance> instance,
                                                          const CompileRequest& request) {
  if (instance->code.has_value()) {
    if (auto program = FromCache(instance, request); program != nullptr) return program;
  }
  GW_ASSIGN_OR_RETURN(PJRT_LoadedExecutable * handle, CompileHandle(*instance, request));
  std::unique_ptr<Program> program(new Program(instance, handle, request));
  if (instance->code.has_value()) {
    absl::MutexLock lock(&program->mutex_);
    if (program->Serialize().ok())
      instance->code->Keep(request.hlo, OptionsFor(*instance, request.hlo), program->serialized_);
  }
  return program;
}

std::unique_ptr<Program> Program::FromCache(const std::shared_ptr<const Instance>& instance,
                                            const CompileRequest& request) {
  std::optional<std::string> code = instance->code->Find(request.hlo, OptionsFor(*instance, request.hlo));
  if (!code.has_value()) return nullptr;
  absl::StatusOr<PJRT_LoadedExecutable*> handle = LoadHandle(*instance, *code);
  if (!handle.ok()) return nullptr;
  std::unique_ptr<Program> program(new Program(instance, *handle, request));
  absl::MutexLock lock(&program->mutex_);
  program->serialized_ = *std::move(code);
  return program;
}

Program::~Program() { Destroy(*first_, compiled_); }

absl::Status Program::Serialize() {
  if (!serialized_.empty()) return absl::OkStatus();
  const PJRT_Api& api = first_->api();
  if (!GW_PJRT_HAS(api, PJRT_Executable_Serialize)) {
    return absl::UnimplementedError("the plugin cannot serialize programs");
  }
  GW_PJRT_ARGS(PJRT_LoadedExecutable_GetExecutable_Args, get);
  get.loaded_executable = compiled_;
  GW_RETURN_IF_ERROR(first_->Call(api.PJRT_LoadedExecutable_GetExecutable, get));
  GW_PJRT_ARGS(PJRT_Executable_Serialize_Args, args);
  args.executable = get.executable;
  absl::Status status = first_->Call(api.PJRT_Executable_Serialize, args);
  if (status.ok()) {
    serialized_.assign(args.serialized_bytes, args.serialized_bytes_size);
    args.serialized_executable_deleter(args.serialized_executable);
  }
  GW_PJRT_ARGS(PJRT_Executable_Destroy_Args, destroy);
  destroy.executable = get.executable;
  first_->Call(api.PJRT_Executable_Destroy, destroy).IgnoreError();
  return status;
}

absl::StatusOr<PJRT_LoadedExecutable*> Program::LoadInto(const Instance& instance) {
  std::string serialized, hlo;
  {
    absl::MutexLock lock(&mutex_);
    if (!unreadable_ && Serialize().ok()) serialized = serialized_;
    hlo = hlo_;
  }
  if (!serialized.empty()) {
    absl::StatusOr<PJRT_LoadedExecutable*> loaded = LoadHandle(instance, serialized);
    absl::MutexLock lock(&mutex_);
    if (loaded.ok()) hlo_.clear();
    if (loaded.ok() || hlo.empty()) return loaded;
    unreadable_ = true;
    serialized_.clear();
  }
  return CompileHandle(instance, CompileRequest{name_, hlo});
}

LoadedCopy& Program::CopyFor(const std::shared_ptr<const Instance>& instance) {
  absl::MutexLock lock(&mutex_);
  std::unique_ptr<LoadedCopy>& copy = copies_[instance.get()];
  if (copy == nullptr) {
    copy = std::make_unique<LoadedCopy>([this, instance] { return LoadInto(*instance); },
                                        [instance](PJRT_LoadedExecutable* handle) { Destroy(*instance, handle); });
  }
  return *copy;
}

}  // namespace gangway::device::pjrt

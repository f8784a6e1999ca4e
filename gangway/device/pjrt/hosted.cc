#include "gangway/device/pjrt/hosted.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/collective/gang.h"
#include "gangway/device/pjrt/ffi_extension.h"
#include "xla/ffi/api/c_api.h"

namespace gangway::device::pjrt {
namespace {

using collective::Kind;

// Chosen by us, so that handlers, which are plain functions, need no state to find their launch. "gangway".
constexpr int64_t kLaunchTypeId = 0x67616e67776179;
constexpr absl::string_view kLaunchTypeName = "gangway.launch";
// XLA's name for the platform of CPU programs.
constexpr absl::string_view kPlatform = "Host";
// The oldest version of the call frame that has what the handlers read.
constexpr int kFfiMajor = 0, kFfiMinor = 1;

XLA_FFI_Error* MakeError(const XLA_FFI_Api& api, const absl::Status& status) {
  const std::string message(status.message());
  XLA_FFI_Error_Create_Args args = {};
  args.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  args.message = message.c_str();
  args.errc = static_cast<XLA_FFI_Error_Code>(status.code());  // the numbers are those of absl
  return api.XLA_FFI_Error_Create(&args);
}

void DestroyError(const XLA_FFI_Api& api, XLA_FFI_Error* error) {
  if (error == nullptr) return;
  XLA_FFI_Error_Destroy_Args args = {};
  args.struct_size = XLA_FFI_Error_Destroy_Args_STRUCT_SIZE;
  args.error = error;
  api.XLA_FFI_Error_Destroy(&args);
}

// True when the call only asks what the handler is; answers it.
bool AnswerMetadata(XLA_FFI_CallFrame* frame) {
  for (XLA_FFI_Extension_Base* e = frame->extension_start; e != nullptr; e = e->next) {
    if (e->type != XLA_FFI_Extension_Metadata) continue;
    XLA_FFI_Metadata* metadata = reinterpret_cast<XLA_FFI_Metadata_Extension*>(e)->metadata;
    metadata->api_version.major_version = kFfiMajor;
    metadata->api_version.minor_version = kFfiMinor;
    metadata->traits = 0;
    return true;
  }
  return false;
}

absl::StatusOr<HostedLaunch*> FindLaunch(const XLA_FFI_CallFrame& frame) {
  XLA_FFI_TypeId type = {kLaunchTypeId};
  XLA_FFI_ExecutionContext_Get_Args args = {};
  args.struct_size = XLA_FFI_ExecutionContext_Get_Args_STRUCT_SIZE;
  args.ctx = frame.ctx;
  args.type_id = &type;
  if (XLA_FFI_Error* error = frame.api->XLA_FFI_ExecutionContext_Get(&args); error != nullptr || args.data == nullptr) {
    DestroyError(*frame.api, error);
    return absl::FailedPreconditionError("a hosted operation was launched without a launch context");
  }
  return static_cast<HostedLaunch*>(args.data);
}

// Attributes by name; the plugin sorts them, there are few.
class Attributes {
 public:
  explicit Attributes(const XLA_FFI_Attrs& attrs) : attrs_(attrs) {}

  absl::StatusOr<int64_t> Int(absl::string_view name) const {
    const auto* scalar = static_cast<const XLA_FFI_Scalar*>(Find(name, XLA_FFI_AttrType_SCALAR));
    if (scalar == nullptr || scalar->dtype != XLA_FFI_DataType_S64) return Missing(name, "an i64");
    int64_t value;
    std::memcpy(&value, scalar->value, sizeof value);
    return value;
  }
  absl::StatusOr<absl::string_view> String(absl::string_view name) const {
    const auto* span = static_cast<const XLA_FFI_ByteSpan*>(Find(name, XLA_FFI_AttrType_STRING));
    if (span == nullptr) return Missing(name, "a string");
    return absl::string_view(span->ptr, span->len);
  }
  absl::StatusOr<absl::Span<const int64_t>> Ints(absl::string_view name) const {
    const auto* array = static_cast<const XLA_FFI_Array*>(Find(name, XLA_FFI_AttrType_ARRAY));
    if (array == nullptr || array->dtype != XLA_FFI_DataType_S64) return Missing(name, "an array<i64>");
    return absl::MakeConstSpan(static_cast<const int64_t*>(array->data), array->size);
  }

 private:
  const void* Find(absl::string_view name, XLA_FFI_AttrType type) const {
    for (int64_t i = 0; i < attrs_.size; ++i) {
      if (absl::string_view(attrs_.names[i]->ptr, attrs_.names[i]->len) == name) {
        return attrs_.types[i] == type ? attrs_.attrs[i] : nullptr;
      }
    }
    return nullptr;
  }
  static absl::Status Missing(absl::string_view name, absl::string_view type) {
    return absl::InvalidArgumentError(absl::StrCat("attribute ", name, " is missing or not ", type));
  }

  const XLA_FFI_Attrs& attrs_;
};

absl::StatusOr<collective::Op> ParseOp(Kind kind, int64_t key, const Attributes& attributes, int participants) {
  collective::Op op;
  op.key = key;
  op.kind = kind;
  if (kind == Kind::kAllReduce || kind == Kind::kReduceScatter) {
    GW_ASSIGN_OR_RETURN(absl::string_view name, attributes.String("kind"));
    GW_ASSIGN_OR_RETURN(op.reduction, collective::ParseReduction(name));
  }
  if (kind == Kind::kAllGather || kind == Kind::kReduceScatter || kind == Kind::kAllToAll) {
    GW_ASSIGN_OR_RETURN(op.dimension, attributes.Int("dimension"));
  }
  if (kind == Kind::kAllToAll) {
    GW_ASSIGN_OR_RETURN(op.concat_dimension, attributes.Int("concat_dimension"));
  }
  if (kind == Kind::kPermute) {
    GW_ASSIGN_OR_RETURN(absl::Span<const int64_t> pairs, attributes.Ints("pairs"));
    return collective::MakePermuteOp(std::move(op), pairs, participants);
  }
  GW_ASSIGN_OR_RETURN(absl::Span<const int64_t> groups, attributes.Ints("groups"));
  GW_ASSIGN_OR_RETURN(int64_t group_size, attributes.Int("group_size"));
  return collective::MakeGroupOp(std::move(op), groups, group_size, participants);
}

absl::StatusOr<std::shared_ptr<const collective::Op>> FindOp(Kind kind, const XLA_FFI_CallFrame& frame,
                                                             const HostedLaunch& launch) {
  const Attributes attributes(frame.attrs);
  const int participants = launch.launch->num_partitions;
  GW_ASSIGN_OR_RETURN(int64_t key, attributes.Int("key"));
  std::shared_ptr<const collective::Op> op = launch.ops->Find(key, participants);
  if (op != nullptr && op->kind == kind) return op;
  if (op != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("key ", key, " is that of a ", collective::KindName(kind),
                                                   " and of a ", collective::KindName(op->kind)));
  }
  GW_ASSIGN_OR_RETURN_WITH(collective::Op parsed, ParseOp(kind, key, attributes, participants),
                           absl::StrCat("hosted ", collective::KindName(kind), " (key ", key, ")"));
  op = std::make_shared<const collective::Op>(std::move(parsed));
  launch.ops->Add(op);
  return op;
}

collective::Array ToArray(const void* buffer) {
  const auto& b = *static_cast<const XLA_FFI_Buffer*>(buffer);
  return {static_cast<DType>(b.dtype), {b.dims, b.dims + b.rank}, b.data};
}

// Completes the future a handler gave to the plugin.
void Complete(const XLA_FFI_Api& api, XLA_FFI_Future* future, const absl::Status& status) {
  XLA_FFI_Error* failed;
  if (status.ok()) {
    XLA_FFI_Future_SetAvailable_Args args = {};
    args.struct_size = XLA_FFI_Future_SetAvailable_Args_STRUCT_SIZE;
    args.future = future;
    failed = api.XLA_FFI_Future_SetAvailable(&args);
  } else {
    XLA_FFI_Future_SetError_Args args = {};
    args.struct_size = XLA_FFI_Future_SetError_Args_STRUCT_SIZE;
    args.future = future;
    args.error = MakeError(api, status);
    failed = api.XLA_FFI_Future_SetError(&args);
  }
  DestroyError(api, failed);
}

absl::Status StartCollective(Kind kind, XLA_FFI_CallFrame* frame) {
  if (frame->api->struct_size < offsetof(XLA_FFI_Api, XLA_FFI_RunId_Get)) {
    return absl::UnimplementedError("the plugin's FFI is too old: it has no futures");
  }
  GW_ASSIGN_OR_RETURN(HostedLaunch * hosted, FindLaunch(*frame));
  const LaunchContext& launch = *hosted->launch;
  if (launch.gang == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("hosted ", collective::KindName(kind), ": the launch has no gang"));
  }
  GW_ASSIGN_OR_RETURN(std::shared_ptr<const collective::Op> op, FindOp(kind, *frame, *hosted));
  collective::Contribution contribution;
  for (int64_t i = 0; i < frame->args.size; ++i) contribution.operands.push_back(ToArray(frame->args.args[i]));
  for (int64_t i = 0; i < frame->rets.size; ++i) contribution.results.push_back(ToArray(frame->rets.rets[i]));
  if (hosted->fiber != nullptr && hosted->fiber->IsHere()) {
    contribution.done = [fiber = hosted->fiber](const absl::Status& status) { fiber->Wake(status); };
    launch.gang->Join(launch.partition, std::move(op), std::move(contribution));
    return hosted->fiber->Suspend();
  }
  if (hosted->fiber != nullptr || hosted->thread != std::this_thread::get_id()) {
    // The thread that launched it may be waiting in the plugin for this.
    if (!hosted->elsewhere.exchange(true) && hosted->fiber != nullptr) hosted->lane->Rescue();
  }
  XLA_FFI_Future_Create_Args future = {};
  future.struct_size = sizeof future;
  if (XLA_FFI_Error* error = frame->api->XLA_FFI_Future_Create(&future); error != nullptr) {
    DestroyError(*frame->api, error);
    return absl::InternalError("the plugin gave no future");
  }
  // The frame's structs are gone once this returns; the memory they point to stays until the future is complete.
  contribution.done = [api = frame->api, future = future.future](const absl::Status& status) {
    Complete(*api, future, status);
  };
  frame->future = future.future;
  launch.gang->Join(launch.partition, std::move(op), std::move(contribution));
  return absl::OkStatus();
}

template <Kind kind>
XLA_FFI_Error* Collective(XLA_FFI_CallFrame* frame) {
  if (AnswerMetadata(frame)) return nullptr;
  const absl::Status status = StartCollective(kind, frame);
  return status.ok() ? nullptr : MakeError(*frame->api, status);
}

absl::Status AnswerPartitionId(XLA_FFI_CallFrame* frame) {
  GW_ASSIGN_OR_RETURN(const HostedLaunch* hosted, FindLaunch(*frame));
  if (frame->rets.size != 1) return absl::InvalidArgumentError("gangway.partition_id has one result");
  const auto& result = *static_cast<const XLA_FFI_Buffer*>(frame->rets.rets[0]);
  if (result.dtype != XLA_FFI_DataType_U32 || result.rank != 0) {
    return absl::InvalidArgumentError("the result of gangway.partition_id is u32[]");
  }
  const uint32_t partition = static_cast<uint32_t>(hosted->launch->partition);
  std::memcpy(result.data, &partition, sizeof partition);
  return absl::OkStatus();
}

XLA_FFI_Error* PartitionId(XLA_FFI_CallFrame* frame) {
  if (AnswerMetadata(frame)) return nullptr;
  const absl::Status status = AnswerPartitionId(frame);
  return status.ok() ? nullptr : MakeError(*frame->api, status);
}

struct Target {
  absl::string_view name;
  XLA_FFI_Handler* handler;
};

constexpr Target kTargets[] = {
    {"gangway.partition_id", &PartitionId},
    {"gangway.all_reduce", &Collective<Kind::kAllReduce>},
    {"gangway.all_gather", &Collective<Kind::kAllGather>},
    {"gangway.reduce_scatter", &Collective<Kind::kReduceScatter>},
    {"gangway.all_to_all", &Collective<Kind::kAllToAll>},
    {"gangway.collective_permute", &Collective<Kind::kPermute>},
    {"gangway.collective_broadcast", &Collective<Kind::kBroadcast>},
};

const FfiExtension* FindExtension(const Plugin& plugin) {
  const PJRT_Extension_Base* base = plugin.extension(PJRT_Extension_Type_FFI);
  if (base == nullptr || base->struct_size < sizeof(FfiExtension)) return nullptr;
  return reinterpret_cast<const FfiExtension*>(base);
}

absl::Status RegisterTarget(const Plugin& plugin, const FfiExtension& ffi, const Target& target) {
  FfiRegisterHandlerArgs args = {};
  args.struct_size = sizeof args;
  args.target_name = target.name.data();
  args.target_name_size = target.name.size();
  args.handler = reinterpret_cast<void*>(target.handler);
  args.platform_name = kPlatform.data();
  args.platform_name_size = kPlatform.size();
  absl::Status status = plugin.ToStatus(ffi.register_handler(&args));
  if (status.ok()) return status;
  // A plugin of the version before refuses the size and expects one more field.
  FfiRegisterHandlerArgsV2 args2 = {};
  args2.struct_size = sizeof args2;
  args2.target_name = args.target_name;
  args2.target_name_size = args.target_name_size;
  args2.api_version = 1;
  args2.handler = args.handler;
  args2.platform_name = args.platform_name;
  args2.platform_name_size = args.platform_name_size;
  if (plugin.ToStatus(ffi.register_handler(&args2)).ok()) return absl::OkStatus();
  return Annotate(status, absl::StrCat("registering ", target.name));
}

absl::Status RegisterLaunchType(const Plugin& plugin, const FfiExtension& ffi) {
  // Deleter, and room for what later versions add; all null: we own what we pass.
  void* type_info[8] = {};
  FfiTypeRegisterArgs args = {};
  args.struct_size = sizeof args;
  args.type_name = kLaunchTypeName.data();
  args.type_name_size = kLaunchTypeName.size();
  args.type_id = kLaunchTypeId;
  args.type_info = type_info;
  return plugin.ToStatus(ffi.type_register(&args));
}

}  // namespace

std::shared_ptr<const collective::Op> OpCache::Find(int64_t key, int participants) const {
  absl::ReaderMutexLock lock(&mutex_);
  auto it = ops_.find(key);
  // A program may be launched over another number of devices than before.
  if (it == ops_.end() || static_cast<int>(it->second->group_of.size()) != participants) return nullptr;
  return it->second;
}

void OpCache::Add(std::shared_ptr<const collective::Op> op) {
  absl::MutexLock lock(&mutex_);
  const int64_t key = op->key;
  ops_[key] = std::move(op);
}

absl::Status RegisterHostedOps(const Plugin& plugin) {
  const FfiExtension* ffi = FindExtension(plugin);
  if (ffi == nullptr || !GW_PJRT_HAS(plugin.api(), PJRT_ExecuteContext_Create) ||
      !GW_PJRT_HAS(plugin.api(), PJRT_ExecuteContext_Destroy)) {
    return absl::UnimplementedError(
        absl::StrCat("PJRT plugin ", plugin.path(), " has no FFI extension: it cannot run hosted collectives"));
  }
  GW_RETURN_IF_ERROR(RegisterLaunchType(plugin, *ffi));
  for (const Target& target : kTargets) GW_RETURN_IF_ERROR(RegisterTarget(plugin, *ffi, target));
  return absl::OkStatus();
}

absl::StatusOr<PJRT_ExecuteContext*> MakeExecuteContext(const Plugin& plugin, HostedLaunch* launch) {
  GW_PJRT_ARGS(PJRT_ExecuteContext_Create_Args, create);
  GW_RETURN_IF_ERROR(plugin.Call(plugin.api().PJRT_ExecuteContext_Create, create));
  FfiUserDataAddArgs add = {};
  add.struct_size = sizeof add;
  add.context = create.context;
  add.user_data = {kLaunchTypeId, launch, nullptr};
  if (absl::Status status = plugin.ToStatus(FindExtension(plugin)->user_data_add(&add)); !status.ok()) {
    DestroyExecuteContext(plugin, create.context);
    return status;
  }
  return create.context;
}

void DestroyExecuteContext(const Plugin& plugin, PJRT_ExecuteContext* context) {
  GW_PJRT_ARGS(PJRT_ExecuteContext_Destroy_Args, args);
  args.context = context;
  plugin.Call(plugin.api().PJRT_ExecuteContext_Destroy, args).IgnoreError();
}

}  // namespace gangway::device::pjrt

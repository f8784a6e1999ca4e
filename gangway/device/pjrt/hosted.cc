#include "gangway/device/pjrt/hosted.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/collective/gang.h"
#include "gangway/device/pjrt/ffi_attributes.h"
#include "gangway/device/pjrt/ffi_handler.h"
#include "gangway/device/pjrt/file_calls.h"
#include "gangway/device/pjrt/host_callback.h"
#include "gangway/device/pjrt/lapack_calls.h"
#include "xla/ffi/api/c_api.h"

namespace gangway::device::pjrt {
namespace {

using collective::Kind;

// Chosen by us, so that handlers, which are plain functions, need no state to find their launch. "gangway".
constexpr int64_t kLaunchTypeId = 0x67616e67776179;
constexpr absl::string_view kLaunchTypeName = "gangway.launch";

absl::StatusOr<collective::Op> ParseOp(Kind kind, int64_t key, const FfiAttributes& attributes, int participants) {
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
  const FfiAttributes attributes(frame.attrs);
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

absl::Status StartCollective(Kind kind, XLA_FFI_CallFrame* frame) {
  GW_ASSIGN_OR_RETURN(const HostedCall hosted, FindLaunch(*frame));
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
    return hosted->fiber->Suspend(launch.gang);
  }
  if (hosted->fiber != nullptr || hosted->thread != std::this_thread::get_id()) {
    // The thread that launched it may be waiting in the plugin for this.
    if (!hosted->elsewhere.exchange(true) && hosted->fiber != nullptr) hosted->lane->Rescue();
  }
  GW_ASSIGN_OR_RETURN(XLA_FFI_Future * future, MakeFuture(frame));
  // The frame's structs are gone once this returns; the memory they point to stays until the future is complete.
  contribution.done = [api = frame->api, future](const absl::Status& status) { CompleteFuture(*api, future, status); };
  launch.gang->Join(launch.partition, std::move(op), std::move(contribution));
  return absl::OkStatus();
}

template <Kind kind>
XLA_FFI_Error* Collective(XLA_FFI_CallFrame* frame) {
  if (AnswerMetadata(frame)) return nullptr;
  return ToError(*frame->api, StartCollective(kind, frame));
}

absl::Status AnswerPartitionId(XLA_FFI_CallFrame* frame) {
  GW_ASSIGN_OR_RETURN(const HostedCall hosted, FindLaunch(*frame));
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
  return ToError(*frame->api, AnswerPartitionId(frame));
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

absl::StatusOr<HostedCall> FindLaunch(const XLA_FFI_CallFrame& frame) {
  XLA_FFI_TypeId type = {kLaunchTypeId};
  XLA_FFI_ExecutionContext_Get_Args args = {};
  args.struct_size = XLA_FFI_ExecutionContext_Get_Args_STRUCT_SIZE;
  args.ctx = frame.ctx;
  args.type_id = &type;
  if (XLA_FFI_Error* error = frame.api->XLA_FFI_ExecutionContext_Get(&args); error != nullptr || args.data == nullptr) {
    DestroyError(*frame.api, error);
    return absl::FailedPreconditionError("a hosted operation was launched without a launch context");
  }
  return HostedCall(*static_cast<HostedLaunch*>(args.data));
}

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
  const FfiExtension* ffi = FindFfiExtension(plugin);
  if (ffi == nullptr || !GW_PJRT_HAS(plugin.api(), PJRT_ExecuteContext_Create) ||
      !GW_PJRT_HAS(plugin.api(), PJRT_ExecuteContext_Destroy)) {
    return absl::UnimplementedError(
        absl::StrCat("PJRT plugin ", plugin.path(), " has no FFI extension: it cannot run hosted collectives"));
  }
  GW_RETURN_IF_ERROR(RegisterLaunchType(plugin, *ffi));
  for (const Target& target : kTargets) GW_RETURN_IF_ERROR(RegisterHandler(plugin, *ffi, target.name, target.handler));
  GW_RETURN_IF_ERROR(RegisterHostCallback(plugin, *ffi));
  GW_RETURN_IF_ERROR(RegisterFileCalls(plugin, *ffi));
  return RegisterLapackCalls(plugin, *ffi);
}

absl::StatusOr<PJRT_ExecuteContext*> MakeExecuteContext(const Plugin& plugin, HostedLaunch* launch) {
  GW_PJRT_ARGS(PJRT_ExecuteContext_Create_Args, create);
  GW_RETURN_IF_ERROR(plugin.Call(plugin.api().PJRT_ExecuteContext_Create, create));
  FfiUserDataAddArgs add = {};
  add.struct_size = sizeof add;
  add.context = create.context;
  add.user_data = {kLaunchTypeId, launch, nullptr};
  if (absl::Status status = plugin.ToStatus(FindFfiExtension(plugin)->user_data_add(&add)); !status.ok()) {
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

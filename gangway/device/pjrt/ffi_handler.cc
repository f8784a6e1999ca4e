#include "gangway/device/pjrt/ffi_handler.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"

namespace gangway::device::pjrt {
namespace {

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

}  // namespace

const FfiExtension* FindFfiExtension(const Plugin& plugin) {
  const PJRT_Extension_Base* base = plugin.extension(PJRT_Extension_Type_FFI);
  if (base == nullptr || base->struct_size < sizeof(FfiExtension)) return nullptr;
  return reinterpret_cast<const FfiExtension*>(base);
}

absl::Status RegisterHandler(const Plugin& plugin, const FfiExtension& ffi, absl::string_view target,
                             XLA_FFI_Handler* handler) {
  FfiRegisterHandlerArgs args = {};
  args.struct_size = sizeof args;
  args.target_name = target.data();
  args.target_name_size = target.size();
  args.handler = reinterpret_cast<void*>(handler);
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
  return Annotate(status, absl::StrCat("registering ", target));
}

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

XLA_FFI_Error* ToError(const XLA_FFI_Api& api, const absl::Status& status) {
  return status.ok() ? nullptr : MakeError(api, status);
}

void DestroyError(const XLA_FFI_Api& api, XLA_FFI_Error* error) {
  if (error == nullptr) return;
  XLA_FFI_Error_Destroy_Args args = {};
  args.struct_size = XLA_FFI_Error_Destroy_Args_STRUCT_SIZE;
  args.error = error;
  api.XLA_FFI_Error_Destroy(&args);
}

absl::StatusOr<XLA_FFI_Future*> MakeFuture(XLA_FFI_CallFrame* frame) {
  if (frame->api->struct_size < offsetof(XLA_FFI_Api, XLA_FFI_RunId_Get)) {
    return absl::UnimplementedError("the plugin's FFI is too old: it has no futures");
  }
  XLA_FFI_Future_Create_Args args = {};
  args.struct_size = sizeof args;
  if (XLA_FFI_Error* error = frame->api->XLA_FFI_Future_Create(&args); error != nullptr) {
    DestroyError(*frame->api, error);
    return absl::InternalError("the plugin gave no future");
  }
  frame->future = args.future;
  return args.future;
}

void CompleteFuture(const XLA_FFI_Api& api, XLA_FFI_Future* future, const absl::Status& status) {
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

}  // namespace gangway::device::pjrt

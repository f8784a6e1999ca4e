// What handlers of the XLA FFI, plain functions on the C call frame, have in common.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/device/pjrt/ffi_extension.h"
#include "gangway/device/pjrt/plugin.h"
#include "xla/ffi/api/c_api.h"

namespace gangway::device::pjrt {

// Null when the plugin has no FFI extension.
const FfiExtension* FindFfiExtension(const Plugin& plugin);

// Programs for CPU find `handler` under `target` from now on.
absl::Status RegisterHandler(const Plugin& plugin, const FfiExtension& ffi, absl::string_view target,
                             XLA_FFI_Handler* handler);

// True when the call only asks what the handler is; answers it.
bool AnswerMetadata(XLA_FFI_CallFrame* frame);

// What a handler returns: null for OK.
XLA_FFI_Error* ToError(const XLA_FFI_Api& api, const absl::Status& status);
void DestroyError(const XLA_FFI_Api& api, XLA_FFI_Error* error);

// The future by which a handler says later that it is done: stored in the frame, which is gone by then.
// UNIMPLEMENTED with plugins that have none.
absl::StatusOr<XLA_FFI_Future*> MakeFuture(XLA_FFI_CallFrame* frame);
void CompleteFuture(const XLA_FFI_Api& api, XLA_FFI_Future* future, const absl::Status& status);

}  // namespace gangway::device::pjrt

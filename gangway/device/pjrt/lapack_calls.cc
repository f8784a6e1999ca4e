#include "gangway/device/pjrt/lapack_calls.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/check.h"
#include "gangway/base/status.h"
#include "gangway/device/pjrt/ffi_handler.h"
#include "gangway/lapack/routine.h"

namespace gangway::device::pjrt {
namespace {

lapack::Array ToArray(const void* buffer) {
  const auto& b = *static_cast<const XLA_FFI_Buffer*>(buffer);
  return {static_cast<DType>(b.dtype), absl::MakeConstSpan(b.dims, b.rank), b.data};
}

template <typename T>
int64_t Load(const void* value) {
  T loaded;
  std::memcpy(&loaded, value, sizeof loaded);
  return static_cast<int64_t>(loaded);
}

// Numbers only; no routine has attributes of other types.
lapack::Attributes ToAttributes(const XLA_FFI_Attrs& attrs) {
  lapack::Attributes attributes;
  for (int64_t i = 0; i < attrs.size; ++i) {
    if (attrs.types[i] != XLA_FFI_AttrType_SCALAR) continue;
    const absl::string_view name(attrs.names[i]->ptr, attrs.names[i]->len);
    const auto* scalar = static_cast<const XLA_FFI_Scalar*>(attrs.attrs[i]);
    switch (scalar->dtype) {
      case XLA_FFI_DataType_PRED:
      case XLA_FFI_DataType_U8:
        attributes.emplace_back(name, Load<uint8_t>(scalar->value));
        break;
      case XLA_FFI_DataType_S32:
        attributes.emplace_back(name, Load<int32_t>(scalar->value));
        break;
      case XLA_FFI_DataType_S64:
        attributes.emplace_back(name, Load<int64_t>(scalar->value));
        break;
      default:
        break;
    }
  }
  return attributes;
}

absl::Status Run(const lapack::Routine& routine, const XLA_FFI_CallFrame& frame) {
  lapack::Call call;
  for (int64_t i = 0; i < frame.args.size; ++i) call.operands.push_back(ToArray(frame.args.args[i]));
  for (int64_t i = 0; i < frame.rets.size; ++i) call.results.push_back(ToArray(frame.rets.rets[i]));
  call.attributes = ToAttributes(frame.attrs);
  return Annotate(routine.run(call), routine.target);
}

// A handler is a function without state: which routine it is for is part of its type.
template <size_t index>
XLA_FFI_Error* Handler(XLA_FFI_CallFrame* frame) {
  if (AnswerMetadata(frame)) return nullptr;
  return ToError(*frame->api, Run(lapack::Routines()[index], *frame));
}

template <size_t... index>
constexpr std::array<XLA_FFI_Handler*, sizeof...(index)> MakeHandlers(std::index_sequence<index...>) {
  return {&Handler<index>...};
}

// As many as there may be routines.
constexpr auto kHandlers = MakeHandlers(std::make_index_sequence<96>());

}  // namespace

absl::Status RegisterLapackCalls(const Plugin& plugin, const FfiExtension& ffi) {
  const std::vector<lapack::Routine>& routines = lapack::Routines();
  GW_CHECK(routines.size() <= kHandlers.size());
  for (size_t i = 0; i < routines.size(); ++i) {
    GW_RETURN_IF_ERROR(RegisterHandler(plugin, ffi, routines[i].target, kHandlers[i]));
  }
  return absl::OkStatus();
}

}  // namespace gangway::device::pjrt

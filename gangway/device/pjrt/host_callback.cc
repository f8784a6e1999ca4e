#include "gangway/device/pjrt/host_callback.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/device/pjrt/ffi_attributes.h"
#include "gangway/device/pjrt/ffi_handler.h"
#include "gangway/device/pjrt/hosted.h"
#include "gangway/tensor/dtype.h"

namespace gangway::device::pjrt {
namespace {

// An operand or result: dense bytes, elements narrower than a byte packed from the low bits up.
struct Packed {
  char* data = nullptr;
  int64_t elements = 0;
  DType dtype = DType::kPred;

  int per_byte() const { return dtype == DType::kPred ? 1 : std::max(1, 8 / BitWidth(dtype)); }
  // On the way to and from the client each element has bytes of its own.
  size_t wire_bytes() const { return static_cast<size_t>(elements) * ByteWidth(dtype); }
  size_t bytes() const {
    return per_byte() == 1 ? wire_bytes() : static_cast<size_t>((elements + per_byte() - 1) / per_byte());
  }
};

// Of arrays; a token has no elements.
absl::StatusOr<Packed> PackedOf(const void* buffer) {
  const auto& b = *static_cast<const XLA_FFI_Buffer*>(buffer);
  const DType dtype = static_cast<DType>(b.dtype);
  if (!IsElement(dtype)) return Packed{};
  const int bits = BitWidth(dtype);
  if (bits < 8 && 8 % bits != 0) {
    return absl::UnimplementedError(absl::StrCat("a callback with elements of type ", DTypeName(dtype)));
  }
  Packed packed{static_cast<char*>(b.data), 1, dtype};
  for (int64_t i = 0; i < b.rank; ++i) packed.elements *= b.dims[i];
  return packed;
}

void AppendUnpacked(const Packed& from, std::string* to) {
  if (from.per_byte() == 1) {
    to->append(from.data == nullptr ? "" : from.data, from.wire_bytes());
    return;
  }
  const int bits = BitWidth(from.dtype), unused = 8 - bits;
  for (int64_t i = 0; i < from.elements; ++i) {
    const auto byte = static_cast<uint8_t>(from.data[i / from.per_byte()]);
    const auto high = static_cast<uint8_t>(byte >> (i % from.per_byte() * bits) << unused);
    to->push_back(static_cast<char>(IsSigned(from.dtype) ? static_cast<int8_t>(high) >> unused : high >> unused));
  }
}

// The extents of an array, 64 bits each; a token has none.
void AppendExtents(const void* buffer, std::string* to) {
  const auto& b = *static_cast<const XLA_FFI_Buffer*>(buffer);
  if (IsElement(static_cast<DType>(b.dtype))) {
    to->append(reinterpret_cast<const char*>(b.dims), static_cast<size_t>(b.rank) * sizeof(int64_t));
  }
}

void Pack(const char* from, const Packed& to) {
  if (to.per_byte() == 1) {
    if (to.elements > 0) std::memcpy(to.data, from, to.bytes());
    return;
  }
  const int bits = BitWidth(to.dtype);
  std::memset(to.data, 0, to.bytes());
  for (int64_t i = 0; i < to.elements; ++i) {
    to.data[i / to.per_byte()] |= static_cast<char>((from[i] & ((1 << bits) - 1)) << (i % to.per_byte() * bits));
  }
}

// The answer's bytes to the results, in order.
absl::Status Spread(const std::string& bytes, const std::vector<Packed>& results) {
  size_t wanted = 0;
  for (const Packed& result : results) wanted += result.wire_bytes();
  if (bytes.size() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("a callback returned ", bytes.size(), " bytes, its results take ", wanted));
  }
  const char* from = bytes.data();
  for (const Packed& result : results) {
    Pack(from, result);
    from += result.wire_bytes();
  }
  return absl::OkStatus();
}

absl::Status Start(XLA_FFI_CallFrame* frame) {
  GW_ASSIGN_OR_RETURN(const HostedCall hosted, FindLaunch(*frame));
  const LaunchContext& launch = *hosted->launch;
  const FfiAttributes attributes(frame->attrs);
  GW_ASSIGN_OR_RETURN(const int64_t callback, attributes.Int("callback"));
  // What the frame points to is gone once this returns; the arrays stay until the future is complete.
  std::vector<Packed> results;
  for (int64_t i = 0; i < frame->rets.size; ++i) {
    GW_ASSIGN_OR_RETURN(results.emplace_back(), PackedOf(frame->rets.rets[i]));
  }
  if (attributes.Has("device")) {
    GW_ASSIGN_OR_RETURN(const int64_t device, attributes.Int("device"));
    if (launch.partition != device) {
      for (const Packed& result : results) {
        if (result.elements > 0) std::memset(result.data, 0, result.bytes());
      }
      return absl::OkStatus();
    }
  }
  if (launch.callbacks == nullptr) {
    return absl::FailedPreconditionError("a host callback in a program that was launched without a client");
  }
  std::string operands;
  for (int64_t i = 0; i < frame->args.size; ++i) {
    GW_ASSIGN_OR_RETURN(const Packed operand, PackedOf(frame->args.args[i]));
    if (attributes.Has("with_extents")) AppendExtents(frame->args.args[i], &operands);
    AppendUnpacked(operand, &operands);
  }
  GW_ASSIGN_OR_RETURN(XLA_FFI_Future * future, MakeFuture(frame));
  // The rest of the program may go on right where the future is completed: not on the thread that brings the answer.
  launch.callbacks->Call(hosted->device->id(), static_cast<int>(callback), std::move(operands),
                         [api = frame->api, future, results = std::move(results),
                          device = hosted->device](absl::StatusOr<std::shared_ptr<const std::string>> answer) {
                           device->callback_thread().Post([api, future, results, answer = std::move(answer)] {
                             CompleteFuture(*api, future, answer.ok() ? Spread(**answer, results) : answer.status());
                           });
                         });
  return absl::OkStatus();
}

XLA_FFI_Error* HostCallback(XLA_FFI_CallFrame* frame) {
  if (AnswerMetadata(frame)) return nullptr;
  return ToError(*frame->api, Start(frame));
}

}  // namespace

absl::Status RegisterHostCallback(const Plugin& plugin, const FfiExtension& ffi) {
  return RegisterHandler(plugin, ffi, "gangway.host_callback", &HostCallback);
}

}  // namespace gangway::device::pjrt

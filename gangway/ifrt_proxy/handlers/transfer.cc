#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/ifrt_proxy/handlers/handlers.h"
#include "gangway/ifrt_proxy/protocol.h"
#include "gangway/ifrt_proxy/string_arrays.h"
#include "gangway/mesh/geometry.h"

namespace gangway::ifrt_proxy {
namespace {

using controller::ArraySpec;
using controller::HostShard;

constexpr int64_t kPromisedBytes = 64 << 10;  // beyond it moving the bytes takes longer than a round trip

// Takes a host buffer and makes it dense; its size must be that of `dims`.
template <typename Strides>
absl::StatusOr<SharedBytes> TakeDense(HostBuffers& buffers, uint64_t handle, DType dtype, const DimVector& dims,
                                      const Strides* strides) {
  GW_ASSIGN_OR_RETURN(SharedBytes bytes, buffers.Take(handle));
  Shape shape(dtype, dims);
  GW_RETURN_IF_ERROR(ValidateShape(shape));
  if (strides != nullptr) {
    std::vector<int64_t> steps(strides->strides().begin(), strides->strides().end());
    GW_ASSIGN_OR_RETURN(std::string dense, MakeDense(*bytes, dims, ByteWidth(dtype), steps, buffers.capacity()));
    bytes = std::make_shared<const std::string>(std::move(dense));
  }
  if (static_cast<int64_t>(bytes->size()) != shape.ByteSize()) {
    return absl::InvalidArgumentError(absl::StrCat("host buffer ", handle, " has ", bytes->size(), " bytes, ",
                                                   shape.ToString(), " takes ", shape.ByteSize()));
  }
  return bytes;
}

template <typename Strides>
absl::StatusOr<SharedBytes> TakeStrings(HostBuffers& buffers, uint64_t handle, const DimVector& dims,
                                        const Strides* strides) {
  GW_ASSIGN_OR_RETURN(SharedBytes bytes, buffers.Take(handle));
  if (strides != nullptr) return absl::UnimplementedError("byte strides of an array of strings");
  GW_RETURN_IF_ERROR_WITH(CheckStrings(*bytes, dims), absl::StrCat("host buffer ", handle));
  return bytes;
}

// The shard that a buffer of a request holds.
template <typename Strides>
absl::StatusOr<SharedBytes> TakeShard(HostBuffers& buffers, uint64_t handle, const xla::ifrt::DTypeProto& dtype,
                                      const DimVector& dims, const Strides* strides) {
  if (HoldsStrings(dtype)) return TakeStrings(buffers, handle, dims, strides);
  GW_ASSIGN_OR_RETURN(const DType element, FromProto(dtype));
  return TakeDense(buffers, handle, element, dims, strides);
}

// The same array as the controller is to know it.
ArraySpec SpecFor(const xla::ifrt::DTypeProto& dtype, ArraySpec spec, const std::vector<HostShard>& shards) {
  if (!HoldsStrings(dtype)) return spec;
  std::vector<int64_t> bytes(spec.devices.size());
  for (const HostShard& shard : shards) {
    for (int device : shard.devices) bytes[device] = static_cast<int64_t>(shard.bytes->size());
  }
  return BytesOfStrings(std::move(spec), bytes);
}

absl::StatusOr<controller::ArrayId> MakeArray(Session& session, const wire::MakeArrayFromHostBufferRequest& request) {
  GW_ASSIGN_OR_RETURN(DType dtype, ElementType(request.dtype()));
  DimVector dims(request.shape().dims().begin(), request.shape().dims().end());
  GW_ASSIGN_OR_RETURN(ArraySpec spec, MakeArraySpec(dtype, dims, request.sharding()));
  for (const DimVector& shard : spec.shard_dims) {
    if (shard != dims) return absl::UnimplementedError("one host buffer for an array that is split over devices");
  }
  GW_ASSIGN_OR_RETURN(SharedBytes bytes,
                      TakeShard(*session.host_buffers(), request.host_buffer_handle(), request.dtype(), dims,
                                request.has_byte_strides() ? &request.byte_strides() : nullptr));
  HostShard shard{std::move(bytes), {}};
  for (size_t i = 0; i < spec.devices.size(); ++i) shard.devices.push_back(static_cast<int>(i));
  std::vector<HostShard> shards = {std::move(shard)};
  spec = SpecFor(request.dtype(), std::move(spec), shards);
  return session.controller().MakeArray(session.id(), std::move(spec), std::move(shards));
}

using ShardsSpec = wire::MakeArraysFromHostBufferShardsRequest::MakeArraysFromHostBufferShardsSpec;

absl::StatusOr<controller::ArrayId> MakeArrayOfShards(Session& session, const ShardsSpec& request) {
  const xla::ifrt::DTypeProto& dtype = request.array_spec().dtype();
  GW_ASSIGN_OR_RETURN(ArraySpec spec, MakeElementSpec(request.array_spec()));
  if (request.addressable_shard_indices_size() != request.host_buffers_size()) {
    return absl::InvalidArgumentError("as many lists of shard indices as host buffers are needed");
  }
  std::vector<HostShard> shards;
  std::vector<bool> covered(spec.devices.size(), false);
  for (int i = 0; i < request.host_buffers_size(); ++i) {
    const auto& buffer = request.host_buffers(i);
    HostShard shard;
    for (int64_t index : request.addressable_shard_indices(i).indices()) {
      if (index < 0 || index >= static_cast<int64_t>(covered.size()) || covered[index]) {
        return absl::InvalidArgumentError(absl::StrCat("shard index ", index, " is out of range or given twice"));
      }
      covered[index] = true;
      shard.devices.push_back(static_cast<int>(index));
    }
    DimVector dims(buffer.shape().dims().begin(), buffer.shape().dims().end());
    for (int device : shard.devices) {
      const DimVector& wanted = spec.shard_dims[spec.shard_dims.size() == 1 ? 0 : device];
      if (dims != wanted) {
        return absl::InvalidArgumentError(absl::StrCat("host buffer of ", Shape(spec.dtype, dims).ToString(),
                                                       " for shard ", device, " of ",
                                                       Shape(spec.dtype, wanted).ToString()));
      }
    }
    GW_ASSIGN_OR_RETURN(shard.bytes, TakeShard(*session.host_buffers(), buffer.host_buffer_handle(), dtype, dims,
                                               buffer.has_byte_strides() ? &buffer.byte_strides() : nullptr));
    shards.push_back(std::move(shard));
  }
  for (size_t i = 0; i < covered.size(); ++i) {
    if (!covered[i]) return absl::InvalidArgumentError(absl::StrCat("no host buffer for shard ", i));
  }
  spec = SpecFor(dtype, std::move(spec), shards);
  return session.controller().MakeArray(session.id(), std::move(spec), std::move(shards));
}

// What a client finds under its host buffer's handle.
absl::StatusOr<SharedBytes> ForClient(SharedBytes dense, const DimVector& dims, int64_t element_bytes,
                                      const std::optional<std::vector<int64_t>>& strides, int64_t most) {
  if (!strides.has_value() || dense->empty()) return dense;
  GW_ASSIGN_OR_RETURN(std::string strided, MakeStrided(*dense, dims, element_bytes, *strides, most));
  return std::make_shared<const std::string>(std::move(strided));
}

}  // namespace

void HandleMakeArray(Session& session, const wire::MakeArrayFromHostBufferRequest& request, const Reply& reply) {
  auto array = MakeArray(session, request);
  if (!array.ok()) {
    session.PoisonArray(request.array_handle(), array.status());
    return reply.Fail(array.status());
  }
  IfrtResponse response = reply.Empty();
  response.mutable_make_array_from_host_buffer_response()->set_array_handle(
      session.NameArray(request.array_handle(), *array));
  reply.Send(std::move(response));
}

void HandleMakeArrays(Session& session, const wire::MakeArraysFromHostBufferShardsRequest& request,
                      const Reply& reply) {
  IfrtResponse response = reply.Empty();
  absl::Status status;
  for (int i = 0; i < request.specs_size(); ++i) {
    uint64_t handle = i < request.array_handles_size() ? request.array_handles(i) : 0;
    auto array = MakeArrayOfShards(session, request.specs(i));
    if (array.ok()) {
      response.mutable_make_arrays_from_host_buffer_shards_response()->add_array_handles(
          session.NameArray(handle, *array));
    } else {
      status.Update(array.status());
      session.PoisonArray(handle, array.status());
    }
  }
  status.ok() ? reply.Send(std::move(response)) : reply.Fail(status);
}

void HandleCopyToHost(Session& session, const wire::CopyToHostBufferRequest& request, const Reply& reply) {
  auto array = session.Array(request.array_handle());
  if (!array.ok()) return reply.Fail(array.status());
  auto spec = session.controller().Spec(*array);
  if (!spec.ok()) return reply.Fail(spec.status());
  std::optional<std::vector<int64_t>> strides;
  if (request.has_byte_strides()) {
    strides.emplace(request.byte_strides().strides().begin(), request.byte_strides().strides().end());
  }
  // Shard 0 stands for the whole: clients copy single-device or fully replicated arrays only.
  const DimVector& dims = (*spec)->dims;
  if (!(*spec)->shard_dims.empty() && (*spec)->shard_dims[0] != dims) {
    return reply.Fail(
        absl::InvalidArgumentError("only single-device or fully replicated arrays can be copied to the host"));
  }
  // A small value that is still being made is answered for at once: the client asks for its bytes meanwhile, and they
  // leave as soon as they are there, not a round trip later. Not where a call of the client's functions may have to
  // come first: clients can be told to ask for few buffers at a time.
  const Future<SharedBytes> value = session.controller().Fetch(*array, 0);
  const uint64_t handle = request.host_buffer_handle();
  const std::shared_ptr<HostBuffers>& buffers = session.host_buffers();
  const bool promised = !value.IsReady() && Shape((*spec)->dtype, dims).ByteSize() <= kPromisedBytes &&
                        !session.host_calls().expected() && buffers->Promise(handle);
  if (promised) reply.Ok();
  value.OnReady([reply, buffers, handle, promised, dims, element_bytes = ByteWidth((*spec)->dtype),
                 strides](const absl::StatusOr<SharedBytes>& bytes) {
    absl::Status outcome = bytes.status();
    if (bytes.ok()) {
      auto ready = ForClient(*bytes, dims, element_bytes, strides, buffers->capacity());
      outcome = ready.ok() ? buffers->Store(handle, *std::move(ready)) : ready.status();
    }
    if (!promised) return reply.OkOrFail(outcome);
    if (!outcome.ok()) buffers->StoreError(handle, outcome);
  });
}

}  // namespace gangway::ifrt_proxy

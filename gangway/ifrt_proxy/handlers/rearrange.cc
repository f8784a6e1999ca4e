#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/ifrt_proxy/handlers/handlers.h"
#include "gangway/ifrt_proxy/protocol.h"
#include "gangway/ifrt_proxy/string_arrays.h"

namespace gangway::ifrt_proxy {
namespace {

using controller::ArrayId;
using controller::ArraySpec;

bool DonatesInput(xla::ifrt::proto::ArrayCopySemantics semantics) {
  return semantics == xla::ifrt::proto::ARRAY_COPY_SEMANTICS_DONATE_INPUT;
}

controller::CopySemantics SemanticsOf(xla::ifrt::proto::ArrayCopySemantics semantics) {
  switch (semantics) {
    case xla::ifrt::proto::ARRAY_COPY_SEMANTICS_ALWAYS_COPY:
      return controller::CopySemantics::kCopy;
    case xla::ifrt::proto::ARRAY_COPY_SEMANTICS_DONATE_INPUT:
      return controller::CopySemantics::kDonate;
    default:
      return controller::CopySemantics::kShare;
  }
}

// The controller's Assemble, of strings too. `spec` says how their elements lie.
absl::StatusOr<ArrayId> Join(Session& session, ArraySpec spec, bool of_strings, const std::vector<ArrayId>& parts) {
  if (of_strings) {
    std::vector<int64_t> bytes;
    for (ArrayId part : parts) {
      GW_ASSIGN_OR_RETURN(const ArraySpec* of_part, session.controller().Spec(part));
      // What was never made has no shape; joining it fails with its error.
      bytes.push_back(of_part->dims.empty() ? 0 : of_part->dims[0]);
    }
    if (bytes.size() == spec.devices.size()) spec = BytesOfStrings(std::move(spec), bytes);
  }
  return session.controller().Assemble(session.id(), std::move(spec), parts);
}

absl::StatusOr<ArrayId> Assemble(Session& session, const wire::AssembleArrayFromSingleDeviceArraysRequest& request) {
  GW_ASSIGN_OR_RETURN(std::vector<ArrayId> parts, session.Arrays(request.single_device_array_handles()));
  DType dtype;
  bool of_strings = false;
  if (request.has_dtype()) {
    GW_ASSIGN_OR_RETURN(dtype, ElementType(request.dtype()));
    of_strings = HoldsStrings(request.dtype());
  } else {
    if (parts.empty()) return absl::InvalidArgumentError("no arrays to assemble");
    GW_ASSIGN_OR_RETURN(const ArraySpec* first, session.controller().Spec(parts[0]));
    dtype = first->dtype;
    of_strings = first->holds_strings;
  }
  DimVector dims(request.shape().dims().begin(), request.shape().dims().end());
  GW_ASSIGN_OR_RETURN(ArraySpec spec, MakeArraySpec(dtype, std::move(dims), request.sharding()));
  absl::StatusOr<ArrayId> array = Join(session, std::move(spec), of_strings, parts);
  if (!array.ok()) return session.CauseOf(array.status(), parts);
  if (DonatesInput(request.copy_semantics())) {
    for (ArrayId part : parts) (void)session.controller().Donate(part);
  }
  return array;
}

// What a request makes. Lets go of it where the request fails half-way: nobody else would.
class Made {
 public:
  explicit Made(Session& session) : session_(session) {}
  ~Made() {
    for (ArrayId array : arrays_) session_.controller().Release(array);
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  void Add(ArrayId array) { arrays_.push_back(array); }
  // The caller's from here on.
  std::vector<ArrayId> Take() { return std::exchange(arrays_, {}); }

 private:
  Session& session_;
  std::vector<ArrayId> arrays_;
};

uint64_t HandleAt(const google::protobuf::RepeatedField<uint64_t>& handles, int i) {
  return i < handles.size() ? handles[i] : 0;
}

// Names each array by the client's handles, or fails all of them.
template <typename AddHandle>
void AnswerArrays(Session& session, const google::protobuf::RepeatedField<uint64_t>& handles,
                  const absl::StatusOr<std::vector<ArrayId>>& arrays, const Reply& reply, AddHandle add_handle) {
  if (!arrays.ok()) {
    for (uint64_t handle : handles) session.PoisonArray(handle, arrays.status());
    return reply.Fail(arrays.status());
  }
  IfrtResponse response = reply.Empty();
  for (size_t i = 0; i < arrays->size(); ++i) {
    add_handle(&response, session.NameArray(HandleAt(handles, static_cast<int>(i)), (*arrays)[i]));
  }
  reply.Send(std::move(response));
}

// The positions of an interval list: start, start+step, ... below end, for each interval. At most `most` of them.
using Ints = google::protobuf::RepeatedField<int64_t>;
absl::StatusOr<std::vector<int64_t>> Positions(const Ints& start, const Ints& end, const Ints& step, int64_t limit,
                                               size_t most) {
  std::vector<int64_t> positions;
  if (start.size() != end.size() || start.size() != step.size()) {
    return absl::InvalidArgumentError("remap plan: intervals are incomplete");
  }
  for (int i = 0; i < start.size(); ++i) {
    if (start[i] < 0 || end[i] > limit || step[i] < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("remap plan: interval [", start[i], ":", end[i], ":", step[i], "] of ", limit, " shards"));
    }
    const int64_t count = end[i] <= start[i] ? 0 : (end[i] - start[i] - 1) / step[i] + 1;
    if (static_cast<size_t>(count) > most - positions.size()) {
      return absl::InvalidArgumentError(absl::StrCat("remap plan: more than ", most, " shards of one array"));
    }
    for (int64_t k = 0; k < count; ++k) positions.push_back(start[i] + k * step[i]);
  }
  return positions;
}

// Shard `from` of input `in` becomes shard `to` of output `out`; all are positions.
struct ShardMove {
  size_t in = 0;
  size_t from = 0;
  size_t out = 0;
  size_t to = 0;
};

// A plan says where shards go by their positions, or (jaxlib 0.12) by the devices that keep theirs.
absl::StatusOr<std::vector<ShardMove>> MovesByPosition(const xla::ifrt::RemapPlanProto& plan,
                                                       const std::vector<ArraySpec>& inputs,
                                                       const std::vector<ArraySpec>& outputs) {
  std::vector<ShardMove> moves;
  for (const auto& mapping : plan.mappings()) {
    const auto in = static_cast<size_t>(mapping.in_array()), out = static_cast<size_t>(mapping.out_array());
    if (in >= inputs.size() || out >= outputs.size()) {
      return absl::InvalidArgumentError("remap plan: array index out of range");
    }
    const size_t sources = inputs[in].devices.size(), targets = outputs[out].devices.size();
    GW_ASSIGN_OR_RETURN(auto from, Positions(mapping.from_start(), mapping.from_end(), mapping.from_step(),
                                             static_cast<int64_t>(sources), targets));
    GW_ASSIGN_OR_RETURN(auto to, Positions(mapping.to_start(), mapping.to_end(), mapping.to_step(),
                                           static_cast<int64_t>(targets), targets));
    if (from.size() != to.size()) return absl::InvalidArgumentError("remap plan: mapping sizes differ");
    for (size_t i = 0; i < from.size(); ++i) {
      moves.push_back({in, static_cast<size_t>(from[i]), out, static_cast<size_t>(to[i])});
    }
  }
  return moves;
}

absl::StatusOr<size_t> PositionOf(int device, const ArraySpec& spec) {
  for (size_t i = 0; i < spec.devices.size(); ++i) {
    if (spec.devices[i].value() == device) return i;
  }
  return absl::InvalidArgumentError(absl::StrCat("remap plan: an array has no shard on device ", device));
}

absl::StatusOr<std::vector<ShardMove>> MovesByDevice(const xla::ifrt::RemapPlanProto& plan,
                                                     const std::vector<ArraySpec>& inputs,
                                                     const std::vector<ArraySpec>& outputs) {
  std::vector<ShardMove> moves;
  for (const auto& made : plan.input_devices_for_output()) {
    const auto out = static_cast<size_t>(made.out_array());
    for (const auto& source : made.input_devices()) {
      const auto in = static_cast<size_t>(source.in_array());
      if (in >= inputs.size() || out >= outputs.size()) {
        return absl::InvalidArgumentError("remap plan: array index out of range");
      }
      for (int32_t device : source.device_list().device_ids()) {
        GW_ASSIGN_OR_RETURN(const size_t from, PositionOf(device, inputs[in]));
        GW_ASSIGN_OR_RETURN(const size_t to, PositionOf(device, outputs[out]));
        moves.push_back({in, from, out, to});
      }
    }
  }
  return moves;
}

// The single-device views of arrays that are taken apart, dropped at the end.
class Parts {
 public:
  explicit Parts(Session& session) : session_(session) {}
  ~Parts() {
    for (const auto& list : parts_) {
      for (ArrayId part : list) session_.controller().Release(part);
    }
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  absl::Status Add(ArrayId array) {
    GW_ASSIGN_OR_RETURN(parts_.emplace_back(), session_.controller().Disassemble(session_.id(), array));
    return absl::OkStatus();
  }
  ArrayId At(size_t array, size_t shard) const { return parts_[array][shard]; }

 private:
  Session& session_;
  std::vector<std::vector<ArrayId>> parts_;
};

absl::StatusOr<std::vector<ArrayId>> Remap(Session& session, const wire::RemapArraysRequest& request) {
  controller::Controller& controller = session.controller();
  GW_ASSIGN_OR_RETURN(const std::vector<ArrayId> inputs, session.Arrays(request.array_handles()));
  std::vector<ArraySpec> from, to;
  Parts parts(session);
  for (ArrayId input : inputs) {
    GW_ASSIGN_OR_RETURN(const ArraySpec* spec, controller.Spec(input));
    from.push_back(*spec);
    GW_RETURN_IF_ERROR(parts.Add(input));
  }
  for (const auto& spec : request.plan().output_specs()) {
    GW_ASSIGN_OR_RETURN(to.emplace_back(), MakeElementSpec(spec));
  }
  const bool by_device = request.plan().input_devices_for_output_size() > 0;
  GW_ASSIGN_OR_RETURN(const std::vector<ShardMove> moves,
                      by_device ? MovesByDevice(request.plan(), from, to) : MovesByPosition(request.plan(), from, to));
  std::vector<std::vector<std::optional<ArrayId>>> slots;
  for (const ArraySpec& spec : to) slots.emplace_back(spec.devices.size());
  for (const ShardMove& move : moves) slots[move.out][move.to] = parts.At(move.in, move.from);
  Made outputs(session);
  for (size_t i = 0; i < to.size(); ++i) {
    std::vector<ArrayId> shards;
    for (const auto& slot : slots[i]) {
      if (!slot.has_value()) return absl::InvalidArgumentError("remap plan: an output shard has no input");
      shards.push_back(*slot);
    }
    const bool of_strings = HoldsStrings(request.plan().output_specs(static_cast<int>(i)).dtype());
    GW_ASSIGN_OR_RETURN(ArrayId output, Join(session, std::move(to[i]), of_strings, shards));
    outputs.Add(output);
  }
  if (DonatesInput(request.copy_semantics())) {
    for (ArrayId input : inputs) (void)controller.Donate(input);
  }
  return outputs.Take();
}

absl::StatusOr<std::vector<ArrayId>> Bitcast(Session& session, const wire::BitcastArraysRequest& request) {
  GW_ASSIGN_OR_RETURN(std::vector<ArrayId> inputs, session.Arrays(request.array_handles()));
  if (static_cast<int>(inputs.size()) != request.array_specs_size()) {
    return absl::InvalidArgumentError("as many array specs as arrays are needed");
  }
  Made outputs(session);
  for (size_t i = 0; i < inputs.size(); ++i) {
    GW_ASSIGN_OR_RETURN(ArraySpec spec, MakeArraySpec(request.array_specs(static_cast<int>(i))));
    GW_ASSIGN_OR_RETURN(ArrayId output, session.controller().Remap(session.id(), inputs[i], std::move(spec)));
    outputs.Add(output);
  }
  if (DonatesInput(request.copy_semantics())) {
    for (ArrayId input : inputs) (void)session.controller().Donate(input);
  }
  return outputs.Take();
}

absl::StatusOr<std::vector<ArrayId>> CopyArrays(Session& session, const wire::CopyArraysRequest& request) {
  GW_ASSIGN_OR_RETURN(std::vector<ArrayId> inputs, session.Arrays(request.array_handles()));
  Made outputs(session);
  for (ArrayId input : inputs) {
    GW_ASSIGN_OR_RETURN(const ArraySpec* spec, session.controller().Spec(input));
    std::vector<controller::DeviceId> devices = spec->devices;
    if (request.device_ids_size() > 0) {
      devices.clear();
      for (int32_t id : request.device_ids()) devices.push_back(controller::DeviceId(id));
    }
    std::optional<std::string> memory_kind;
    if (request.has_memory_kind()) memory_kind = request.memory_kind();
    absl::StatusOr<ArrayId> output = session.controller().Copy(
        session.id(), input, std::move(devices), std::move(memory_kind), SemanticsOf(request.copy_semantics()));
    if (!output.ok()) return session.CauseOf(output.status(), {input});
    outputs.Add(*output);
  }
  return outputs.Take();
}

absl::StatusOr<std::vector<ArrayId>> Reshard(Session& session, const wire::ReshardArraysRequest& request) {
  GW_ASSIGN_OR_RETURN(std::vector<ArrayId> inputs, session.Arrays(request.array_handles()));
  if (static_cast<int>(inputs.size()) != request.array_specs_size()) {
    return absl::InvalidArgumentError("as many array specs as arrays are needed");
  }
  std::vector<ArraySpec> specs;
  for (const auto& spec : request.array_specs()) {
    GW_ASSIGN_OR_RETURN(specs.emplace_back(), MakeArraySpec(spec));
  }
  return Resharded(session, inputs, std::move(specs), DonatesInput(request.copy_semantics()));
}

absl::StatusOr<ArrayId> FirstShard(Session& session, uint64_t handle) {
  GW_ASSIGN_OR_RETURN(ArrayId array, session.Array(handle));
  absl::StatusOr<ArrayId> shard = session.controller().ViewShard(session.id(), array, 0);
  if (!shard.ok()) return session.CauseOf(shard.status(), {array});
  return shard;
}

}  // namespace

absl::StatusOr<std::vector<ArrayId>> Resharded(Session& session, const std::vector<ArrayId>& inputs,
                                               std::vector<ArraySpec> specs, bool donate) {
  // Shards that stay are not shared: natively nothing is, where an array goes to other devices.
  const auto semantics = donate ? controller::CopySemantics::kDonate : controller::CopySemantics::kCopy;
  Made outputs(session);
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto output = session.controller().Reshard(session.id(), inputs[i], std::move(specs[i]), semantics);
    if (!output.ok()) return session.CauseOf(output.status(), {inputs[i]});
    outputs.Add(*output);
  }
  return outputs.Take();
}

void HandleAssemble(Session& session, const wire::AssembleArrayFromSingleDeviceArraysRequest& request,
                    const Reply& reply) {
  auto array = Assemble(session, request);
  if (!array.ok()) {
    session.PoisonArray(request.result_handle(), array.status());
    return reply.Fail(array.status());
  }
  IfrtResponse response = reply.Empty();
  response.mutable_assemble_array_from_single_device_arrays_response()->set_array_handle(
      session.NameArray(request.result_handle(), *array));
  reply.Send(std::move(response));
}

void HandleDisassemble(Session& session, const wire::DisassembleIntoSingleDeviceArraysRequest& request,
                       const Reply& reply) {
  auto disassemble = [&]() -> absl::StatusOr<std::vector<ArrayId>> {
    GW_ASSIGN_OR_RETURN(ArrayId array, session.Array(request.array_handle()));
    auto parts = session.controller().Disassemble(session.id(), array);
    if (parts.ok() && !parts->empty()) return parts;
    return session.CauseOf(parts.ok() ? absl::InvalidArgumentError("array without shards") : parts.status(), {array});
  };
  AnswerArrays(session, request.result_handles(), disassemble(), reply, [](IfrtResponse* response, uint64_t handle) {
    response->mutable_disassemble_into_single_device_arrays_response()->add_array_handles(handle);
  });
}

void HandleRemap(Session& session, const wire::RemapArraysRequest& request, const Reply& reply) {
  AnswerArrays(session, request.result_handles(), Remap(session, request), reply,
               [](IfrtResponse* response, uint64_t handle) {
                 response->mutable_remap_arrays_response()->add_array_handles(handle);
               });
}

void HandleBitcast(Session& session, const wire::BitcastArraysRequest& request, const Reply& reply) {
  AnswerArrays(session, request.result_handles(), Bitcast(session, request), reply,
               [](IfrtResponse* response, uint64_t handle) {
                 response->mutable_bitcast_arrays_response()->add_array_handles(handle);
               });
}

void HandleReshard(Session& session, const wire::ReshardArraysRequest& request, const Reply& reply) {
  AnswerArrays(session, request.result_handles(), Reshard(session, request), reply,
               [](IfrtResponse* response, uint64_t handle) {
                 response->mutable_reshard_arrays_response()->add_array_handles(handle);
               });
}

void HandleCopyArrays(Session& session, const wire::CopyArraysRequest& request, const Reply& reply) {
  AnswerArrays(session, request.result_handles(), CopyArrays(session, request), reply,
               [](IfrtResponse* response, uint64_t handle) {
                 response->mutable_copy_arrays_response()->add_array_handles(handle);
               });
}

void HandleFullyReplicatedShard(Session& session, const wire::FullyReplicatedShardRequest& request,
                                const Reply& reply) {
  auto array = FirstShard(session, request.array_handle());
  if (!array.ok()) {
    session.PoisonArray(request.result_handle(), array.status());
    return reply.Fail(array.status());
  }
  IfrtResponse response = reply.Empty();
  response.mutable_fully_replicated_shard_response()->set_array_handle(
      session.NameArray(request.result_handle(), *array));
  reply.Send(std::move(response));
}

}  // namespace gangway::ifrt_proxy

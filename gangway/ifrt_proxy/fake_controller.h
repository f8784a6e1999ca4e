// A controller for the tests of sessions: arrays are kept whole in memory, programs add one to their argument's handle
// count.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/controller/controller.h"

namespace gangway::ifrt_proxy {

class FakeController final : public controller::Controller {
 public:
  using ArrayId = controller::ArrayId;
  using ArraySpec = controller::ArraySpec;
  using SessionId = controller::SessionId;

  struct Array {
    SessionId owner;
    ArraySpec spec;
    std::vector<std::shared_ptr<const std::string>> shards;
    absl::Status error;
    bool deleted = false;
  };

  explicit FakeController(int devices, Executor& loop) : loop_(loop) {
    for (int i = 0; i < devices; ++i) devices_.push_back({controller::DeviceId(i), "cpu", "worker0", 0, {i, 0, 0}});
  }
  Executor& loop() override { return loop_; }
  const std::vector<controller::DeviceInfo>& devices() const override { return devices_; }
  absl::Status Admit(controller::SessionInfo*) const override { return admission; }
  SessionId OpenSession(controller::SessionInfo) override {
    ++stats_.sessions;
    return SessionId(next_++);
  }
  void CloseSession(SessionId session) override {
    --stats_.sessions;
    std::erase_if(arrays_, [&](const auto& entry) { return entry.second.owner == session; });
  }
  absl::StatusOr<ArrayId> MakeArray(SessionId session, ArraySpec spec,
                                    std::vector<controller::HostShard> hosts) override {
    Array array{session, std::move(spec), {}, {}, false};
    array.shards.resize(array.spec.devices.size());
    for (const auto& host : hosts) {
      for (int device : host.devices) array.shards[device] = host.bytes;
    }
    return Add(std::move(array));
  }
  absl::StatusOr<ArrayId> MakeErrorArray(SessionId session, ArraySpec spec, absl::Status error) override {
    if (error_arrays-- <= 0) return absl::ResourceExhaustedError("no room for error arrays");
    return Add({session, std::move(spec), {}, std::move(error), false});
  }
  absl::StatusOr<ArrayId> Assemble(SessionId session, ArraySpec spec, absl::Span<const ArrayId> parts) override {
    Array array{session, std::move(spec), {}, {}, false};
    for (ArrayId part : parts) array.shards.push_back(arrays_.at(part).shards.at(0));
    return Add(std::move(array));
  }
  absl::StatusOr<std::vector<ArrayId>> Disassemble(SessionId session, ArrayId id) override {
    std::vector<ArrayId> parts;
    const int count = static_cast<int>(arrays_.at(id).shards.size());
    for (int i = 0; i < count; ++i) parts.push_back(*ViewShard(session, id, i));
    return parts;
  }
  absl::StatusOr<ArrayId> ViewShard(SessionId session, ArrayId id, int shard) override {
    const Array whole = arrays_.at(id);
    if (whole.shards.empty()) return absl::InvalidArgumentError("no such shard");
    ArraySpec spec = whole.spec;
    spec.dims = spec.shard_dims.size() == 1 ? spec.shard_dims[0] : spec.shard_dims[shard];
    spec.shard_dims = {spec.dims};
    spec.devices = {whole.spec.devices[shard]};
    return Add({session, std::move(spec), {whole.shards[shard]}, {}, false});
  }
  absl::StatusOr<ArrayId> Copy(SessionId session, ArrayId array, std::vector<controller::DeviceId> devices,
                               std::optional<std::string>, controller::CopySemantics) override {
    if (copies-- <= 0) return absl::ResourceExhaustedError("no room");
    Array copy = arrays_.at(array);
    copy.owner = session;
    copy.spec.devices = std::move(devices);
    return Add(std::move(copy));
  }
  absl::StatusOr<ArrayId> Remap(SessionId session, ArrayId array, ArraySpec spec) override {
    Array copy = arrays_.at(array);
    copy.owner = session;
    copy.spec = std::move(spec);
    return Add(std::move(copy));
  }
  Future<std::shared_ptr<const std::string>> Fetch(ArrayId array, int shard) override {
    using Result = absl::StatusOr<std::shared_ptr<const std::string>>;
    const Array& found = arrays_.at(array);
    if (fetched.has_value()) return fetched->future();
    if (!found.error.ok()) return Future<std::shared_ptr<const std::string>>(Result(found.error));
    return Future<std::shared_ptr<const std::string>>(Result(found.shards.at(shard)));
  }
  absl::StatusOr<const ArraySpec*> Spec(ArrayId array) const override { return &arrays_.at(array).spec; }
  Future<Unit> Enqueued(ArrayId array) override { return Ready(array); }
  Future<Unit> Ready(ArrayId array) override {
    const absl::Status& error = arrays_.at(array).error;
    return error.ok() ? ReadyFuture() : Future<Unit>(absl::StatusOr<Unit>(error));
  }
  absl::Status Delete(ArrayId array) override {
    arrays_.at(array).deleted = true;
    return absl::OkStatus();
  }
  absl::Status Donate(ArrayId array) override { return Delete(array); }
  absl::StatusOr<bool> IsDeleted(ArrayId array) const override { return arrays_.at(array).deleted; }
  void Release(ArrayId array) override { arrays_.erase(array); }
  std::pair<controller::ProgramId, Future<std::shared_ptr<const controller::Program>>> Compile(
      SessionId, controller::CompileRequest request) override {
    compile_request = request;
    return {controller::ProgramId(next_++), program.future()};
  }
  void ReleaseProgram(SessionId, controller::ProgramId) override { ++programs_released; }
  absl::StatusOr<controller::ExecuteResult> Execute(SessionId session, controller::ProgramId,
                                                    absl::Span<const ArrayId> arguments,
                                                    const controller::ExecuteOptions&) override {
    if (arguments.empty()) return absl::InvalidArgumentError("no arguments");
    Array result = arrays_.at(arguments[0]);
    result.owner = session;
    return controller::ExecuteResult{{Add(std::move(result))}, done.future()};
  }
  controller::Statistics Stats() const override {
    controller::Statistics stats = stats_;
    stats.arrays = static_cast<int64_t>(arrays_.size());
    return stats;
  }

  // What tests set and look at.
  Promise<std::shared_ptr<const controller::Program>> program;
  Promise<Unit> done;
  std::optional<Promise<std::shared_ptr<const std::string>>> fetched;  // what arrays are read as, when it is there
  controller::CompileRequest compile_request;
  absl::Status admission;      // of sessions
  int copies = 1 << 30;        // that there is room for
  int error_arrays = 1 << 30;  // likewise
  int programs_released = 0;

 private:
  ArrayId Add(Array array) {
    ArrayId id(next_++);
    arrays_.emplace(id, std::move(array));
    return id;
  }

  Executor& loop_;
  std::vector<controller::DeviceInfo> devices_;
  std::map<ArrayId, Array> arrays_;
  controller::Statistics stats_;
  uint64_t next_ = 1;
};

}  // namespace gangway::ifrt_proxy

// The floor of bench/proxy.py: a server of the IFRT-proxy protocol that answers every request at once. Programs are
// compiled for their signatures and never run, arrays are their shapes, what is read is zeros.
//
//   null_server [devices]      prints its address, serves until its standard input is closed
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gangway/base/status.h"
#include "gangway/base/strand.h"
#include "gangway/controller/controller_server.h"
#include "gangway/ifrt_proxy/server.h"
#include "gangway/mesh/geometry.h"

namespace gangway {
namespace {

using controller::ArrayId;
using controller::ArraySpec;
using controller::DeviceId;
using controller::ProgramId;
using controller::SessionId;

class NullController final : public controller::Controller {
 public:
  explicit NullController(int devices) {
    for (int i = 0; i < devices; ++i) devices_.push_back({DeviceId(i), "cpu", "null", 0, {i}});
  }

  Executor& loop() override { return loop_; }
  const std::vector<controller::DeviceInfo>& devices() const override { return devices_; }
  SessionId OpenSession(controller::SessionInfo) override { return SessionId(next_++); }
  void CloseSession(SessionId) override { arrays_.clear(); }

  absl::StatusOr<ArrayId> MakeArray(SessionId, ArraySpec spec, std::vector<controller::HostShard>) override {
    return Add(std::move(spec));
  }
  absl::StatusOr<ArrayId> MakeErrorArray(SessionId, ArraySpec spec, absl::Status) override {
    return Add(std::move(spec));
  }
  absl::StatusOr<ArrayId> Assemble(SessionId, ArraySpec spec, absl::Span<const ArrayId>) override {
    return Add(std::move(spec));
  }
  absl::StatusOr<std::vector<ArrayId>> Disassemble(SessionId session, ArrayId array) override {
    GW_ASSIGN_OR_RETURN(const ArraySpec* spec, Spec(array));
    std::vector<ArrayId> parts;
    const int count = static_cast<int>(spec->devices.size());
    for (int i = 0; i < count; ++i) {
      GW_ASSIGN_OR_RETURN(parts.emplace_back(), ViewShard(session, array, i));
    }
    return parts;
  }
  absl::StatusOr<ArrayId> ViewShard(SessionId, ArrayId array, int shard) override {
    GW_ASSIGN_OR_RETURN(const ArraySpec* found, Spec(array));
    ArraySpec spec = *found;
    spec.dims = spec.shard_dims[spec.shard_dims.size() == 1 ? 0 : shard];
    spec.devices = {found->devices[shard]};
    spec.shard_dims = {spec.dims};
    spec.sharding.reset();
    return Add(std::move(spec));
  }
  absl::StatusOr<ArrayId> Copy(SessionId, ArrayId array, std::vector<DeviceId> devices, std::optional<std::string>,
                               controller::CopySemantics) override {
    GW_ASSIGN_OR_RETURN(const ArraySpec* found, Spec(array));
    ArraySpec spec = *found;
    spec.devices = std::move(devices);
    return Add(std::move(spec));
  }
  absl::StatusOr<ArrayId> Remap(SessionId, ArrayId, ArraySpec spec) override { return Add(std::move(spec)); }
  Future<std::shared_ptr<const std::string>> Fetch(ArrayId array, int) override {
    using Bytes = std::shared_ptr<const std::string>;
    const absl::StatusOr<const ArraySpec*> spec = Spec(array);
    if (!spec.ok()) return Future<Bytes>(absl::StatusOr<Bytes>(spec.status()));
    const auto bytes = static_cast<size_t>(Shape((*spec)->dtype, (*spec)->shard_dims[0]).ByteSize());
    // Made once: to clear a gigabyte takes longer than to answer.
    if (zeros_ == nullptr || zeros_->size() != bytes) zeros_ = std::make_shared<const std::string>(bytes, '\0');
    return Future<Bytes>(absl::StatusOr<Bytes>(zeros_));
  }
  absl::StatusOr<const ArraySpec*> Spec(ArrayId array) const override {
    auto it = arrays_.find(array);
    if (it == arrays_.end()) return absl::NotFoundError(absl::StrCat("no array ", array.value()));
    return it->second.get();
  }
  Future<Unit> Ready(ArrayId) override { return ReadyFuture(); }
  Future<Unit> Enqueued(ArrayId) override { return ReadyFuture(); }
  absl::Status Delete(ArrayId) override { return absl::OkStatus(); }
  absl::Status Donate(ArrayId) override { return absl::OkStatus(); }
  absl::StatusOr<bool> IsDeleted(ArrayId) const override { return false; }
  void Release(ArrayId array) override { arrays_.erase(array); }

  std::pair<ProgramId, Future<std::shared_ptr<const controller::Program>>> Compile(
      SessionId, controller::CompileRequest request) override {
    using Outcome = absl::StatusOr<std::shared_ptr<const controller::Program>>;
    const ProgramId id(next_++);
    auto compiled = controller::CompileArtifact(request.artifact, request.options);
    if (!compiled.ok()) return {id, Future<std::shared_ptr<const controller::Program>>(Outcome(compiled.status()))};
    auto program = std::make_shared<controller::Program>();
    program->id = id;
    program->devices = request.devices;
    program->compiled = *std::move(compiled);
    std::vector<ArraySpec>& outputs = outputs_[id];
    for (const compile::ValueInfo& value : program->compiled.outputs) {
      const Shape shard = ShardShape(value.shape, value.sharding);
      outputs.push_back({value.shape.dtype(), value.shape.dims(), request.devices, {shard.dims()}, value.sharding, ""});
    }
    return {id, Future<std::shared_ptr<const controller::Program>>(Outcome(std::move(program)))};
  }
  void ReleaseProgram(SessionId, ProgramId program) override { outputs_.erase(program); }
  absl::StatusOr<controller::ExecuteResult> Execute(SessionId, ProgramId program, absl::Span<const ArrayId>,
                                                    const controller::ExecuteOptions&) override {
    auto it = outputs_.find(program);
    if (it == outputs_.end()) return absl::NotFoundError(absl::StrCat("no program ", program.value()));
    controller::ExecuteResult result{{}, ReadyFuture()};
    for (const ArraySpec& spec : it->second) result.outputs.push_back(Add(spec));
    return result;
  }
  controller::Statistics Stats() const override { return {}; }

 private:
  ArrayId Add(ArraySpec spec) {
    const ArrayId id(next_++);
    arrays_.emplace(id, std::make_unique<ArraySpec>(std::move(spec)));
    return id;
  }

  Strand loop_;
  std::vector<controller::DeviceInfo> devices_;
  absl::flat_hash_map<ArrayId, std::unique_ptr<ArraySpec>> arrays_;
  absl::flat_hash_map<ProgramId, std::vector<ArraySpec>> outputs_;
  std::shared_ptr<const std::string> zeros_;
  uint64_t next_ = 1;
};

int Serve(int devices) {
  NullController controller(devices);
  const SystemClock clock;
  auto server = ifrt_proxy::StartServer(controller, clock, {});
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
    return 1;
  }
  std::printf("127.0.0.1:%d\n", (*server)->port());
  std::fflush(stdout);
  while (std::getchar() != EOF) continue;
  return 0;
}

}  // namespace
}  // namespace gangway

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // as gangway itself does
  return gangway::Serve(argc > 1 ? std::atoi(argv[1]) : 1);
}

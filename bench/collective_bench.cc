// Hosted collectives on n CPU devices of this process: launches per second of a scalar all-reduce (Pathways' Figure 5
// in the small, OpByOp and in one program of 128) and bandwidth of large ones, into fresh results and in place. Native
// JAX beside it: bench/dispatch.py.
#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gangway/collective/gang_keeper.h"
#include "gangway/device/pjrt/client.h"
#include "gangway/hlo/proto.h"
#include "gangway/hlo/text.h"

namespace gangway::device {
namespace {

std::string AllReduce(int devices, const std::string& type, absl::string_view operand, bool in_place) {
  std::string members;
  for (int d = 0; d < devices; ++d) absl::StrAppend(&members, d > 0 ? ", " : "", d);
  return absl::StrCat(type, " custom-call(", operand, "), custom_call_target=\"gangway.all_reduce\"",
                      ", custom_call_has_side_effect=true, operand_layout_constraints={", type,
                      "}, api_version=API_VERSION_TYPED_FFI",
                      in_place ? ", output_to_operand_aliasing={{}: (0, {})}" : "",
                      ", backend_config=\"{key = 1 : i64, kind = \\\"sum\\\", groups = array<i64: ", members,
                      ">, group_size = ", devices, " : i64}\"");
}

// Sums over the devices, then adds 1, `steps` times.
std::string Steps(int devices, int steps) {
  const std::string step =
      absl::StrCat("  r = ", AllReduce(devices, "f32[8]{0}", "x", false),
                   "\n  one = f32[] constant(1)\n  ones = f32[8]{0} broadcast(one), dimensions={}\n");
  if (steps == 1) {
    return absl::StrCat("HloModule step\nENTRY e {\n  x = f32[8]{0} parameter(0)\n", step,
                        "  ROOT y = f32[8]{0} add(r, ones)\n}\n");
  }
  return absl::StrCat(R"(HloModule steps
body {
  t = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[8]{0} get-tuple-element(t), index=1
)",
                      step, R"(  y = f32[8]{0} add(r, ones)
  c = s32[] constant(1)
  j = s32[] add(i, c)
  ROOT o = (s32[], f32[8]{0}) tuple(j, y)
}
cond {
  t = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant()",
                      steps, R"()
  ROOT lt = pred[] compare(i, n), direction=LT
}
ENTRY e {
  p = f32[8]{0} parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[8]{0}) tuple(z, p)
  w = (s32[], f32[8]{0}) while(t), condition=cond, body=body
  ROOT r = f32[8]{0} get-tuple-element(w), index=1
}
)");
}

std::string Large(int devices, int64_t count, bool in_place) {
  const std::string type = absl::StrCat("f32[", count, "]{0}");
  return absl::StrCat("HloModule large", in_place ? ", input_output_alias={ {}: (0, {}, may-alias) }" : "",
                      "\nENTRY e {\n  x = ", type,
                      " parameter(0)\n  ROOT r = ", AllReduce(devices, type, "x", in_place), "\n}\n");
}

// One client with `devices` devices and one program on all of them, each launch fed by the one before.
class Gang {
 public:
  absl::Status Start(int devices, const std::string& text, int64_t count) {
    auto client = MakePjrtClient({GANGWAY_CPU_PLUGIN, {{"cpu_device_count", int64_t{devices}}}});
    if (!client.ok()) return client.status();
    client_ = *std::move(client);
    auto module = hlo::ParseModule(text);
    if (!module.ok()) return module.status();
    auto bytes = hlo::SerializeModule(**module);
    if (!bytes.ok()) return bytes.status();
    auto program = client_->Compile({"bench", *bytes, devices});
    if (!program.ok()) return program.status();
    program_ = *std::move(program);
    const std::vector<float> zeros(count, 0);
    for (Device* device : client_->devices()) {
      auto buffer = client_->FromHost(*device, {{DType::kF32, {count}}, zeros.data(), {}, nullptr});
      if (!buffer.ok()) return buffer.status();
      values_.push_back(*std::move(buffer));
      launch_.participants.push_back(absl::StrCat("cpu:", device->id()));
    }
    return absl::OkStatus();
  }

  // Queues `launches` and waits for the last.
  absl::Status Run(int launches) {
    std::vector<Future<Unit>> last;
    for (int i = 0; i < launches; ++i) {
      ++launch_.id;
      auto gang = keeper_.MakeGang(launch_);
      last.clear();
      for (size_t d = 0; d < values_.size(); ++d) {
        ExecuteOptions options;
        options.launch = {launch_.id, static_cast<int>(d), static_cast<int>(values_.size()), gang, nullptr};
        Execution execution = program_->Execute(*client_->devices()[d], {values_[d]}, options);
        values_[d] = execution.outputs[0];
        last.push_back(execution.done);
      }
    }
    for (const Future<Unit>& done : last) {
      if (auto outcome = done.Await(absl::Now() + absl::Minutes(1), "the launch"); !outcome.ok()) {
        return outcome.status();
      }
    }
    return absl::OkStatus();
  }

 private:
  collective::GangKeeper keeper_;
  std::unique_ptr<Client> client_;
  std::shared_ptr<Executable> program_;
  std::vector<BufferRef> values_;
  collective::Launch launch_{0, "bench", {}, {}};
};

void RunBench(benchmark::State& state, const std::string& text, int64_t count, int launches) {
  Gang gang;
  absl::Status status = gang.Start(static_cast<int>(state.range(0)), text, count);
  if (status.ok()) status = gang.Run(launches);  // loads the program everywhere
  for (auto _ : state) {
    if (status.ok()) status = gang.Run(launches);
    if (!status.ok()) {
      state.SkipWithError(status.ToString().c_str());
      break;
    }
  }
}

// range: devices, computations in one program.
void ScalarAllReduce(benchmark::State& state) {
  constexpr int kLaunches = 100;
  const int steps = static_cast<int>(state.range(1));
  RunBench(state, Steps(static_cast<int>(state.range(0)), steps), 8, kLaunches);
  state.counters["computations/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kLaunches * steps, benchmark::Counter::kIsRate);
}

// range: devices, bytes, in place.
void LargeAllReduce(benchmark::State& state) {
  const int64_t count = state.range(1) / 4;
  RunBench(state, Large(static_cast<int>(state.range(0)), count, state.range(2) != 0), count, 1);
  state.counters["GB/s"] =
      benchmark::Counter(static_cast<double>(state.iterations() * state.range(1)) / 1e9, benchmark::Counter::kIsRate);
}

BENCHMARK(ScalarAllReduce)
    ->ArgNames({"devices", "fused"})
    ->ArgsProduct({{1, 2, 4, 8}, {1, 128}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(LargeAllReduce)
    ->ArgNames({"devices", "bytes", "in_place"})
    ->ArgsProduct({{2, 8}, {4 << 10, 1 << 20, 16 << 20}, {0, 1}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

}  // namespace
}  // namespace gangway::device

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // as gangway itself does
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

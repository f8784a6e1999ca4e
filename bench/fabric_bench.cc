// Parcels between two ends of a fabric in one process: shared memory, UCX over TCP, and TLS, by the size of a parcel.
// There and back (the time of one round), and one way with four under way (bytes a second).
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/blocking_counter.h"
#include "gangway/net/cts/authority.h"
#include "gangway/net/grpc/grpc_fabric.h"
#include "gangway/net/ucx/ucx_fabric.h"

namespace gangway::net {
namespace {

enum Plane { kSharedMemory, kTcp, kTls };

std::shared_ptr<Fabric> MakeEnd(Plane plane) {
  static Authority& authority = *new Authority("bench");
  static const Tls& tls = *new Tls(authority.Certificate("bench"));
  if (plane == kTls) return *MakeGrpcFabric("127.0.0.1:0", tls);
  if (plane == kSharedMemory) return *MakeUcxFabric(UcxReach::kHost);
  setenv("UCX_TLS", "tcp,self", /*replace=*/1);
  auto end = *MakeUcxFabric(UcxReach::kNetwork);
  unsetenv("UCX_TLS");
  return end;
}

class Ends {
 public:
  Ends(Plane plane, size_t size) : a_(MakeEnd(plane)), b_(MakeEnd(plane)), from_(size, 'x'), to_(size, ' ') {
    a_->Introduce(PeerId(0));
    b_->Introduce(PeerId(1));
    // Neither finds the other's memory where it lies: what is measured is the network.
    a_->Connect(PeerId(1), "b", plane == kTcp ? FromElsewhere(b_->address()) : b_->address());
    b_->Connect(PeerId(0), "a", plane == kTcp ? FromElsewhere(a_->address()) : a_->address());
  }
  // `count` parcels from a to b at once.
  void There(int count) { Move(*a_, PeerId(1), *b_, PeerId(0), count); }
  void Back() { Move(*b_, PeerId(0), *a_, PeerId(1), 1); }

 private:
  static std::string FromElsewhere(std::string address) {
    address[0] = static_cast<char>(address[0] ^ 1);
    return address;
  }
  void Move(Fabric& sender, PeerId to, Fabric& receiver, PeerId from, int count) {
    absl::BlockingCounter left(2 * count);
    const auto done = [&left](const absl::Status& status) {
      if (!status.ok()) std::abort();
      left.DecrementCount();
    };
    for (int i = 0; i < count; ++i) {
      const ParcelLabel label{++last_, 0, 0, 0};
      receiver.Receive(from, label, to_.data(), to_.size(), done);
      sender.Send(to, label, from_.data(), from_.size(), done);
    }
    left.Wait();
  }

  const std::shared_ptr<Fabric> a_, b_;
  const std::string from_;
  std::string to_;
  uint64_t last_ = 0;
};

void ThereAndBack(benchmark::State& state) {
  Ends ends(static_cast<Plane>(state.range(0)), state.range(1));
  for (auto _ : state) {
    ends.There(1);
    ends.Back();
  }
}

void OneWay(benchmark::State& state) {
  constexpr int kUnderWay = 4;
  Ends ends(static_cast<Plane>(state.range(0)), state.range(1));
  for (auto _ : state) ends.There(kUnderWay);
  state.SetBytesProcessed(state.iterations() * kUnderWay * state.range(1));
}

void Sizes(benchmark::internal::Benchmark* bench, std::initializer_list<int64_t> sizes) {
  for (const int64_t size : sizes) {
    for (const Plane plane : {kSharedMemory, kTcp, kTls}) bench->Args({plane, size});
  }
  bench->ArgNames({"plane", "bytes"})->UseRealTime();
}

BENCHMARK(ThereAndBack)->Apply([](auto* bench) { Sizes(bench, {64, 4096, 65536}); });
BENCHMARK(OneWay)->Apply([](auto* bench) { Sizes(bench, {1 << 20, 16 << 20}); });

}  // namespace
}  // namespace gangway::net

BENCHMARK_MAIN();

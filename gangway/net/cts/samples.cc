#include "gangway/net/cts/samples.h"

#include <memory>
#include <string>

namespace gangway::net {
namespace {

Payload Bytes(std::string text) { return Payload(std::make_shared<const std::string>(std::move(text))); }

}  // namespace

std::vector<Message> SampleMessages() {
  const std::string zeros("a\0b", 3);
  return {
      Hello{3, "worker-7", "cpu", 2, {{"cpu", {0, 1, -2}, 1 << 30}, {"tpu v9", {}, 0}}, zeros, 4},
      ProgramLoaded{ProgramId(4), absl::InvalidArgumentError("instruction %x: no"), std::nullopt},
      ProgramLoaded{ProgramId(5), absl::OkStatus(), ProgramMemory{1, 2, 3, 4, 5, 6}},
      TasksDone{{{TaskId(1), absl::OkStatus(), 70}, {TaskId(uint64_t{1} << 63), absl::InternalError("boom"), 0}}},
      Fetched{RequestId(9), absl::OkStatus(), Bytes(zeros)},
      Fetched{RequestId(9), absl::OkStatus(), Payload(), {~uint64_t{0}, true}},
      Fetched{RequestId(10), absl::NotFoundError("gone"), Payload()},
      Heartbeat{1, 2, 3, {1, 0}, 1 << 20, 5},
      Welcome{16, PeerId(3), 2000},
      Peer{PeerId(4), "worker-4", zeros},
      PeerLost{PeerId(4), absl::UnavailableError("gone")},
      LoadProgram{ProgramId(5),
                  "jit_f",
                  Bytes(std::string(100, 'x')),
                  8,
                  {{0, 3}, {7, 0}},
                  {"a", "", "c"},
                  {PeerId(0), PeerId(2)}},
      UnloadProgram{ProgramId(6)},
      MakeBuffer{BufferId(11), TaskId(12), DType::kBF16, {{Bytes("abcd"), {1, 2}, {0, 1}}, {Bytes(""), {0, 5}, {2}}}},
      ExpectBuffer{BufferId(13), {0, 5}},
      CopyBuffer{BufferId(14),
                 TaskId(15),
                 {{BufferId(16), 1, 2}, {BufferId(17), 0, 0}},
                 {{3, 4}, {}},
                 {},
                 {},
                 DType::kInvalid},
      CopyBuffer{BufferId(14),
                 TaskId(15),
                 {},
                 {},
                 {{BufferId(16), 1, PeerId(2), 5}},
                 {{PeerId(1), 6, {2, 3}, {0, 1}}},
                 DType::kF32},
      PatchBuffer{BufferId(14),
                  TaskId(15),
                  DType::kF32,
                  {{2, {4, 6}}, {0, {}}},
                  {{BufferId(16), 1, {0, 3}, {4, 3}, 0, {0, 2}}},
                  {{BufferId(17), 3, {1}, {2}, PeerId(4), 7}},
                  {{PeerId(5), 8, {4, 2}, {{0, {0, 0}}, {1, {}}}}}},
      Launch{std::make_shared<const Launch::Order>(
                 Launch::Order{TaskId(18), ProgramId(19), {BufferId(20), BufferId(21)}, BufferId(22), {0}, {1, 2}}),
             true},
      Launch{std::make_shared<const Launch::Order>(Launch::Order{TaskId(18), ProgramId(19), {}, BufferId(0), {}, {}}),
             false},
      FetchShard{RequestId(23), BufferId(24), 3},
      FetchShard{RequestId(23), BufferId(24), 3, true},
      FreeBuffers{{BufferId(25), BufferId(26)}},
      PoisonBuffers{{BufferId(27)}, absl::UnavailableError("worker w1 is lost"), TaskId(29)},
      WatchTasks{{TaskId(28)}},
      Mark{RequestId(30)},
      Reached{RequestId(30)},
      Leaving{},
  };
}

}  // namespace gangway::net

// Collectives over several workers against the same in one.
#include "gangway/collective/spanning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/blocking_counter.h"
#include "gangway/collective/gang_keeper.h"
#include "gangway/collective/move.h"
#include "gangway/net/inproc/inproc_fabric.h"
#include "gangway/tensor/literal.h"

namespace gangway::collective {
namespace {

using net::PeerId;
using ::testing::HasSubstr;

// Participants spread over workers; each worker has a gang of its own.
class Workers {
 public:
  Workers(std::vector<int> owner_of, int helpers) {
    int count = 0;
    for (int owner : owner_of) count = std::max(count, owner + 1);
    Launch launch{7, "train_step", {}, {}};
    for (size_t p = 0; p < owner_of.size(); ++p) {
      launch.participants.push_back(absl::StrCat("worker ", owner_of[p], " cpu:", p));
      launch.owners.push_back(PeerId(owner_of[p]));
    }
    for (int w = 0; w < count; ++w) {
      fabrics_.push_back(hub_.Make());
      fabrics_[w]->Introduce(PeerId(w));
    }
    for (int w = 0; w < count; ++w) {
      for (int other = 0; other < count; ++other) {
        if (other != w) fabrics_[w]->Connect(PeerId(other), absl::StrCat("w", other), fabrics_[other]->address());
      }
      keepers_.push_back(std::make_unique<GangKeeper>(
          KeeperOptions{.helper_threads = helpers, .deadline = absl::Seconds(10), .clock = &clock}));
      gangs_.push_back(keepers_[w]->MakeGang(launch, fabrics_[w]));
    }
    owner_of_ = std::move(owner_of);
  }
  Gang& gang(int participant) { return *gangs_[owner_of_[participant]]; }
  net::Fabric& fabric(int worker) { return *fabrics_[worker]; }
  GangKeeper& keeper(int worker) { return *keepers_[worker]; }
  ManualClock clock;

 private:
  std::vector<int> owner_of_;
  net::InprocFabrics hub_;
  std::vector<std::shared_ptr<net::Fabric>> fabrics_;
  std::vector<std::unique_ptr<GangKeeper>> keepers_;
  std::vector<std::shared_ptr<Gang>> gangs_;
};

struct Case {
  Kind kind;
  Reduction reduction;
  DType dtype;
  absl::InlinedVector<int64_t, 6> dims;
};

absl::InlinedVector<int64_t, 6> ResultDims(const Case& c, const Op& op, int64_t size) {
  auto dims = c.dims;
  if (c.kind == Kind::kAllGather) dims[op.dimension] *= size;
  if (c.kind == Kind::kReduceScatter || c.kind == Kind::kAllToAll) dims[op.dimension] /= size;
  if (c.kind == Kind::kAllToAll) dims[op.concat_dimension] *= size;
  return dims;
}

class Memory {
 public:
  explicit Memory(Array like)
      : array(std::move(like)), bytes_(PackedBytes(array.dtype, ElementCount(array)) + 1, '\x33') {
    array.data = bytes_.data();
  }
  // Small whole numbers, exact in every type and under every order of sums.
  void Fill(int seed) {
    const int64_t count = ElementCount(array);
    std::vector<char> values(count * ByteWidth(array.dtype) + 1);
    for (int64_t i = 0; i < count; ++i) {
      StoreDouble(array.dtype, (i * 7 + seed * 3) % 2 + (array.dtype == DType::kPred ? 0 : i % 2),
                  values.data() + i * ByteWidth(array.dtype));
    }
    if (StorageBits(array.dtype) < 8) {
      Pack(array.dtype, array.data, 0, values.data(), count);
    } else {
      std::memcpy(array.data, values.data(), count * ByteWidth(array.dtype));
    }
  }
  std::string view() const { return std::string(bytes_.data(), PackedBytes(array.dtype, ElementCount(array))); }
  Array array;

 private:
  std::vector<char> bytes_;
};

// Runs the case over `owner_of` with groups as given and compares with one worker that has all participants.
void Check(const Case& c, const Op& op, const std::vector<int>& owner_of, int helpers) {
  SCOPED_TRACE(absl::StrCat(KindName(c.kind), " ", ReductionName(c.reduction), " ", DTypeName(c.dtype), " ",
                            absl::StrJoin(c.dims, "x"), " on ", absl::StrJoin(owner_of, "")));
  const int participants = static_cast<int>(owner_of.size());
  const int64_t size = op.groups.empty() ? 1 : static_cast<int64_t>(op.groups[0].size());
  auto shared_op = std::make_shared<const Op>(op);
  std::vector<std::string> results[2];
  for (int spread : {0, 1}) {
    Workers workers(spread ? owner_of : std::vector<int>(participants, 0), helpers);
    std::vector<Memory> operands, outs;
    absl::BlockingCounter left(participants);
    for (int p = 0; p < participants; ++p) {
      operands.emplace_back(Array{c.dtype, c.dims, nullptr}).Fill(p);
      outs.emplace_back(Array{c.dtype, ResultDims(c, op, size), nullptr});
    }
    for (int p = 0; p < participants; ++p) {
      Contribution contribution{{operands[p].array}, {outs[p].array}, [&left](const absl::Status& status) {
                                  EXPECT_EQ(status, absl::OkStatus());
                                  left.DecrementCount();
                                }};
      workers.gang(p).Join(p, shared_op, std::move(contribution));
    }
    left.Wait();
    for (const Memory& out : outs) results[spread].push_back(out.view());
  }
  EXPECT_TRUE(results[0] == results[1]);
}

std::vector<int64_t> Iota(int count) {
  std::vector<int64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Op OpOf(const Case& c) {
  Op op;
  op.key = 3;
  op.kind = c.kind;
  op.reduction = c.reduction;
  return op;
}

TEST(Spanning, EveryKindOverSeveralSpreads) {
  const std::vector<std::vector<int>> spreads = {
      {0, 0, 0, 0, 1, 1, 1, 1}, {0, 1, 0, 1, 0, 1, 0, 1}, {2, 0, 0, 1, 1, 1, 2, 0}, {0, 1, 2, 3, 4, 5, 6, 7}};
  for (const auto& spread : spreads) {
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kPred, DType::kS4, DType::kC64}) {
      for (Kind kind : {Kind::kAllReduce, Kind::kAllGather, Kind::kReduceScatter, Kind::kAllToAll, Kind::kBroadcast}) {
        Case c{kind, Reduction::kSum, dtype, {8, 16}};
        Check(c, *MakeGroupOp(OpOf(c), Iota(8), 8, 8), spread, 0);
        // Along the other dimension, in two groups.
        Op op = OpOf(c);
        op.dimension = 1;
        Check(c, *MakeGroupOp(op, {0, 2, 4, 6, 1, 3, 5, 7}, 4, 8), spread, 0);
      }
      Case c{Kind::kPermute, Reduction::kSum, dtype, {5}};
      Check(c, *MakePermuteOp(OpOf(c), {0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7}, 8), spread, 0);
    }
  }
}

TEST(Spanning, ReductionsOfAllSizes) {
  for (int64_t count : {1, 63, 64, 65, 5000, 100003, 1 << 20}) {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kS8, DType::kF8E4M3FN, DType::kU4}) {
      for (int helpers : {0, 2}) {
        Case c{Kind::kAllReduce, Reduction::kMax, dtype, {count}};
        Check(c, *MakeGroupOp(OpOf(c), Iota(5), 5, 5), {0, 1, 1, 2, 0}, helpers);
      }
    }
  }
}

// Large values before small ones: only partial sums that are not rounded keep the small ones.
TEST(Spanning, NarrowFloatsAreRoundedOnce) {
  Workers workers({0, 0, 1, 1}, 0);
  auto op = std::make_shared<const Op>(*MakeGroupOp(Op(), Iota(4), 4, 4));
  const float values[] = {256, 1, 1, 1};
  std::vector<uint16_t> in(4), out(4);
  int done = 0;
  for (int p = 0; p < 4; ++p) {
    StoreDouble(DType::kBF16, values[p], reinterpret_cast<char*>(&in[p]));
    workers.gang(p).Join(
        p, op, {{{DType::kBF16, {}, &in[p]}}, {{DType::kBF16, {}, &out[p]}}, [&done](const absl::Status& status) {
                  done += status.ok();
                }});
  }
  EXPECT_EQ(done, 4);
  for (uint16_t result : out) EXPECT_EQ(ElementAsDouble(DType::kBF16, reinterpret_cast<char*>(&result)), 260);
}

Contribution Scalar(float* in, float* out, absl::Status* seen) {
  return {{{DType::kF32, {}, in}}, {{DType::kF32, {}, out}}, [seen](const absl::Status& status) { *seen = status; }};
}

TEST(Spanning, AFailureElsewhereEndsTheLaunchHere) {
  Workers workers({0, 1}, 0);
  auto op = std::make_shared<const Op>(*MakeGroupOp(Op(), Iota(2), 2, 2));
  float in = 1, out = 0;
  absl::Status seen, later;
  workers.gang(0).Join(0, op, Scalar(&in, &out, &seen));
  EXPECT_TRUE(seen.ok());
  workers.gang(0).Poison(absl::InternalError("device 1 fell over"));
  EXPECT_EQ(seen.message(), "device 1 fell over");
  workers.gang(0).Join(0, op, Scalar(&in, &out, &later));
  EXPECT_EQ(later, seen);
}

TEST(Spanning, ALostWorkerEndsTheLaunch) {
  Workers workers({0, 1}, 0);
  auto op = std::make_shared<const Op>(*MakeGroupOp(Op(), Iota(2), 2, 2));
  float in = 1, out = 0;
  absl::Status seen;
  workers.gang(0).Join(0, op, Scalar(&in, &out, &seen));
  workers.fabric(0).Disconnect(PeerId(1), absl::UnavailableError("worker w1 is lost"));
  EXPECT_EQ(seen.message(), "program train_step: worker w1 is lost");
  EXPECT_EQ(workers.gang(0).status(), seen);
}

TEST(Spanning, TheDeadlineNamesTheWorker) {
  Workers workers({0, 1}, 0);
  auto op = std::make_shared<const Op>(*MakeGroupOp(Op(), Iota(2), 2, 2));
  float in = 1, out = 0;
  absl::Status seen;
  workers.gang(0).Join(0, op, Scalar(&in, &out, &seen));
  workers.clock.Advance(absl::Seconds(11));
  workers.keeper(0).Sweep();
  EXPECT_THAT(std::string(seen.message()), HasSubstr("waited 11s for worker 1 cpu:1"));
}

}  // namespace
}  // namespace gangway::collective

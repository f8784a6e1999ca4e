// Arrays split in another way, over a cluster in simulated time.
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "gangway/mesh/geometry.h"
#include "gangway/worker/shard_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/sim_cluster.h"

namespace gangway {
namespace {

using controller::ArrayId;
using controller::ArraySpec;
using controller::CopySemantics;
using controller::DeviceId;
using controller::RuntimeController;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kRows = 6, kColumns = 4;

// Three workers of two devices each: 0 1 | 2 3 | 4 5.
class ReshardTest : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    for (const char* name : {"w0", "w1", "w2"}) {
      cluster_.AddWorker(name, {.devices = 2});
      cluster_.RunFor(absl::Milliseconds(10));
    }
    session_ = cluster_.On([](RuntimeController& c) { return c.OpenSession({"test", "", 1}); });
  }

  // The array [6, 4] on these devices, so many shards along rows and along columns.
  static ArraySpec Split(std::vector<int> devices, int rows, int columns) {
    const int copies = static_cast<int>(devices.size()) / rows / columns;
    const auto mesh = std::make_shared<const Mesh>(*Mesh::Make({{"copy", copies}, {"row", rows}, {"column", columns}}));
    ArraySpec spec;
    spec.dtype = DType::kS32;
    spec.dims = {kRows, kColumns};
    spec.sharding = Sharding::Replicated(mesh, 2);
    if (rows > 1) spec.sharding->dims[0].axes = {FullAxis(*mesh, 1)};
    if (columns > 1) spec.sharding->dims[1].axes = {FullAxis(*mesh, 2)};
    for (int device : devices) spec.devices.push_back(DeviceId(device));
    spec.shard_dims = {ShardShape(Shape(spec.dtype, spec.dims), *spec.sharding).dims()};
    return spec;
  }

  // Elements 0, 1, 2, ... of the whole array.
  static std::string BytesOf(const ArraySpec& spec, int position) {
    const auto dims = ShardOf(Shape(spec.dtype, spec.dims), *spec.sharding, position);
    std::vector<int32_t> values;
    for (int64_t i = 0; i < dims[0].extent; ++i) {
      for (int64_t j = 0; j < dims[1].extent; ++j) {
        values.push_back(static_cast<int32_t>((dims[0].offset + i) * kColumns + dims[1].offset + j));
      }
    }
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int32_t));
  }

  ArrayId Make(const ArraySpec& spec) {
    std::vector<controller::HostShard> shards;
    for (int i = 0; i < static_cast<int>(spec.devices.size()); ++i) {
      shards.push_back({std::make_shared<const std::string>(BytesOf(spec, i)), {i}});
    }
    auto made = cluster_.On([&](RuntimeController& c) { return c.MakeArray(session_, spec, shards); });
    EXPECT_TRUE(made.ok()) << made.status();
    return *made;
  }

  absl::StatusOr<ArrayId> Reshard(ArrayId array, const ArraySpec& spec,
                                  CopySemantics semantics = CopySemantics::kShare) {
    return cluster_.On([&](RuntimeController& c) { return c.Reshard(session_, array, spec, semantics); });
  }

  absl::StatusOr<std::string> Read(ArrayId array, int shard) {
    auto bytes = cluster_.On([&](RuntimeController& c) { return c.Fetch(array, shard); });
    cluster_.RunFor(absl::Seconds(1));
    auto read = bytes.Await(absl::InfinitePast(), "a shard");
    if (!read.ok()) return read.status();
    return **read;
  }

  void ExpectHolds(ArrayId array, const ArraySpec& spec) {
    for (int i = 0; i < static_cast<int>(spec.devices.size()); ++i) {
      auto bytes = Read(array, i);
      ASSERT_TRUE(bytes.ok()) << "shard " << i << ": " << bytes.status();
      EXPECT_EQ(*bytes, BytesOf(spec, i)) << "shard " << i;
    }
  }

  SimCluster cluster_{GetParam()};
  controller::SessionId session_;
};

INSTANTIATE_TEST_SUITE_P(Seeds, ReshardTest, testing::Range<uint64_t>(0, 10));

TEST_P(ReshardTest, BetweenDevicesOfAnyNumber) {
  const std::vector<ArraySpec> specs = {
      Split({0, 1, 2, 3, 4, 5}, 6, 1), Split({5, 4}, 1, 2),       Split({0, 1, 2, 3, 4, 5}, 1, 1),
      Split({3, 0, 5, 2}, 2, 2),       Split({1}, 1, 1),          Split({5, 3, 1, 0, 2, 4}, 3, 2),
      Split({2, 3, 4, 5}, 1, 2),       Split({0, 1, 4, 5}, 2, 1),
  };
  for (const ArraySpec& from : specs) {
    const ArrayId array = Make(from);
    for (const ArraySpec& to : specs) {
      auto resharded = Reshard(array, to);
      ASSERT_TRUE(resharded.ok()) << resharded.status();
      ExpectHolds(*resharded, to);
    }
  }
}

// What pads a shard must not be what others left in memory.
TEST_P(ReshardTest, PaddingIsZero) {
  const ArrayId array = Make(Split({0, 1, 2, 3, 4, 5}, 6, 1));
  const ArraySpec padded = Split({0, 2, 3, 5}, 4, 1);  // two rows each, of which the last has none
  constexpr size_t kShard = 2 * kColumns * sizeof(int32_t);
  std::vector<worker::ShardBytes> used;
  for (int i = 0; i < 1000; ++i) {
    used.push_back(*worker::NewShardBytes(kShard));
    std::memset(used.back().get(), 0xAB, kShard);
  }
  used.clear();
  const ArrayId resharded = *Reshard(array, padded);
  EXPECT_EQ(*Read(resharded, 3), std::string(kShard, '\0'));
  EXPECT_EQ(Read(resharded, 2)->substr(0, kShard), BytesOf(padded, 2).substr(0, kShard));
}

TEST_P(ReshardTest, OfWhatIsStillBeingMade) {
  const ArraySpec rows = Split({0, 1, 2, 3, 4, 5}, 6, 1), columns = Split({4, 5}, 1, 2), blocks = Split({0, 2}, 2, 1);
  // Nothing is waited for between these.
  const ArrayId last = cluster_.On([&](RuntimeController& c) {
    std::vector<controller::HostShard> shards;
    for (int i = 0; i < 6; ++i) shards.push_back({std::make_shared<const std::string>(BytesOf(rows, i)), {i}});
    const ArrayId first = *c.MakeArray(session_, rows, shards);
    const ArrayId second = *c.Reshard(session_, first, columns, CopySemantics::kDonate);
    const ArrayId third = *c.Reshard(session_, second, blocks, CopySemantics::kDonate);
    EXPECT_TRUE(*c.IsDeleted(first));
    EXPECT_TRUE(*c.IsDeleted(second));
    return third;
  });
  ExpectHolds(last, blocks);
  cluster_.On([&](RuntimeController& c) {
    c.CloseSession(session_);
    return 0;
  });
  cluster_.RunFor(absl::Seconds(1));
  EXPECT_EQ(cluster_.StoreBuffers(), 0);
}

TEST_P(ReshardTest, AShardThatStaysIsShared) {
  const ArrayId array = Make(Split({0, 1}, 1, 1));
  auto half = Reshard(array, Split({1}, 1, 1));
  ASSERT_TRUE(half.ok());
  EXPECT_TRUE(cluster_.On([&](RuntimeController& c) { return c.Delete(array); }).ok());
  EXPECT_THAT(Read(*half, 0).status().message(), HasSubstr("deleted"));
}

TEST_P(ReshardTest, AFailedArrayFailsWhatIsMadeOfIt) {
  const ArraySpec rows = Split({0, 1}, 2, 1), columns = Split({2, 3}, 1, 2);
  const ArrayId failed = cluster_.On(
      [&](RuntimeController& c) { return *c.MakeErrorArray(session_, rows, absl::AbortedError("no sums")); });
  auto resharded = Reshard(failed, columns);
  ASSERT_TRUE(resharded.ok());
  EXPECT_THAT(Read(*resharded, 0).status().message(), HasSubstr("no sums"));
}

TEST_P(ReshardTest, OnLostWorkersFails) {
  const ArrayId array = Make(Split({0, 2}, 2, 1));
  cluster_.RunFor(absl::Seconds(1));
  cluster_.Kill("w1");
  cluster_.RunFor(absl::Minutes(1));
  auto resharded = Reshard(array, Split({4, 5}, 1, 2));
  EXPECT_FALSE(resharded.ok() && Read(*resharded, 0).ok());
}

}  // namespace
}  // namespace gangway

// Every sharding over small meshes, converted and read back, places data on the same devices.
#include "gangway/mesh/sharding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "gangway/mesh/axis_solver.h"
#include "gangway/mesh/geometry.h"
#include "gangway/mesh/hlo_sharding.h"

namespace gangway {
namespace {

MeshRef MakeMesh(std::vector<MeshAxis> axes, std::vector<int64_t> ids = {}) {
  return std::make_shared<const Mesh>(*Mesh::Make(axes, ids));
}

std::vector<MeshRef> SmallMeshes() {
  return {MakeMesh({{"x", 8}}),
          MakeMesh({{"x", 4}, {"y", 2}}),
          MakeMesh({{"x", 2}, {"y", 2}, {"z", 2}}),
          MakeMesh({{"x", 3}, {"y", 2}}),
          MakeMesh({{"x", 6}}),
          MakeMesh({{"x", 1}, {"y", 4}}),
          MakeMesh({{"x", 2}, {"y", 2}}, {3, 0, 1, 2}),
          MakeMesh({{"x", 4}, {"y", 2}}, {0, 2, 4, 6, 1, 3, 5, 7})};
}

constexpr int kRank = 2;

// Puts every part of the mesh on a dimension (in every order), or into the manual, unreduced or unused axes.
void ForEachSharding(const MeshRef& mesh, const std::function<void(const Sharding&)>& visit) {
  for (AxisList parts : PrimeParts(*mesh)) {
    std::sort(parts.begin(), parts.end());
    do {
      std::vector<int> place(parts.size(), 0);  // dimension, or kRank + {0 unused, 1 manual, 2 unreduced}
      while (true) {
        Sharding sharding = Sharding::Replicated(mesh, kRank);
        for (size_t i = 0; i < parts.size(); ++i) {
          if (place[i] < kRank) sharding.dims[place[i]].axes.push_back(parts[i]);
          if (place[i] == kRank + 1) sharding.manual.push_back(parts[i]);
          if (place[i] == kRank + 2) sharding.unreduced.push_back(parts[i]);
        }
        for (DimSharding& dim : sharding.dims) MergeSubAxes(&dim.axes);
        visit(sharding);
        size_t i = 0;
        while (i < place.size() && ++place[i] == kRank + 3) place[i++] = 0;
        if (i == place.size()) break;
      }
    } while (std::next_permutation(parts.begin(), parts.end()));
  }
}

// Tile coordinates of every device, from the sharding.
std::vector<std::vector<int64_t>> TilesByDevice(const Sharding& sharding) {
  std::vector<std::vector<int64_t>> tiles(sharding.mesh->size());
  for (int64_t p = 0; p < sharding.mesh->size(); ++p) {
    for (const DimSharding& dim : sharding.dims) {
      tiles[sharding.mesh->DeviceAt(p)].push_back(CoordinateOf(*sharding.mesh, p, dim.axes));
    }
  }
  return tiles;
}

// The same from a tile assignment, read as XLA defines it.
std::vector<std::vector<int64_t>> TilesByDevice(const TileAssignment& tiles, int64_t rank, int64_t num_devices) {
  std::vector<std::vector<int64_t>> by_device(num_devices, std::vector<int64_t>(rank, 0));
  const std::vector<int64_t> devices = tiles.DeviceList();
  for (size_t place = 0; place < devices.size(); ++place) {
    int64_t left = static_cast<int64_t>(place);
    for (size_t i = tiles.dims.size(); i-- > 0;) {
      if (static_cast<int64_t>(i) < rank) by_device[devices[place]][i] = left % tiles.dims[i];
      left /= tiles.dims[i];
    }
  }
  return by_device;
}

TEST(Sharding, TileAssignmentsPlaceTheSameTilesAndConvertBack) {
  const Shape shape(DType::kF32, {24, 10});
  for (const MeshRef& mesh : SmallMeshes()) {
    ForEachSharding(mesh, [&](const Sharding& sharding) {
      ASSERT_TRUE(ValidateSharding(sharding, shape).ok()) << sharding.ToString();
      const TileAssignment tiles = ToTileAssignment(sharding);
      ASSERT_EQ(TilesByDevice(tiles, kRank, mesh->size()), TilesByDevice(sharding))
          << sharding.ToString() << " " << tiles.ToString();

      auto parsed = ParseTileAssignment(tiles.ToString());
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      ASSERT_EQ(*parsed, tiles) << tiles.ToString();

      for (const MeshRef& target : {mesh, MeshRef()}) {
        auto back = FromTileAssignment(tiles, kRank, mesh->size(), target);
        ASSERT_TRUE(back.ok()) << back.status();
        ASSERT_TRUE(ValidateSharding(*back, shape).ok()) << back->ToString();
        ASSERT_TRUE(SamePlacement(sharding, *back, shape)) << sharding.ToString() << " " << back->ToString();
        ASSERT_TRUE(target == nullptr || SameMesh(back->mesh, mesh)) << sharding.ToString() << " " << back->ToString();
      }
    });
  }
}

TEST(Sharding, TextsRoundTrip) {
  const int64_t ranks[] = {kRank, kRank};
  for (const MeshRef& mesh : SmallMeshes()) {
    const MeshTable meshes = {{"mesh", mesh}};
    ForEachSharding(mesh, [&](Sharding sharding) {
      sharding.dims[1].open = true;
      sharding.dims[1].priority = 2;
      auto named = ParseHloShardings(PrintHloShardings({sharding, sharding}, true), ranks, mesh->size(), nullptr);
      ASSERT_TRUE(named.ok()) << named.status();
      ASSERT_EQ(named->back(), sharding) << sharding.ToString();
      if (!sharding.manual.empty()) return;
      auto sdy = ParseSdySharding(PrintSdySharding(sharding, "mesh"), meshes);
      ASSERT_TRUE(sdy.ok()) << sdy.status();
      ASSERT_EQ(*sdy, sharding) << sharding.ToString();
    });
  }
}

TEST(Sharding, OverAnotherMeshOfTheSameDevices) {
  const MeshRef fine = MakeMesh({{"a", 2}, {"b", 2}, {"c", 2}}), coarse = MakeMesh({{"x", 8}});
  const MeshRef permuted = MakeMesh({{"x", 2}, {"y", 4}}, {0, 1, 2, 4, 3, 5, 6, 7});
  const Shape shape(DType::kF32, {24, 10});
  ForEachSharding(fine, [&](const Sharding& sharding) {
    auto over = OverMesh(sharding, coarse);
    ASSERT_TRUE(over.has_value()) << sharding.ToString();
    ASSERT_TRUE(SamePlacement(sharding, *over, shape)) << sharding.ToString() << " " << over->ToString();
    auto back = OverMesh(*over, fine);
    ASSERT_TRUE(back.has_value());
    ASSERT_EQ(ToTileAssignment(*back), ToTileAssignment(sharding)) << back->ToString();
  });
  Sharding split = Sharding::Replicated(permuted, 1);
  split.dims[0].axes = {FullAxis(*permuted, 0)};
  EXPECT_FALSE(OverMesh(split, fine).has_value());
}

TEST(Sharding, SamplesOfXla) {
  struct Sample {
    MeshRef mesh;
    const char* sdy;
    const char* hlo;
  };
  const MeshRef two = MakeMesh({{"x", 2}, {"y", 2}}), four = MakeMesh({{"x", 4}, {"y", 2}});
  for (const Sample& sample : {
           Sample{two, R"([{"x"}, {"y"}])", "{devices=[2,2]<=[4]}"},
           Sample{two, R"([{"y"}, {}])", "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"},
           Sample{two, R"([{"x"}, {?}])", "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"},
           Sample{two, R"([{}, {}])", "{replicated}"},
           Sample{two, R"([{"y", "x"}, {}])", "{devices=[4,1]<=[2,2]T(1,0)}"},
           Sample{four, R"([{"x":(1)2,?}, {"y"}], replicated={"x":(2)2})",
                  "{devices=[2,2,2]<=[2,2,2]T(0,2,1) last_tile_dim_replicate}"},
           Sample{four, R"([{}, {}], unreduced={"x"})",
                  "{devices=[1,1,4,2]<=[8] last_tile_dims={unreduced, replicated}}"},
       }) {
    auto sharding = ParseSdySharding(std::string("#sdy.sharding<@mesh, ") + sample.sdy + ">", {{"mesh", sample.mesh}});
    ASSERT_TRUE(sharding.ok()) << sharding.status();
    EXPECT_EQ(ToTileAssignment(*sharding).ToString(), sample.hlo);
  }
}

TEST(Sharding, AcceptsWhatXlaAccepts) {
  const int64_t rank2[] = {2}, rank1[] = {1}, two[] = {1, 1};
  for (const char* text :
       {"{replicated}", "{manual}", "{devices=[2,2]0,2,1,3}", "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
        "{mesh['x'=2,'y'=2], [{'x'}, {?}]}", "{mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)), [{'x'}, {}]}",
        "{devices=[2,2]<=[4] metadata={op_type=\"a}\" op_name=\"b\"}}", "{maximal device=3}", "{unknown}"}) {
    EXPECT_TRUE(ParseHloShardings(text, rank2, 4, nullptr).ok()) << text;
  }
  EXPECT_TRUE(ParseHloShardings("{devices=[2]<=[2] shard_as 1}", rank1, 2, nullptr).ok());
  EXPECT_TRUE(ParseHloShardings("{{replicated}, {manual}}", two, 2, nullptr).ok());
  EXPECT_TRUE(ParseHloShardings("{}", {}, 2, nullptr).ok());
  auto manual = ParseHloShardings("{devices=[2,1,2,2]<=[8] last_tile_dims={manual, replicated}}", rank2, 8, nullptr);
  ASSERT_TRUE(manual.ok()) << manual.status();
  EXPECT_EQ(PrintHloShardings(*manual, false), "{devices=[2,1,2,2]<=[8] last_tile_dims={manual, replicated}}");
}

TEST(Sharding, RefusesMalformedText) {
  const int64_t rank1[] = {1};
  for (const char* text :
       {"", "{", "{devices=[2]}", "{devices=[3]<=[3]}", "{devices=[2]0,0}", "{devices=[2]0,5}", "{devices=[2,1]<=[2]}",
        "{devices=[2]<=[2]T(1)}", "{devices=[2]<=[2,1]T(0)}", "{devices=[0]<=[2]}", "{devices=[2]<=[99999999999]}",
        "{replicated} x", "{{replicated}, {replicated}}", "{mesh['x'=2], [{'y'}]}", "{mesh['x'=2], [{'x'}, {'x'}]}",
        "{mesh['x'=2], [{'x':(1)3}]}", "{mesh['x'=2], [{'x':(0)2}]}", "{maximal device=-1}", "{metadata={}"}) {
    EXPECT_FALSE(ParseHloShardings(text, rank1, 2, nullptr).ok()) << text;
  }
}

// Whatever a file or a client sends as a text is read or refused.
TEST(Sharding, MutatedTextsNeverCrash) {
  const std::string texts[] = {
      "{devices=[2,1,2,2]<=[4,2]T(1,0) last_tile_dims={manual, replicated}}",
      "{devices=[2,2]0,2,1,3 last_tile_dim_replicate metadata={op_name=\"a\"}}", "{{maximal device=3}, {replicated}}",
      "{mesh['x'=4,'y'=2], device_ids=([2,4]T(1,0)), [{'x':(1)2, ?}p1, {}], replicated={'y'}}"};
  const int64_t ranks[] = {2};
  std::mt19937 random(1);
  const std::string alphabet = "{}[]()<=,:'x?T0123456789 -";
  for (int round = 0; round < 20000; ++round) {
    std::string text = texts[random() % 4];
    for (uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      if (random() % 3 == 0) {
        text.erase(at, 1);
      } else {
        text[at] = alphabet[random() % alphabet.size()];
      }
    }
    auto shardings = ParseHloShardings(text, ranks, 8, nullptr);
    if (!shardings.ok()) continue;
    const std::string printed = PrintHloShardings(*shardings, false);
    auto again = ParseHloShardings(printed, ranks, 8, nullptr);
    ASSERT_TRUE(again.ok()) << text << " " << printed << " " << again.status();
  }
}

TEST(Sharding, SdyTexts) {
  auto meshes = ParseSdyMeshes(R"({mesh = #sdy.mesh<["x"=2, "y"=2]>, one = #sdy.mesh<[], device_ids=[3]>})");
  ASSERT_TRUE(meshes.ok()) << meshes.status();
  EXPECT_TRUE(meshes->at("one")->IsMaximal());
  auto values = ParseSdyShardingPerValue(R"(#sdy.sharding_per_value<[<@mesh, [{"x"}, {}p1]>, <@one, []>]>)", *meshes);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->front().dims[1].priority, 1);
  auto manual = ParseSdyManualAxes(R"(#sdy<manual_axes{"x", "y"}>)", *meshes->at("mesh"));
  ASSERT_TRUE(manual.ok()) << manual.status();
  EXPECT_EQ(manual->size(), 2u);
  EXPECT_TRUE(ParseSdySharding(R"(#sdy.sharding<mesh<["a"=4]>, [{"a":(2)2, ?}]>)", {}).ok());
  EXPECT_FALSE(ParseSdySharding(R"(#sdy.sharding<@other, [{"a"}]>)", *meshes).ok());
}

}  // namespace
}  // namespace gangway

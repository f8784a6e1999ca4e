// Completion is linear in the module and does not know how many devices there are.
#include <gtest/gtest.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "gangway/hlo/builder.h"
#include "gangway/propagate/propagate.h"

namespace gangway::propagate {
namespace {

// Layers of two products and some elementwise operations; 10 instructions a layer.
std::unique_ptr<hlo::Module> Chain(int layers, int64_t data, int64_t model) {
  auto module = std::make_unique<hlo::Module>("chain");
  module->config().num_partitions = data * model;
  module->config().propagate_to_parameters = {true};
  module->config().propagate_to_output = {true};
  const MeshRef mesh = std::make_shared<const Mesh>(*Mesh::Make({{"data", data}, {"model", model}}));
  module->meshes().emplace_back("mesh", mesh);
  hlo::Computation* entry = module->AddComputation("main");
  module->set_entry(entry);
  hlo::Builder b(entry);
  auto parameter = [&](int64_t number, DimVector dims, std::vector<AxisList> axes) {
    hlo::Instruction* p = b.Parameter(number, Shape(DType::kF32, dims), "");
    Sharding sharding = Sharding::Replicated(mesh, static_cast<int64_t>(dims.size()));
    for (size_t i = 0; i < axes.size(); ++i) sharding.dims[i].axes = axes[i];
    p->set_shardings(Shardings{sharding});
    return p;
  };
  const AxisRef on_data = FullAxis(*mesh, 0), on_model = FullAxis(*mesh, 1);
  hlo::Instruction* x = parameter(0, {4096, 1024}, {{on_data}, {}});
  hlo::Instruction* up = parameter(1, {1024, 4096}, {{on_data}, {on_model}});
  hlo::Instruction* down = parameter(2, {4096, 1024}, {{on_model}, {on_data}});
  const hlo::DotAttr product{.lhs_contracting = {1}, .rhs_contracting = {0}};
  for (int layer = 0; layer < layers; ++layer) {
    hlo::Instruction* h = b.Dot(x, up, product, DType::kF32);
    for (int i = 0; i < 6; ++i) h = b.Unary(hlo::Opcode::kTanh, h);
    x = b.Binary(hlo::Opcode::kAdd, x, b.Dot(h, down, product, DType::kF32));
  }
  entry->set_root(b.Unary(hlo::Opcode::kNegate, x));
  return module;
}

double Seconds(int layers, int64_t data, int64_t model) {
  auto module = Chain(layers, data, model);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(Propagate(*module, {}, nullptr).ok());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Sharding& root = module->entry()->root()->sharding();
  EXPECT_EQ(root.dims[0].axes, (AxisList{FullAxis(*root.mesh, 0)}));
  EXPECT_TRUE(root.dims[1].axes.empty());
  return seconds;
}

TEST(Scale, TenThousandInstructionsAndManyDevices) {
  const double few = Seconds(1000, 4, 2), many = Seconds(1000, 512, 8), longer = Seconds(4000, 4, 2);
  RecordProperty("seconds_9000_instructions_8_devices", absl::StrCat(few));
  RecordProperty("seconds_9000_instructions_4096_devices", absl::StrCat(many));
  RecordProperty("seconds_36000_instructions_8_devices", absl::StrCat(longer));
  printf("9,000 instructions: %.3f s on 8 devices, %.3f s on 4,096; 36,000: %.3f s\n", few, many, longer);
  EXPECT_LT(few, 2.0);
  EXPECT_LT(many, 2.0);
}

}  // namespace
}  // namespace gangway::propagate

#include "tests/runtime/hand_made.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/base/status.h"
#include "gangway/hlo/proto.h"
#include "gangway/hlo/text.h"

namespace gangway {

std::string AllReduceAddOne(int devices) {
  std::vector<int> group;
  for (int i = 0; i < devices; ++i) group.push_back(i);
  const std::string reduced =
      devices == 1 ? "%sum = f32[] copy(%x)"
                   : absl::StrCat(
                         "%sum = f32[] custom-call(%x), custom_call_target=\"gangway.all_reduce\", "
                         "operand_layout_constraints={f32[]}, custom_call_has_side_effect=true, "
                         "api_version=API_VERSION_TYPED_FFI, backend_config={key = 0 : i64, kind = \"sum\", "
                         "groups = array<i64: ",
                         absl::StrJoin(group, ", "), ">, group_size = ", devices, " : i64}");
  return absl::StrCat("HloModule all_reduce_add_one, entry_computation_layout={(f32[])->f32[]}\n\n",
                      "ENTRY %main (x: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n  ", reduced,
                      "\n  %one = f32[] constant(1)\n  ROOT %y = f32[] add(%sum, %one)\n}\n");
}

absl::StatusOr<compile::CompiledProgram> CompileHloText(const std::string& text,
                                                        const compile::CompileOptions& options) {
  GW_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, hlo::ParseModule(text));
  compile::CompiledProgram program;
  program.name = module->name();
  program.num_partitions = options.num_partitions;
  GW_ASSIGN_OR_RETURN(program.executable, hlo::SerializeModule(*module));
  GW_ASSIGN_OR_RETURN(Mesh mesh, Mesh::Make({{"x", options.num_partitions}}));
  auto shared = std::make_shared<const Mesh>(std::move(mesh));
  auto add = [&](std::vector<compile::ValueInfo>* to, const Shape& shape) {
    for (const Shape& leaf : Leaves(shape)) {
      to->push_back({WithoutLayout(leaf), Sharding::Replicated(shared, leaf.rank()), "", {}});
    }
  };
  const hlo::Computation& entry = *module->entry();
  for (const hlo::Instruction* parameter : entry.parameters()) add(&program.parameters, parameter->shape());
  add(&program.outputs, entry.root()->shape());
  program.donation.assign(program.parameters.size(), compile::Donation::kNone);
  if (text.find("gangway.all_reduce") != std::string::npos) program.stats.collectives.push_back({"all-reduce", {}});
  program.per_device = std::move(module);
  return program;
}

}  // namespace gangway

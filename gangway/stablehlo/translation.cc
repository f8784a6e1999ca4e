#include "gangway/stablehlo/translation.h"

#include <algorithm>
#include <utility>

#include "gangway/stablehlo/entry_function.h"
#include "gangway/stablehlo/location.h"
#include "gangway/stablehlo/op_context.h"
#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {
namespace {

using bytecode::Block;
using bytecode::Operation;
using bytecode::ValueId;

// Blocks within blocks, by regions or by inlined calls; bounds our own recursion.
constexpr int kMaxDepth = 200;
// What a program may grow to: this many instructions and tuple elements, and so many for each operation of the file.
constexpr int64_t kBudgetBase = 200'000;
constexpr int64_t kBudgetPerOperation = 300;

bool IsTerminator(absl::string_view name) { return name == "vhlo.return_v1" || name == "sdy.return"; }

void AddUses(const Operation& op, uint32_t first_inner, std::vector<ValueId>& uses,
             absl::flat_hash_set<ValueId>& seen) {
  for (ValueId operand : op.operands) {
    if (operand.value() < first_inner && seen.insert(operand).second) uses.push_back(operand);
  }
  for (const bytecode::Region& region : op.regions) {
    for (const Block& block : region.blocks) {
      for (const Operation& inner : block.operations) AddUses(inner, first_inner, uses, seen);
    }
  }
}

absl::Status CheckCount(absl::string_view what, int expected, size_t found) {
  if (expected == kAny || static_cast<size_t>(expected) == found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("expected ", expected, " ", what, ", found ", found));
}

absl::Status ConvertOperation(Translation& program, const OpView& view, const Scope& scope) {
  const OpRow* row = FindRow(view.name());
  if (row == nullptr) return absl::UnimplementedError("no way to express this operation");
  if (view.op().successor_count != 0) return absl::UnimplementedError("branches between blocks are not supported");
  GW_RETURN_IF_ERROR(CheckCount("operands", row->operands, view.op().operands.size()));
  GW_RETURN_IF_ERROR(CheckCount("results", row->results, view.op().results.count));
  GW_RETURN_IF_ERROR(CheckCount("regions", row->regions, view.op().regions.size()));
  GW_ASSIGN_OR_RETURN(OpContext context, OpContext::Make(program, scope, view));
  return row->convert(context);
}

// "vhlo.sort_v1 at byte 812 (jit(f)/sort)".
std::string DescribeWithLocation(const OpView& view) {
  const hlo::OpMetadata metadata = ReadLocation(view.artifact().entries(), view.op().location);
  if (metadata.op_name.empty()) return view.Describe();
  return absl::StrCat(view.Describe(), " (", metadata.op_name.substr(0, 200), ")");
}

}  // namespace

Translation::Translation(const bytecode::Artifact& artifact, hlo::Module* module)
    : artifact_(artifact),
      module_(*module),
      meshes_(artifact.entries()),
      values_(artifact.tree().value_types.size(), nullptr),
      used_(artifact.tree().value_types.size(), false),
      budget_(kBudgetBase + kBudgetPerOperation * int64_t{artifact.tree().operation_count}) {}

int64_t Translation::num_devices() const { return module_.config().num_partitions * module_.config().num_replicas; }

absl::StatusOr<Shape> Translation::ShapeOf(ValueId value) const {
  return ShapeOfType(entries(), artifact_.value_type(value));
}

absl::Status Translation::Run() {
  const Operation& top = artifact_.tree().module;
  GW_ASSIGN_OR_RETURN(OpView module, OpView::Make(artifact_, top));
  if (module.name() != "builtin.module") return absl::InvalidArgumentError("the top-level operation is no module");
  if (top.regions.size() != 1) return absl::InvalidArgumentError("the module has not one region");
  GW_ASSIGN_OR_RETURN(const Block* block, SingleBlock(top.regions.front()));
  GW_RETURN_IF_ERROR_WITH(ReadModuleAttributes(module), module.Describe());
  GW_RETURN_IF_ERROR(CollectTopLevel(*block));
  CollectConstantsAndUses(top);
  module_.meshes() = meshes_.meshes();
  if (!meshes_.meshes().empty()) {
    default_mesh_ = meshes_.meshes().front().second;
  } else if (num_devices() > 1) {
    // A program annotated without a mesh (GSPMD form): one axis, whose parts the shardings name.
    GW_ASSIGN_OR_RETURN(Mesh mesh, Mesh::Make({{"_0", num_devices()}}));
    default_mesh_ = std::make_shared<const Mesh>(std::move(mesh));
    module_.meshes().emplace_back("_mesh", default_mesh_);
  }
  GW_ASSIGN_OR_RETURN(std::string name, EntryName());
  GW_ASSIGN_OR_RETURN(const Operation* entry, FindFunction(name));
  GW_RETURN_IF_ERROR_WITH(ConvertEntryFunction(*this, *entry), absl::StrCat("function ", name));
  return absl::OkStatus();
}

absl::Status Translation::ReadModuleAttributes(const OpView& module) {
  if (module.Find("sym_name").has_value()) {
    GW_ASSIGN_OR_RETURN(absl::string_view name, module.String("sym_name"));
    if (!name.empty()) module_.set_name(std::string(name));
  }
  hlo::ModuleConfig& config = module_.config();
  for (auto [attribute, count] : {std::make_pair("mhlo.num_partitions", &config.num_partitions),
                                  std::make_pair("mhlo.num_replicas", &config.num_replicas)}) {
    if (!module.Find(attribute).has_value()) continue;
    GW_ASSIGN_OR_RETURN(*count, module.Int(attribute));
    if (*count < 1 || *count > (1 << 24)) {
      return absl::InvalidArgumentError(absl::StrCat(OpView::Context(attribute), ": ", *count));
    }
  }
  if (config.num_partitions * config.num_replicas > (1 << 24)) return absl::InvalidArgumentError("too many devices");
  GW_ASSIGN_OR_RETURN(OpView::Dictionary dictionary, module.DictionaryOrEmpty("mhlo.frontend_attributes"));
  GW_ASSIGN_OR_RETURN_WITH(auto entries, StringEntries(artifact_.entries(), dictionary),
                           OpView::Context("mhlo.frontend_attributes"));
  for (auto& [key, value] : entries) {
    if (key == "xla.sdy.meshes") {
      GW_ASSIGN_OR_RETURN_WITH(MeshTable meshes, ParseSdyMeshes(value), key);
      GW_RETURN_IF_ERROR(meshes_.AddMeshes(meshes));
    } else {
      config.frontend_attributes.emplace(key, value);
    }
  }
  return absl::OkStatus();
}

absl::Status Translation::CollectTopLevel(const Block& block) {
  for (const Operation& op : block.operations) {
    GW_ASSIGN_OR_RETURN(OpView view, OpView::Make(artifact_, op));
    if (view.name() == "vhlo.func_v1") {
      GW_ASSIGN_OR_RETURN_WITH(absl::string_view name, view.String("sym_name"), view.Describe());
      if (!functions_.emplace(std::string(name), &op).second) {
        return absl::InvalidArgumentError(absl::StrCat(view.Describe(), ": function ", name, " is defined twice"));
      }
    } else if (view.name() == "sdy.mesh") {
      // The round-trip form may name a mesh twice, as an attribute and as an op.
      absl::StatusOr<absl::string_view> symbol = view.String("sym_name");
      if (symbol.ok() && meshes_.Find(*symbol).ok()) continue;
      GW_RETURN_IF_ERROR_WITH(meshes_.AddMesh(view), view.Describe());
    } else {
      return absl::UnimplementedError(absl::StrCat(view.Describe(), ": has no place at the top of a module"));
    }
  }
  return absl::OkStatus();
}

// Last operation first, so that the uses of a cast's result are known when the cast is seen: an unused cast is no use.
void Translation::CollectConstantsAndUses(const Operation& op) {
  const std::string name = op.name.ToString();
  if (op.results.count == 1 && name == "vhlo.constant_v1") constants_.emplace(op.results[0], &op);
  for (const bytecode::Region& region : op.regions) {
    for (const Block& block : region.blocks) {
      for (auto inner = block.operations.rbegin(); inner != block.operations.rend(); ++inner) {
        CollectConstantsAndUses(*inner);
      }
    }
  }
  const bool is_cast = name == "builtin.unrealized_conversion_cast" && op.results.count == op.operands.size();
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (!is_cast || IsUsed(op.results[static_cast<uint32_t>(i)])) used_[op.operands[i].value()] = true;
  }
}

const Operation* Translation::ConstantDefining(ValueId value) const {
  auto it = constants_.find(value);
  return it == constants_.end() ? nullptr : it->second;
}

absl::StatusOr<std::string> Translation::EntryName() const {
  if (functions_.contains("main")) return std::string("main");
  if (functions_.size() == 1) return functions_.begin()->first;
  return absl::InvalidArgumentError("the module has no function main");
}

absl::StatusOr<const Operation*> Translation::FindFunction(absl::string_view name) const {
  auto it = functions_.find(std::string(name));
  if (it == functions_.end()) return absl::InvalidArgumentError(absl::StrCat("function ", name, " does not exist"));
  return it->second;
}

absl::StatusOr<const Block*> Translation::SingleBlock(const bytecode::Region& region) {
  if (region.blocks.size() == 1) return &region.blocks.front();
  return absl::InvalidArgumentError(absl::StrCat("expected a region of one block, found ", region.blocks.size()));
}

absl::Status Translation::CheckBudget() const {
  if (spent_ <= budget_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("calls and regions of the program expand to more than ", budget_, " instructions"));
}

absl::StatusOr<std::vector<hlo::Instruction*>> Translation::ConvertBlock(const Block& block, const Scope& scope) {
  if (scope.depth > kMaxDepth) {
    return absl::InvalidArgumentError(absl::StrCat("regions and calls nested deeper than ", kMaxDepth));
  }
  for (const Operation& op : block.operations) {
    GW_ASSIGN_OR_RETURN(OpView view, OpView::Make(artifact_, op));
    if (IsTerminator(view.name())) {
      if (&op != &block.operations.back()) {
        return absl::InvalidArgumentError(absl::StrCat(view.Describe(), ": is not the last operation of its block"));
      }
      std::vector<hlo::Instruction*> results;
      for (ValueId operand : op.operands) {
        if (Find(operand) == nullptr) {
          return absl::InvalidArgumentError(absl::StrCat(view.Describe(), ": returns an undefined value"));
        }
        results.push_back(Find(operand));
      }
      return results;
    }
    GW_RETURN_IF_ERROR_WITH(ConvertOperation(*this, view, scope), DescribeWithLocation(view));
    GW_RETURN_IF_ERROR(CheckBudget());
  }
  return absl::InvalidArgumentError("a block ends without a return");
}

Captures Translation::CapturesBy(absl::Span<const bytecode::Region> regions, uint32_t first_inner_value) const {
  std::vector<ValueId> uses;
  absl::flat_hash_set<ValueId> seen;
  for (const bytecode::Region& region : regions) {
    for (const Block& block : region.blocks) {
      for (const Operation& inner : block.operations) AddUses(inner, first_inner_value, uses, seen);
    }
  }
  Captures captures;
  for (ValueId value : uses) {
    (constants_.contains(value) ? captures.constants : captures.values).push_back(value);
  }
  return captures;
}

const Captures& Translation::CapturesOf(const Operation& op) {
  std::unique_ptr<Captures>& captures = captures_[&op];
  if (captures == nullptr) captures = std::make_unique<Captures>(CapturesBy(op.regions, op.first_inner_value));
  return *captures;
}

const Captures& Translation::CapturesOf(const Operation& op, size_t region) {
  std::unique_ptr<Captures>& captures = captures_of_regions_[&op.regions[region]];
  if (captures == nullptr) {
    captures =
        std::make_unique<Captures>(CapturesBy(absl::MakeConstSpan(&op.regions[region], 1), op.first_inner_value));
  }
  return *captures;
}

absl::StatusOr<hlo::Instruction*> Translation::EmitConstant(const Operation& op, const Scope& scope) {
  GW_ASSIGN_OR_RETURN(OpView view, OpView::Make(artifact_, op));
  GW_ASSIGN_OR_RETURN(bytecode::AttributeId id, view.Attribute("value"));
  std::shared_ptr<const DenseLiteral>& dense = literals_[id];
  if (dense == nullptr) {
    GW_ASSIGN_OR_RETURN(const bytecode::DenseAttr* attr, view.As<bytecode::DenseAttr>("value"));
    GW_ASSIGN_OR_RETURN_WITH(DenseLiteral read, ReadLiteral(entries(), *attr), OpView::Context("value"));
    dense = std::make_shared<const DenseLiteral>(std::move(read));
  }
  GW_ASSIGN_OR_RETURN(OpContext context, OpContext::Make(*this, scope, view));
  hlo::Instruction* constant = context.Emit(hlo::Opcode::kConstant, dense->literal.shape(), {},
                                            hlo::ConstantAttr{std::shared_ptr<const Literal>(dense, &dense->literal)});
  if (!dense->is_splat) return constant;
  return context.Emit(hlo::Opcode::kBroadcast, dense->shape, {constant}, hlo::DimensionsAttr{});
}

absl::StatusOr<hlo::Computation*> Translation::ConvertFunction(absl::string_view name, const Scope& scope) {
  GW_ASSIGN_OR_RETURN(const Operation* function, FindFunction(name));
  if (function->regions.size() != 1) return absl::InvalidArgumentError(absl::StrCat("function ", name, " has no body"));
  GW_ASSIGN_OR_RETURN(const Block* block, SingleBlock(function->regions.front()));
  Scope inner = scope;
  inner.computation = module_.AddComputation(std::string(name));
  std::vector<hlo::Instruction*> parameters;
  for (uint32_t i = 0; i < block->arguments.count; ++i) {
    GW_ASSIGN_OR_RETURN(Shape shape, ShapeOf(block->arguments[i]));
    Pay(shape);
    parameters.push_back(
        inner.computation->Add(hlo::Opcode::kParameter, std::move(shape), {}, hlo::ParameterAttr{int64_t{i}}));
  }
  GW_ASSIGN_OR_RETURN(std::vector<hlo::Instruction*> results, Inline(name, parameters, inner));
  hlo::Instruction* root = nullptr;
  if (results.size() == 1) {
    root = results.front();
  } else {
    std::vector<Shape> shapes;
    for (hlo::Instruction* result : results) shapes.push_back(result->shape());
    Shape shape = Shape::Tuple(std::move(shapes));
    Pay(shape);
    root = inner.computation->Add(hlo::Opcode::kTuple, std::move(shape), std::move(results));
  }
  inner.computation->set_root(root);
  return inner.computation;
}

absl::StatusOr<std::vector<hlo::Instruction*>> Translation::Inline(absl::string_view name,
                                                                   const std::vector<hlo::Instruction*>& arguments,
                                                                   const Scope& scope) {
  GW_ASSIGN_OR_RETURN(const Operation* function, FindFunction(name));
  if (function->regions.size() != 1) return absl::InvalidArgumentError(absl::StrCat("function ", name, " has no body"));
  GW_ASSIGN_OR_RETURN(const Block* block, SingleBlock(function->regions.front()));
  if (block->arguments.count != arguments.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("function ", name, " takes ", block->arguments.count, " arguments, not ", arguments.size()));
  }
  for (uint32_t i = 0; i < block->arguments.count; ++i) {
    GW_ASSIGN_OR_RETURN(Shape shape, ShapeOf(block->arguments[i]));
    if (!Shape::Compatible(shape, arguments[i]->shape())) {
      return absl::InvalidArgumentError(absl::StrCat("argument ", i, " of function ", name, " is ", shape.ToString(),
                                                     ", not ", arguments[i]->shape().ToString()));
    }
    Define(block->arguments[i], arguments[i]);
  }
  // A body of nothing but calls adds no instruction, and takes its time all the same.
  spent_ += 1 + static_cast<int64_t>(arguments.size());
  GW_RETURN_IF_ERROR(CheckBudget());
  if (!active_calls_.insert(function).second) {
    return absl::InvalidArgumentError(absl::StrCat("function ", name, " calls itself"));
  }
  Scope inner = scope;
  ++inner.depth;
  absl::StatusOr<std::vector<hlo::Instruction*>> results = ConvertBlock(*block, inner);
  active_calls_.erase(function);
  GW_RETURN_IF_ERROR_WITH(results.status(), absl::StrCat("function ", name));
  return results;
}

ValueOverlay::~ValueOverlay() {
  for (auto it = saved_.rbegin(); it != saved_.rend(); ++it) program_.Define(it->first, it->second);
}

void ValueOverlay::Set(ValueId value, hlo::Instruction* instruction) {
  saved_.emplace_back(value, program_.Find(value));
  program_.Define(value, instruction);
}

}  // namespace gangway::stablehlo

#include "gangway/stablehlo/op_context.h"

#include <utility>

#include "absl/strings/match.h"
#include "gangway/mesh/proto/sharding_attribute.h"
#include "gangway/stablehlo/location.h"

namespace gangway::stablehlo {

using hlo::Instruction;
using hlo::Opcode;

absl::StatusOr<OpContext> OpContext::Make(Translation& program, const Scope& scope, const OpView& op) {
  OpContext context(program, scope, op);
  for (bytecode::ValueId operand : op.op().operands) {
    Instruction* instruction = program.Find(operand);
    if (instruction == nullptr) return Error("an operand is not defined");
    context.operands_.push_back(instruction);
  }
  for (uint32_t i = 0; i < op.op().results.count; ++i) {
    GW_ASSIGN_OR_RETURN_WITH(Shape shape, program.ShapeOf(op.op().results[i]), absl::StrCat("result ", i));
    context.result_shapes_.push_back(std::move(shape));
  }
  context.metadata_ = ReadLocation(program.entries(), op.op().location);
  std::string& name = context.metadata_.op_name;
  // Names inside a function are relative to the call.
  if (!scope.op_name_prefix.empty() && !absl::StartsWith(name, scope.op_name_prefix)) {
    name = name.empty() ? scope.op_name_prefix : absl::StrCat(scope.op_name_prefix, "/", name);
  }
  return context;
}

Shape OpContext::CombinedShape() const {
  return result_shapes_.size() == 1 ? result_shapes_.front() : Shape::Tuple(result_shapes_);
}

ManualAxes OpContext::ManualOf(const std::vector<Instruction*>& operands) const {
  if (!scope_.manual.empty() || scope_.pure) return scope_.manual;
  for (const Instruction* operand : operands) {
    if (operand->has_sharding() && !operand->shardings()->empty() && !operand->sharding().manual.empty()) {
      return {operand->sharding().mesh, operand->sharding().manual};
    }
  }
  return {};
}

Scope OpContext::Inner() const {
  Scope inner = scope_;
  inner.manual = ManualOf(operands_);
  ++inner.depth;
  return inner;
}

Instruction* OpContext::Emit(Opcode opcode, Shape shape, std::vector<Instruction*> operands, hlo::Attributes attributes,
                             std::vector<hlo::Computation*> called) {
  program_.Pay(shape);
  const ManualAxes manual = ManualOf(operands);
  Instruction* instruction =
      scope_.computation->Add(opcode, std::move(shape), std::move(operands), std::move(attributes));
  instruction->set_called(std::move(called));
  instruction->set_metadata(metadata_);
  if (!manual.empty()) {
    Shardings shardings;
    for (const Shape& leaf : Leaves(instruction->shape())) {
      Sharding& sharding = shardings.emplace_back(Sharding::Open(manual.mesh, leaf.rank()));
      sharding.manual = manual.axes;
    }
    instruction->set_shardings(std::move(shardings));
  }
  return instruction;
}

Instruction* OpContext::EmitTuple(std::vector<Instruction*> elements) {
  std::vector<Shape> shapes;
  for (const Instruction* element : elements) shapes.push_back(element->shape());
  return Emit(Opcode::kTuple, Shape::Tuple(std::move(shapes)), std::move(elements));
}

Instruction* OpContext::EmitScalar(DType dtype, double value) {
  auto literal = std::make_shared<const Literal>(SplatLiteral(Shape::Scalar(dtype), value));
  return Emit(Opcode::kConstant, Shape::Scalar(dtype), {}, hlo::ConstantAttr{std::move(literal)});
}

Instruction* OpContext::EmitReshape(Instruction* x, DimVector dims) {
  return Emit(Opcode::kReshape, Shape(x->shape().dtype(), std::move(dims)), {x});
}

Instruction* OpContext::EmitSharding(Instruction* x, Sharding sharding) {
  hlo::CustomCallAttr call;
  call.target = "Sharding";
  Instruction* constrained = Emit(Opcode::kCustomCall, x->shape(), {x}, std::move(call));
  constrained->set_shardings(Shardings{std::move(sharding)});
  return constrained;
}

absl::StatusOr<Sharding> OpContext::WithManual(Sharding sharding) const {
  const ManualAxes& manual = scope_.manual;
  if (manual.empty()) return sharding;
  if (!SameMesh(sharding.mesh, manual.mesh)) {
    std::optional<Sharding> converted = OverMesh(sharding, manual.mesh);
    if (!converted.has_value()) {
      return absl::UnimplementedError(absl::StrCat("sharding ", sharding.ToString(),
                                                   " inside a manual computation over another mesh, ",
                                                   manual.mesh->ToString()));
    }
    sharding = *std::move(converted);
  }
  for (const AxisRef& axis : sharding.UsedAxes()) {
    if (Overlaps(manual.axes, axis)) {
      return Error(absl::StrCat("sharding ", sharding.ToString(), " names the manual axis ",
                                AxisToString(*sharding.mesh, axis)));
    }
  }
  sharding.manual.insert(sharding.manual.begin(), manual.axes.begin(), manual.axes.end());
  return sharding;
}

// Ranks of the values a sharding attribute speaks of: an operation without results has one all the same.
static std::vector<int64_t> AtLeastOne(std::vector<int64_t> ranks) {
  if (ranks.empty()) ranks.push_back(0);
  return ranks;
}

absl::StatusOr<std::optional<Shardings>> OpContext::OwnShardings(const std::vector<Shape>& shapes) const {
  std::vector<int64_t> ranks;
  for (const Shape& shape : shapes) {
    for (const Shape& leaf : Leaves(shape)) ranks.push_back(leaf.rank());
  }
  std::optional<Shardings> found;
  if (std::optional<bytecode::AttributeId> id = op_.Find("sdy.sharding")) {
    GW_ASSIGN_OR_RETURN_WITH(auto shardings, program_.meshes().ReadPerValue(*id, AtLeastOne(ranks)),
                             OpView::Context("sdy.sharding"));
    found.emplace();
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (!shardings[i].has_value() && program_.default_mesh() == nullptr) return std::optional<Shardings>();
      found->push_back(shardings[i].has_value() ? *shardings[i] : Sharding::Open(program_.default_mesh(), ranks[i]));
    }
  } else {
    GW_ASSIGN_OR_RETURN(hlo::FrontendAttributes frontend, OwnFrontendAttributes());
    if (auto text = frontend.find("xla.sdy.sharding"); text != frontend.end()) {
      GW_ASSIGN_OR_RETURN_WITH(found, ParseSdyShardingPerValue(text->second, program_.meshes().Table()),
                               "frontend attribute xla.sdy.sharding");
    } else if (op_.Find("mhlo.sharding").has_value()) {
      GW_ASSIGN_OR_RETURN(absl::string_view text, op_.String("mhlo.sharding"));
      GW_ASSIGN_OR_RETURN_WITH(
          found, ReadShardingAttribute(text, AtLeastOne(ranks), program_.num_devices(), program_.default_mesh()),
          OpView::Context("mhlo.sharding"));
    }
  }
  if (!found.has_value()) return found;
  if (shapes.empty()) return std::optional<Shardings>();  // one that says where the operation runs; see RunsOn
  if (found->size() != ranks.size()) {
    return Error(absl::StrCat(found->size(), " shardings for ", ranks.size(), " results"));
  }
  return found;
}

absl::StatusOr<std::optional<int64_t>> OpContext::RunsOn() const {
  std::vector<int64_t> ranks;
  for (const Shape& shape : result_shapes_) ranks.push_back(shape.rank());
  std::optional<Sharding> first;
  if (std::optional<bytecode::AttributeId> id = op_.Find("sdy.sharding")) {
    GW_ASSIGN_OR_RETURN_WITH(auto shardings, program_.meshes().ReadPerValue(*id, AtLeastOne(ranks)),
                             OpView::Context("sdy.sharding"));
    first = shardings.front();
  } else if (op_.Find("mhlo.sharding").has_value()) {
    GW_ASSIGN_OR_RETURN(absl::string_view text, op_.String("mhlo.sharding"));
    GW_ASSIGN_OR_RETURN_WITH(
        auto shardings, ReadShardingAttribute(text, AtLeastOne(ranks), program_.num_devices(), program_.default_mesh()),
        OpView::Context("mhlo.sharding"));
    first = shardings.front();
  }
  if (!first.has_value() || !first->IsMaximal()) return std::optional<int64_t>();
  return std::optional<int64_t>(first->mesh->DeviceAt(0));
}

absl::StatusOr<hlo::FrontendAttributes> OpContext::OwnFrontendAttributes() const {
  GW_ASSIGN_OR_RETURN(OpView::Dictionary dictionary, op_.DictionaryOrEmpty("mhlo.frontend_attributes"));
  GW_ASSIGN_OR_RETURN_WITH(auto entries, StringEntries(program_.entries(), dictionary),
                           OpView::Context("mhlo.frontend_attributes"));
  hlo::FrontendAttributes result(entries.begin(), entries.end());
  if (std::optional<bytecode::AttributeId> rule = op_.Find("sdy.sharding_rule")) {
    GW_ASSIGN_OR_RETURN_WITH(std::string text, PrintShardingRule(program_.entries(), *rule),
                             OpView::Context("sdy.sharding_rule"));
    result.emplace("xla.sdy.sharding_rule", std::move(text));
  }
  return result;
}

absl::Status OpContext::Finish(Instruction* instruction) {
  GW_ASSIGN_OR_RETURN(hlo::FrontendAttributes frontend, OwnFrontendAttributes());
  if (!scope_.pure) {
    GW_ASSIGN_OR_RETURN(std::optional<Shardings> shardings, OwnShardings(result_shapes_));
    if (shardings.has_value()) {
      for (Sharding& sharding : *shardings) {
        if (sharding.manual.empty()) {
          GW_ASSIGN_OR_RETURN(sharding, WithManual(std::move(sharding)));
        }
      }
      instruction->set_shardings(std::move(shardings));
    }
  }
  frontend.erase("xla.sdy.sharding");
  if (!frontend.empty()) instruction->mutable_frontend_attributes() = std::move(frontend);
  if (result_shapes_.size() == 1) {
    program_.Define(op_.op().results[0], instruction);
    return absl::OkStatus();
  }
  for (uint32_t i = 0; i < result_shapes_.size(); ++i) {
    program_.Define(op_.op().results[i],
                    Emit(Opcode::kGetTupleElement, result_shapes_[i], {instruction}, hlo::TupleIndexAttr{int64_t{i}}));
  }
  return absl::OkStatus();
}

absl::Status OpContext::FinishEach(const std::vector<Instruction*>& values) {
  if (values.size() != result_shapes_.size()) {
    return Error(absl::StrCat(values.size(), " values for ", result_shapes_.size(), " results"));
  }
  for (uint32_t i = 0; i < values.size(); ++i) {
    if (!Shape::Compatible(values[i]->shape(), result_shapes_[i])) {
      return Error(absl::StrCat("result ", i, " is declared as ", result_shapes_[i].ToString(), " but is ",
                                values[i]->shape().ToString()));
    }
    program_.Define(op_.op().results[i], values[i]);
  }
  return absl::OkStatus();
}

absl::Status OpContext::FinishValues(std::vector<Instruction*> values) {
  if (!scope_.pure) {
    GW_ASSIGN_OR_RETURN(std::optional<Shardings> shardings, OwnShardings(result_shapes_));
    // Results that are tuples or tokens have no instruction of their own to constrain.
    if (shardings.has_value() && shardings->size() == values.size()) {
      for (size_t i = 0; i < values.size(); ++i) {
        if (!values[i]->shape().IsArray()) continue;
        Sharding& sharding = (*shardings)[i];
        if (sharding.manual.empty()) {
          GW_ASSIGN_OR_RETURN(sharding, WithManual(std::move(sharding)));
        }
        values[i] = EmitSharding(values[i], std::move(sharding));
      }
    }
  }
  return FinishEach(values);
}

absl::StatusOr<DimVector> OpContext::ConstantOperand(size_t i) const {
  const bytecode::Operation* constant = program_.ConstantDefining(op_.op().operands[i]);
  if (constant == nullptr) {
    return absl::UnimplementedError(absl::StrCat("operand ", i, " decides the result's shape and is no constant"));
  }
  GW_ASSIGN_OR_RETURN(OpView view, OpView::Make(op_.artifact(), *constant));
  return view.Ints("value");
}

constexpr int kMaxRepeated = 64;  // operations that a captured scalar is computed by

// The scalar once more in `into`, where it is computed from constants alone; null where it is not. Annotations are left
// out: they have no place in the computation of a reduction or sort.
static Instruction* RepeatScalar(const Instruction& scalar, hlo::Computation* into, int* budget) {
  if (!scalar.shape().IsArray() || scalar.shape().rank() != 0 || --*budget < 0) return nullptr;
  const auto* call = scalar.attr_if<hlo::CustomCallAttr>();
  if (call != nullptr && call->target == "Sharding") return RepeatScalar(*scalar.operand(0), into, budget);
  if (scalar.opcode() != Opcode::kConstant && !hlo::IsElementwise(scalar.opcode())) return nullptr;
  std::vector<Instruction*> operands;
  for (const Instruction* operand : scalar.operands()) {
    operands.push_back(RepeatScalar(*operand, into, budget));
    if (operands.back() == nullptr) return nullptr;
  }
  Instruction* repeated = into->AddClone(scalar, scalar.shape(), std::move(operands));
  repeated->set_shardings(std::nullopt);
  return repeated;
}

absl::StatusOr<hlo::Computation*> OpContext::PureRegion(size_t region) {
  GW_ASSIGN_OR_RETURN(const bytecode::Block* block, Translation::SingleBlock(op_.op().regions[region]));
  const Captures& captures = program_.CapturesOf(op_.op());
  Scope inner = scope_;
  inner.computation = program_.module().AddComputation("region");
  inner.manual = {};
  inner.pure = true;
  ++inner.depth;
  ValueOverlay overlay(program_);
  for (bytecode::ValueId value : captures.constants) {
    GW_ASSIGN_OR_RETURN(Instruction * constant, program_.EmitConstant(*program_.ConstantDefining(value), inner));
    overlay.Set(value, constant);
  }
  int budget = kMaxRepeated;
  for (bytecode::ValueId value : captures.values) {
    const Instruction* outside = program_.Find(value);
    Instruction* inside = outside == nullptr ? nullptr : RepeatScalar(*outside, inner.computation, &budget);
    if (inside == nullptr) {
      return absl::UnimplementedError("its region uses values of the surrounding function that are no constants");
    }
    overlay.Set(value, inside);
  }
  for (uint32_t i = 0; i < block->arguments.count; ++i) {
    GW_ASSIGN_OR_RETURN(Shape shape, program_.ShapeOf(block->arguments[i]));
    program_.Pay(shape);
    program_.Define(block->arguments[i],
                    inner.computation->Add(Opcode::kParameter, std::move(shape), {}, hlo::ParameterAttr{int64_t{i}}));
  }
  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> results, program_.ConvertBlock(*block, inner));
  if (results.size() == 1) {
    inner.computation->set_root(results.front());
    return inner.computation;
  }
  std::vector<Shape> shapes;
  for (const Instruction* result : results) shapes.push_back(result->shape());
  Shape shape = Shape::Tuple(std::move(shapes));
  program_.Pay(shape);
  inner.computation->set_root(inner.computation->Add(Opcode::kTuple, std::move(shape), std::move(results)));
  return inner.computation;
}

}  // namespace gangway::stablehlo

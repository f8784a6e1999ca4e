// While, if, case, call, composite, async pairs.
//
// The regions of while, if and case use values of the surrounding function; HLO computations see only their parameter.
// Such values become further elements of the loop's tuple or of the branch's operand; constants are repeated inside.
#include <utility>

#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {
namespace {

using bytecode::ValueId;
using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

absl::StatusOr<std::vector<Instruction*>> CapturedValues(OpContext& context, const Captures& captures) {
  std::vector<Instruction*> values;
  for (ValueId value : captures.values) {
    values.push_back(context.program().Find(value));
    if (values.back() == nullptr) return OpContext::Error("its region uses an undefined value");
  }
  return values;
}

// A region as a computation of one tuple: first the region's own arguments, then values from outside.
class TupleRegion {
 public:
  TupleRegion(OpContext& context, size_t region, absl::string_view name, const std::vector<ValueId>& outside)
      : context_(context), region_(region), outside_(outside), scope_(context.Inner()), overlay_(context.program()) {
    scope_.computation = context.program().module().AddComputation(std::string(name));
  }

  // Converts the body. Its results come back; further instructions go into scope().computation.
  absl::StatusOr<std::vector<Instruction*>> Convert(const Shape& tuple) {
    GW_ASSIGN_OR_RETURN(const bytecode::Block* block, Translation::SingleBlock(context_.op().op().regions[region_]));
    if (block->arguments.count + outside_.size() != tuple.tuple().size()) {
      return OpContext::Error(absl::StrCat("region ", region_, " has ", block->arguments.count, " arguments"));
    }
    GW_ASSIGN_OR_RETURN(OpContext inside, OpContext::Make(context_.program(), scope_, context_.op()));
    Instruction* parameter = inside.Emit(Opcode::kParameter, tuple, {}, hlo::ParameterAttr{0});
    for (size_t i = 0; i < tuple.tuple().size(); ++i) {
      elements_.push_back(inside.Emit(Opcode::kGetTupleElement, tuple.tuple()[i], {parameter},
                                      hlo::TupleIndexAttr{static_cast<int64_t>(i)}));
      if (i < block->arguments.count) {
        context_.program().Define(block->arguments[static_cast<uint32_t>(i)], elements_[i]);
      } else {
        overlay_.Set(outside_[i - block->arguments.count], elements_[i]);
      }
    }
    for (ValueId value : context_.program().CapturesOf(context_.op().op(), region_).constants) {
      GW_ASSIGN_OR_RETURN(Instruction * constant,
                          context_.program().EmitConstant(*context_.program().ConstantDefining(value), scope_));
      overlay_.Set(value, constant);
    }
    return context_.program().ConvertBlock(*block, scope_);
  }

  const Scope& scope() const { return scope_; }
  // Elements of the parameter.
  const std::vector<Instruction*>& elements() const { return elements_; }

 private:
  OpContext& context_;
  size_t region_;
  const std::vector<ValueId>& outside_;
  Scope scope_;
  ValueOverlay overlay_;
  std::vector<Instruction*> elements_;
};

absl::StatusOr<Computation*> WhileCondition(OpContext& context, const Shape& state) {
  TupleRegion region(context, 0, "condition", context.program().CapturesOf(context.op().op()).values);
  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> results, region.Convert(state));
  if (results.size() != 1) return OpContext::Error("the condition does not return one value");
  region.scope().computation->set_root(results.front());
  return region.scope().computation;
}

absl::StatusOr<Computation*> WhileBody(OpContext& context, const Shape& state) {
  TupleRegion region(context, 1, "body", context.program().CapturesOf(context.op().op()).values);
  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> results, region.Convert(state));
  const size_t carried = context.result_shapes().size();
  if (results.size() != carried) return OpContext::Error("the body does not return what the loop carries");
  results.insert(results.end(), region.elements().begin() + static_cast<std::ptrdiff_t>(carried),
                 region.elements().end());
  GW_ASSIGN_OR_RETURN(OpContext inside, OpContext::Make(context.program(), region.scope(), context.op()));
  region.scope().computation->set_root(inside.EmitTuple(std::move(results)));
  return region.scope().computation;
}

absl::Status While(OpContext& context) {
  if (context.operands().size() != context.result_shapes().size()) {
    return OpContext::Error("operands and results do not match in number");
  }
  const Captures& captures = context.program().CapturesOf(context.op().op());
  std::vector<Instruction*> elements = context.operands();
  GW_ASSIGN_OR_RETURN(const std::vector<Instruction*> values, CapturedValues(context, captures));
  elements.insert(elements.end(), values.begin(), values.end());
  Instruction* init = context.EmitTuple(std::move(elements));
  GW_ASSIGN_OR_RETURN(Computation * condition, WhileCondition(context, init->shape()));
  GW_ASSIGN_OR_RETURN(Computation * body, WhileBody(context, init->shape()));
  Instruction* loop = context.Emit(Opcode::kWhile, init->shape(), {init}, {}, {condition, body});
  // The tuple has more elements than the op has results, so Finish does not do. Frontend attributes stay.
  GW_ASSIGN_OR_RETURN(loop->mutable_frontend_attributes(), context.OwnFrontendAttributes());
  std::vector<Instruction*> results;
  for (size_t i = 0; i < context.result_shapes().size(); ++i) {
    results.push_back(context.Emit(Opcode::kGetTupleElement, context.result_shapes()[i], {loop},
                                   hlo::TupleIndexAttr{static_cast<int64_t>(i)}));
  }
  return context.FinishValues(std::move(results));
}

absl::StatusOr<Computation*> Branch(OpContext& context, size_t index, const Shape& operand) {
  TupleRegion region(context, index, "branch", context.program().CapturesOf(context.op().op(), index).values);
  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> results, region.Convert(operand));
  if (results.size() != context.result_shapes().size()) {
    return OpContext::Error(absl::StrCat("branch ", index, " does not return the op's results"));
  }
  Instruction* root = nullptr;
  if (results.size() == 1) {
    root = results.front();
  } else {
    GW_ASSIGN_OR_RETURN(OpContext inside, OpContext::Make(context.program(), region.scope(), context.op()));
    root = inside.EmitTuple(std::move(results));
  }
  region.scope().computation->set_root(root);
  return region.scope().computation;
}

// if (true branch, false branch) and case.
absl::Status Conditional(OpContext& context) {
  const size_t branches = context.op().op().regions.size();
  if (branches == 0) return OpContext::Error("no branches");
  std::vector<Instruction*> operands = {context.operand(0)};
  std::vector<Computation*> called;
  for (size_t i = 0; i < branches; ++i) {
    GW_ASSIGN_OR_RETURN(std::vector<Instruction*> values,
                        CapturedValues(context, context.program().CapturesOf(context.op().op(), i)));
    Instruction* operand = context.EmitTuple(std::move(values));
    GW_ASSIGN_OR_RETURN(Computation * branch, Branch(context, i, operand->shape()));
    called.push_back(branch);
    operands.push_back(operand);
  }
  return context.FinishWith(Opcode::kConditional, std::move(operands), {}, std::move(called));
}

Scope CalleeScope(OpContext& context) {
  Scope scope = context.Inner();
  const std::string& name = context.op_name();
  if (!name.empty()) scope.op_name_prefix = name;
  return scope;
}

// Calls the program wants to stay calls: computations for the host, and what the compiler was told not to inline.
bool StaysCall(const hlo::FrontendAttributes& frontend) {
  auto inlineable = frontend.find("inlineable");
  return frontend.contains("_xla_compute_type") || (inlineable != frontend.end() && inlineable->second == "false");
}

absl::Status Call(OpContext& context) {
  GW_ASSIGN_OR_RETURN(absl::string_view callee, context.op().String("callee"));
  GW_ASSIGN_OR_RETURN(hlo::FrontendAttributes frontend, context.OwnFrontendAttributes());
  const Scope scope = CalleeScope(context);
  if (StaysCall(frontend)) {
    GW_ASSIGN_OR_RETURN(Computation * computation, context.program().ConvertFunction(callee, scope));
    return context.FinishWith(Opcode::kCall, context.operands(), {}, {computation});
  }
  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> results, context.program().Inline(callee, context.operands(), scope));
  return context.FinishValues(std::move(results));
}

// The type in which elements narrower than a byte are compared, which holds each of them: compilers give what else an
// operation has the elements' width too, and refuse it.
DType ComparedAs(DType dtype) {
  if (BitWidth(dtype) >= 8) return dtype;
  if (IsFloat(dtype)) return DType::kF32;
  return IsSigned(dtype) ? DType::kS8 : DType::kU8;
}

absl::Status TopKOf(OpContext& context, const hlo::TopKAttr& attr) {
  const Shape& operand = context.operand(0)->shape();
  const DType dtype = operand.dtype(), compared = ComparedAs(dtype);
  if (dtype == compared || dtype == DType::kPred) return context.FinishWith(Opcode::kTopK, context.operands(), attr);
  const Shape& values = context.result_shapes()[0];
  const Shape& indices = context.result_shapes()[1];
  Instruction* wide = context.Emit(Opcode::kConvert, Shape(compared, operand.dims()), {context.operand(0)});
  Instruction* both =
      context.Emit(Opcode::kTopK, Shape::Tuple({Shape(compared, values.dims()), indices}), {wide}, attr);
  Instruction* found = context.Emit(Opcode::kGetTupleElement, both->shape().tuple()[0], {both}, hlo::TupleIndexAttr{0});
  Instruction* at = context.Emit(Opcode::kGetTupleElement, indices, {both}, hlo::TupleIndexAttr{1});
  return context.FinishEach({context.Emit(Opcode::kConvert, values, {found}), at});
}

// top_k has an operation of its own in HLO.
absl::StatusOr<bool> TopK(OpContext& context, const OpView::Dictionary& attributes) {
  hlo::TopKAttr attr;
  for (const auto& [name, id] : attributes) {
    if (name != "k") continue;
    GW_ASSIGN_OR_RETURN_WITH(const bytecode::IntegerAttr* k,
                             context.program().entries().attribute_as<bytecode::IntegerAttr>(id), "attribute k");
    attr.k = k->value;
  }
  if (attr.k <= 0 || context.operands().size() != 1 || context.result_shapes().size() != 2) return false;
  if (context.result_shapes()[1].dtype() != DType::kS32) return false;
  GW_RETURN_IF_ERROR(TopKOf(context, attr));
  return true;
}

// A composite is its decomposition, unless HLO has the operation.
absl::Status Composite(OpContext& context) {
  GW_ASSIGN_OR_RETURN(absl::string_view name, context.op().String("name"));
  if (name == "chlo.erf" && context.operands().size() == 1 && context.result_shapes().size() == 1) {
    return context.FinishWith(Opcode::kErf, context.operands());
  }
  if (name == "chlo.top_k") {
    GW_ASSIGN_OR_RETURN(OpView::Dictionary attributes, context.op().DictionaryOrEmpty("composite_attributes"));
    GW_ASSIGN_OR_RETURN(bool done, TopK(context, attributes));
    if (done) return absl::OkStatus();
  }
  GW_ASSIGN_OR_RETURN(absl::string_view decomposition, context.op().String("decomposition"));
  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> results,
                      context.program().Inline(decomposition, context.operands(), CalleeScope(context)));
  return context.FinishValues(std::move(results));
}

// The region's collective in place: nothing is gained by keeping the pair apart before scheduling.
absl::Status AsyncStart(OpContext& context) {
  GW_ASSIGN_OR_RETURN(const bytecode::Block* block, Translation::SingleBlock(context.op().op().regions[0]));
  if (block->arguments.count != context.operands().size()) return OpContext::Error("operands are not the arguments");
  for (uint32_t i = 0; i < block->arguments.count; ++i) {
    context.program().Define(block->arguments[i], context.operand(i));
  }
  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> results, context.program().ConvertBlock(*block, context.Inner()));
  if (results.size() == 1) return context.FinishValues(std::move(results));
  return context.FinishEach({context.EmitTuple(std::move(results))});
}

absl::Status AsyncDone(OpContext& context) {
  if (context.result_shapes().size() == 1) return context.FinishEach({context.operand(0)});
  std::vector<Instruction*> results;
  for (size_t i = 0; i < context.result_shapes().size(); ++i) {
    results.push_back(context.Emit(Opcode::kGetTupleElement, context.result_shapes()[i], {context.operand(0)},
                                   hlo::TupleIndexAttr{static_cast<int64_t>(i)}));
  }
  return context.FinishValues(std::move(results));
}

}  // namespace

void AddControlFlowOps(OpTable& table) {
  for (const OpRow& row : {
           OpRow{"vhlo.async_done_v1", 1, kAny, 0, AsyncDone},
           OpRow{"vhlo.async_start_v1", kAny, 1, 1, AsyncStart},
           OpRow{"vhlo.call_v1", kAny, kAny, 0, Call},
           OpRow{"vhlo.case_v1", 1, kAny, kAny, Conditional},
           OpRow{"vhlo.composite_v1", kAny, kAny, 0, Composite},
           OpRow{"vhlo.composite_v2", kAny, kAny, kAny, Composite},
           OpRow{"vhlo.if_v1", 1, kAny, 2, Conditional},
           OpRow{"vhlo.while_v1", kAny, kAny, 2, While},
       }) {
    table.emplace(row.name, row);
  }
}

}  // namespace gangway::stablehlo

// Custom calls: foreign functions, and the targets that carry sharding annotations.
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gangway/hlo/host_callback.h"
#include "gangway/hlo/shard_group.h"
#include "gangway/mesh/proto/sharding_attribute.h"
#include "gangway/stablehlo/attribute_text.h"
#include "gangway/stablehlo/manual_computation.h"
#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {
namespace {

using bytecode::AttributeId;
using hlo::CustomCallAttr;
using hlo::Instruction;
using hlo::Opcode;

// Dimensions, minor to major, of each array.
absl::StatusOr<std::vector<Shape>> WithLayouts(const OpView& op, absl::string_view attribute,
                                               std::vector<Shape> shapes) {
  GW_ASSIGN_OR_RETURN(std::vector<AttributeId> layouts, op.Array(attribute));
  if (layouts.size() != shapes.size()) {
    return OpContext::Error(
        absl::StrCat("attribute ", attribute, ": ", layouts.size(), " layouts for ", shapes.size(), " values"));
  }
  const bytecode::Entries& entries = op.artifact().entries();
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!shapes[i].IsArray()) continue;
    GW_ASSIGN_OR_RETURN_WITH(const bytecode::DenseAttr* dense, entries.attribute_as<bytecode::DenseAttr>(layouts[i]),
                             OpView::Context(attribute));
    GW_ASSIGN_OR_RETURN_WITH(IntegerTensor order, ReadIntegers(entries, *dense), OpView::Context(attribute));
    shapes[i].set_layout(Layout{std::move(order.values), ""});
    GW_RETURN_IF_ERROR_WITH(ValidateShape(shapes[i]), OpView::Context(attribute));
  }
  return shapes;
}

absl::StatusOr<std::vector<hlo::OutputAlias>> ReadAliases(const OpView& op) {
  GW_ASSIGN_OR_RETURN(std::vector<AttributeId> ids, op.Array("output_operand_aliases"));
  std::vector<hlo::OutputAlias> aliases;
  for (AttributeId id : ids) {
    GW_ASSIGN_OR_RETURN_WITH(const bytecode::OutputOperandAliasAttr* alias,
                             op.artifact().entries().attribute_as<bytecode::OutputOperandAliasAttr>(id),
                             OpView::Context("output_operand_aliases"));
    aliases.push_back({alias->output_tuple_indices, alias->operand_index, alias->operand_tuple_indices});
  }
  return aliases;
}

// Attributes of a typed FFI call are a dictionary; JAX sends it beside an empty backend_config.
absl::Status ReadBackendConfig(const OpView& op, CustomCallAttr& call) {
  GW_ASSIGN_OR_RETURN(uint64_t api, op.Enum("api_version", bytecode::EnumKind::kApiVersion, 5));
  call.api = static_cast<hlo::CustomCallApi>(api);
  GW_ASSIGN_OR_RETURN(AttributeId config, op.Attribute("backend_config"));
  if (std::optional<AttributeId> dictionary = op.Find("mhlo.backend_config")) {
    call.api = hlo::CustomCallApi::kTypedFfi;
    config = *dictionary;
  }
  const bytecode::Entries& entries = op.artifact().entries();
  GW_ASSIGN_OR_RETURN(const bytecode::Attribute* attribute, entries.attribute(config));
  if (const auto* text = std::get_if<bytecode::StringAttr>(attribute)) {
    call.backend_config = std::string(text->value);
    return absl::OkStatus();
  }
  GW_ASSIGN_OR_RETURN_WITH(call.backend_config, PrintAttribute(entries, config), OpView::Context("backend_config"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<hlo::Computation*>> CalledComputations(OpContext& context) {
  GW_ASSIGN_OR_RETURN(std::vector<AttributeId> names, context.op().Array("called_computations"));
  std::vector<hlo::Computation*> called;
  for (AttributeId id : names) {
    GW_ASSIGN_OR_RETURN_WITH(const bytecode::StringAttr* name,
                             context.program().entries().attribute_as<bytecode::StringAttr>(id),
                             OpView::Context("called_computations"));
    Scope scope = context.Inner();
    scope.pure = true;
    scope.manual = {};
    GW_ASSIGN_OR_RETURN(hlo::Computation * computation, context.program().ConvertFunction(name->value, scope));
    called.push_back(computation);
  }
  return called;
}

// Outside manual computations one device calls the client: the one the operation's sharding names, or the first. A
// partitioned call is made by all.
absl::Status MarkCaller(const OpContext& context, absl::string_view target, Instruction* call) {
  if (target == hlo::kJaxPartitionedHostCallback) {
    call->mutable_frontend_attributes()[std::string(hlo::kCallsWithParts)] = "true";
    return absl::OkStatus();
  }
  if (!context.Inner().manual.empty()) return absl::OkStatus();
  GW_ASSIGN_OR_RETURN(const std::optional<int64_t> device, context.RunsOn());
  call->set_shardings(std::nullopt);
  call->mutable_frontend_attributes()[std::string(hlo::kCallingDevice)] = absl::StrCat(device.value_or(0));
  return absl::OkStatus();
}

absl::Status ForeignCall(OpContext& context, absl::string_view target) {
  const OpView& op = context.op();
  CustomCallAttr call;
  call.target = std::string(target);
  GW_ASSIGN_OR_RETURN(call.has_side_effect, op.Bool("has_side_effect"));
  GW_RETURN_IF_ERROR(ReadBackendConfig(op, call));
  GW_ASSIGN_OR_RETURN(call.aliases, ReadAliases(op));
  GW_ASSIGN_OR_RETURN(std::vector<AttributeId> layouts, op.Array("operand_layouts"));
  GW_ASSIGN_OR_RETURN(std::vector<AttributeId> result_layouts, op.Array("result_layouts"));
  std::vector<Shape> results = context.result_shapes();
  if (!layouts.empty() || !result_layouts.empty()) {
    std::vector<Shape> shapes;
    for (const Instruction* operand : context.operands()) shapes.push_back(WithoutLayout(operand->shape()));
    GW_ASSIGN_OR_RETURN(call.operand_shapes_with_layout, WithLayouts(op, "operand_layouts", std::move(shapes)));
    GW_ASSIGN_OR_RETURN(results, WithLayouts(op, "result_layouts", std::move(results)));
  }
  GW_ASSIGN_OR_RETURN(std::vector<hlo::Computation*> called, CalledComputations(context));
  Shape shape = results.size() == 1 ? results.front() : Shape::Tuple(std::move(results));
  Instruction* instruction =
      context.Emit(Opcode::kCustomCall, std::move(shape), context.operands(), std::move(call), std::move(called));
  GW_RETURN_IF_ERROR(context.Finish(instruction));
  return hlo::IsJaxHostCallback(target) ? MarkCaller(context, target, instruction) : absl::OkStatus();
}

absl::StatusOr<int64_t> SortedDimension(const OpView& op) {
  GW_ASSIGN_OR_RETURN(OpView::Dictionary config, op.DictionaryOrEmpty("mhlo.backend_config"));
  for (const auto& [name, id] : config) {
    if (name != "reduction_dim") continue;
    GW_ASSIGN_OR_RETURN_WITH(const bytecode::IntegerAttr* dimension,
                             op.artifact().entries().attribute_as<bytecode::IntegerAttr>(id), "reduction_dim");
    return dimension->value;
  }
  return OpContext::Error("attribute mhlo.backend_config: reduction_dim is missing");
}

// Where there is nothing faster the exact answer is a good approximation: the first of the sorted operands. Behind the
// operands come as many values that a reduction would start with.
absl::Status ApproxTopK(OpContext& context) {
  const size_t count = context.result_shapes().size();
  if (count == 0 || context.operands().size() != 2 * count) {
    return OpContext::Error("expected two operands for each result");
  }
  const Shape &from = context.operand(0)->shape(), &to = context.result_shapes()[0];
  GW_ASSIGN_OR_RETURN(std::vector<hlo::Computation*> comparator, CalledComputations(context));
  if (comparator.size() != 1) return OpContext::Error("expected one comparator");
  GW_ASSIGN_OR_RETURN(const int64_t dimension, SortedDimension(context.op()));
  bool fits = from.IsArray() && to.rank() == from.rank() && dimension >= 0 && dimension < from.rank();
  for (int64_t d = 0; fits && d < from.rank(); ++d) fits = to.dim(d) <= from.dim(d);
  if (!fits) return OpContext::Error(absl::StrCat(to.ToString(), " are no leading elements of ", from.ToString()));
  const std::vector<Instruction*> operands(context.operands().begin(), context.operands().begin() + count);
  std::vector<Shape> shapes;
  for (const Instruction* operand : operands) shapes.push_back(WithoutLayout(operand->shape()));
  const hlo::SortAttr order{dimension, /*is_stable=*/false};
  Instruction* sorted =
      context.Emit(Opcode::kSort, count == 1 ? shapes[0] : Shape::Tuple(shapes), operands, order, comparator);
  std::vector<Instruction*> results;
  for (size_t i = 0; i < count; ++i) {
    Instruction* whole = count == 1 ? sorted
                                    : context.Emit(Opcode::kGetTupleElement, shapes[i], {sorted},
                                                   hlo::TupleIndexAttr{static_cast<int64_t>(i)});
    hlo::SliceAttr first{DimVector(from.rank(), 0), to.dims(), DimVector(from.rank(), 1)};
    results.push_back(context.Emit(Opcode::kSlice, context.result_shapes()[i], {whole}, std::move(first)));
  }
  return context.FinishValues(std::move(results));
}

absl::Status ExpectOne(const OpContext& context) {
  if (context.operands().size() == 1 && context.result_shapes().size() == 1) return absl::OkStatus();
  return OpContext::Error("expected one operand and one result");
}

// "unspecified_dims=[1,2]": dimensions left to the compiler.
absl::Status OpenDims(absl::string_view config, Sharding& sharding) {
  if (!absl::ConsumePrefix(&config, "unspecified_dims=[") || !absl::ConsumeSuffix(&config, "]")) {
    return absl::OkStatus();
  }
  for (absl::string_view number : absl::StrSplit(config, ',', absl::SkipWhitespace())) {
    int64_t dim = 0;
    if (!absl::SimpleAtoi(number, &dim) || dim < 0 || dim >= sharding.rank()) {
      return OpContext::Error(absl::StrCat("attribute backend_config: no dimension ", number));
    }
    sharding.dims[dim].open = true;
  }
  return absl::OkStatus();
}

absl::Status ShardingCall(OpContext& context) {
  GW_RETURN_IF_ERROR(ExpectOne(context));
  if (context.scope().pure) return context.FinishEach({context.operand(0)});
  GW_ASSIGN_OR_RETURN(std::optional<Shardings> own, context.OwnShardings(context.result_shapes()));
  if (!own.has_value()) return context.FinishEach({context.operand(0)});
  if (own->size() != 1) return OpContext::Error("the operand is no array");
  Sharding sharding = own->front();
  GW_ASSIGN_OR_RETURN(absl::string_view config, context.op().String("backend_config"));
  GW_RETURN_IF_ERROR(OpenDims(config, sharding));
  if (sharding.manual.empty()) {
    GW_ASSIGN_OR_RETURN(sharding, context.WithManual(std::move(sharding)));
  }
  Instruction* constrained = context.EmitSharding(context.operand(0), std::move(sharding));
  if (context.op().Find("mhlo.sharding").has_value()) {
    GW_ASSIGN_OR_RETURN(absl::string_view text, context.op().String("mhlo.sharding"));
    hlo::JoinShardGroups(constrained, ReadShardGroups(text));
  }
  return context.FinishEach({constrained});
}

// Keeps target and sharding, which say on which side of a manual computation the value is.
absl::Status BoundaryCall(OpContext& context, absl::string_view target) {
  GW_RETURN_IF_ERROR(ExpectOne(context));
  GW_ASSIGN_OR_RETURN(std::optional<Shardings> own, context.OwnShardings(context.result_shapes()));
  if (!own.has_value()) return OpContext::Error("attribute mhlo.sharding is missing");
  CustomCallAttr call;
  call.target = std::string(target);
  Instruction* result =
      context.Emit(Opcode::kCustomCall, context.result_shape(), {context.operand(0)}, std::move(call));
  result->set_shardings(std::move(own));
  return context.FinishEach({result});
}

struct RoundTripShardings {
  Shardings shardings;
  ManualAxes manual;
};

absl::StatusOr<RoundTripShardings> ReadRoundTrip(const OpContext& context, const std::string& attribute) {
  GW_ASSIGN_OR_RETURN(hlo::FrontendAttributes frontend, context.OwnFrontendAttributes());
  const auto shardings = frontend.find(attribute);
  const auto manual = frontend.find("xla.sdy.manual_axes");
  if (shardings == frontend.end() || manual == frontend.end()) {
    return OpContext::Error(absl::StrCat("frontend attributes ", attribute, " and xla.sdy.manual_axes are missing"));
  }
  RoundTripShardings result;
  GW_ASSIGN_OR_RETURN_WITH(result.shardings,
                           ParseSdyShardingPerValue(shardings->second, context.program().meshes().Table()),
                           absl::StrCat("frontend attribute ", attribute));
  if (result.shardings.size() != context.operands().size() ||
      result.shardings.size() != context.result_shapes().size()) {
    return OpContext::Error(absl::StrCat("frontend attribute ", attribute, ": not one sharding for each value"));
  }
  if (result.shardings.empty()) return result;
  const MeshRef& mesh = result.shardings.front().mesh;
  GW_ASSIGN_OR_RETURN_WITH(AxisList axes, ParseSdyManualAxes(manual->second, *mesh),
                           "frontend attribute xla.sdy.manual_axes");
  GW_ASSIGN_OR_RETURN(result.manual, AddManualAxes(context, mesh, axes));
  return result;
}

absl::Status GlobalToLocal(OpContext& context) {
  GW_ASSIGN_OR_RETURN(RoundTripShardings read, ReadRoundTrip(context, "xla.sdy.in_shardings"));
  std::vector<Instruction*> locals;
  for (size_t i = 0; i < read.shardings.size(); ++i) {
    GW_ASSIGN_OR_RETURN(Instruction * local, EmitFullToShard(context, context.operand(i), read.shardings[i],
                                                             read.manual, context.result_shapes()[i]));
    locals.push_back(local);
  }
  return context.FinishEach(locals);
}

absl::Status LocalToGlobal(OpContext& context) {
  GW_ASSIGN_OR_RETURN(RoundTripShardings read, ReadRoundTrip(context, "xla.sdy.out_shardings"));
  std::vector<Instruction*> wholes;
  for (size_t i = 0; i < read.shardings.size(); ++i) {
    GW_ASSIGN_OR_RETURN(Instruction * whole, EmitShardToFull(context, context.operand(i), read.shardings[i],
                                                             read.manual, context.result_shapes()[i]));
    wholes.push_back(whole);
  }
  return context.FinishEach(wholes);
}

absl::Status CustomCall(OpContext& context) {
  GW_ASSIGN_OR_RETURN(absl::string_view target, context.op().String("call_target_name"));
  if (target == "Sharding" || target == "xla.sdy.FuncResultSharding") return ShardingCall(context);
  if (target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape") return BoundaryCall(context, target);
  if (target == "xla.sdy.GlobalToLocalShape") return GlobalToLocal(context);
  if (target == "xla.sdy.LocalToGlobalShape") return LocalToGlobal(context);
  if (target == "ApproxTopK") return ApproxTopK(context);
  // jax.experimental.control_deps: a wish for an order of two operations, and no value. What runs when is ours to say.
  if (target == "control_dep" && context.result_shapes().empty()) return context.FinishEach({});
  if (target == "CustomSPMDPartitioning") {
    return absl::UnimplementedError(
        "attribute call_target_name: CustomSPMDPartitioning calls back into the client's process, which no server can");
  }
  GW_RETURN_IF_ERROR_WITH(ForeignCall(context, target), absl::StrCat("target ", target.substr(0, 100)));
  return absl::OkStatus();
}

}  // namespace

void AddCustomCallOps(OpTable& table) {
  for (const OpRow& row : {
           OpRow{"vhlo.custom_call_v1", kAny, kAny, 0, CustomCall},
           OpRow{"vhlo.custom_call_v2", kAny, kAny, 0, CustomCall},
       }) {
    table.emplace(row.name, row);
  }
}

}  // namespace gangway::stablehlo

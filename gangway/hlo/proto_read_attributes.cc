#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/hlo/attribute_family.h"
#include "gangway/hlo/attribute_names.h"
#include "gangway/hlo/proto_attributes.h"
#include "gangway/hlo/proto_values.h"

namespace gangway::hlo {
namespace {

using Proto = xla::HloInstructionProto;
using Result = absl::StatusOr<Attributes>;

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

// An enumeration whose numbers are those of the proto.
template <typename Enum>
absl::StatusOr<Enum> CheckedEnum(int number, absl::string_view field) {
  for (const NamedValue<Enum>& entry : NamesOf<Enum>()) {
    if (static_cast<int>(entry.value) == number) return entry.value;
  }
  return Wrong(absl::StrCat(field, ": unknown value ", number));
}

absl::StatusOr<int64_t> OneDimension(const Proto& proto) {
  if (proto.dimensions_size() != 1) return Wrong("must have one dimension");
  return proto.dimensions(0);
}

Window ReadWindow(const xla::Window& proto) {
  Window window;
  for (const xla::WindowDimension& dim : proto.dimensions()) {
    WindowDim& added = window.emplace_back();
    added.size = dim.size();
    added.stride = dim.stride();
    added.pad_low = dim.padding_low();
    added.pad_high = dim.padding_high();
    // Old writers leave dilations out.
    added.window_dilation = dim.window_dilation() == 0 ? 1 : dim.window_dilation();
    added.base_dilation = dim.base_dilation() == 0 ? 1 : dim.base_dilation();
    added.reversal = dim.window_reversal();
  }
  return window;
}

absl::StatusOr<PrecisionConfig> ReadPrecision(const xla::PrecisionConfig& proto) {
  PrecisionConfig precision;
  for (int operand : proto.operand_precision()) {
    GW_ASSIGN_OR_RETURN(Precision value, CheckedEnum<Precision>(operand, "precision"));
    precision.operands.push_back(value);
  }
  const bool all_default = std::all_of(precision.operands.begin(), precision.operands.end(),
                                       [](Precision value) { return value == Precision::kDefault; });
  if (all_default) precision.operands.clear();
  precision.algorithm = proto.algorithm();
  return precision;
}

absl::StatusOr<ReplicaGroupList> ReadGroups(const Proto& proto) {
  ReplicaGroupList list;
  if (proto.has_mesh_axes_replica_group_list()) {
    list.form = ReplicaGroupList::Form::kMeshAxes;
    GW_ASSIGN_OR_RETURN(list.mesh, ReadMesh(proto.mesh_axes_replica_group_list().mesh()));
    GW_ASSIGN_OR_RETURN(list.axes, ReadAxes(*list.mesh, proto.mesh_axes_replica_group_list().axes()));
    return list;
  }
  if (proto.has_iota_collective_device_list()) {
    const auto& iota = proto.iota_collective_device_list();
    list.form = ReplicaGroupList::Form::kIota;
    list.num_groups = iota.num_replica_groups();
    list.group_size = iota.num_devices_per_group();
    list.iota_reshape = ToDims(iota.iota_reshape_dims());
    list.iota_transpose.assign(iota.iota_transpose_perm().begin(), iota.iota_transpose_perm().end());
    GW_RETURN_IF_ERROR(ValidateReplicaGroups(list));
    return list;
  }
  const auto& groups =
      proto.has_collective_device_list() ? proto.collective_device_list().replica_groups() : proto.replica_groups();
  for (const xla::ReplicaGroup& group : groups) {
    list.groups.emplace_back(group.replica_ids().begin(), group.replica_ids().end());
  }
  return list;
}

Result ReadDimensions(const Proto& proto) { return Attributes(DimensionsAttr{ToDims(proto.dimensions())}); }

Result ReadDimension(const Proto& proto) {
  GW_ASSIGN_OR_RETURN(int64_t dim, OneDimension(proto));
  return Attributes(DimensionAttr{dim});
}

Result ReadConstant(const Proto& proto) {
  GW_ASSIGN_OR_RETURN(Literal literal, ReadLiteral(proto.literal()));
  return Attributes(ConstantAttr{std::make_shared<const Literal>(std::move(literal))});
}

Result ReadSlice(const Proto& proto) {
  SliceAttr attr;
  for (const auto& dim : proto.slice_dimensions()) {
    attr.starts.push_back(dim.start());
    attr.limits.push_back(dim.limit());
    attr.strides.push_back(dim.stride());
  }
  return Attributes(std::move(attr));
}

Result ReadPad(const Proto& proto) {
  PadAttr attr;
  for (const auto& dim : proto.padding_config().dimensions()) {
    attr.dims.push_back({dim.edge_padding_low(), dim.edge_padding_high(), dim.interior_padding()});
  }
  return Attributes(std::move(attr));
}

Result ReadDot(const Proto& proto) {
  const xla::DotDimensionNumbers& numbers = proto.dot_dimension_numbers();
  DotAttr attr;
  attr.lhs_batch = ToDims(numbers.lhs_batch_dimensions());
  attr.rhs_batch = ToDims(numbers.rhs_batch_dimensions());
  attr.lhs_contracting = ToDims(numbers.lhs_contracting_dimensions());
  attr.rhs_contracting = ToDims(numbers.rhs_contracting_dimensions());
  GW_ASSIGN_OR_RETURN(attr.precision, ReadPrecision(proto.precision_config()));
  return Attributes(std::move(attr));
}

Result ReadConvolution(const Proto& proto) {
  const xla::ConvolutionDimensionNumbers& numbers = proto.convolution_dimension_numbers();
  ConvolutionAttr attr;
  attr.window = ReadWindow(proto.window());
  attr.input_batch = numbers.input_batch_dimension();
  attr.input_feature = numbers.input_feature_dimension();
  attr.input_spatial = ToDims(numbers.input_spatial_dimensions());
  attr.kernel_input_feature = numbers.kernel_input_feature_dimension();
  attr.kernel_output_feature = numbers.kernel_output_feature_dimension();
  attr.kernel_spatial = ToDims(numbers.kernel_spatial_dimensions());
  attr.output_batch = numbers.output_batch_dimension();
  attr.output_feature = numbers.output_feature_dimension();
  attr.output_spatial = ToDims(numbers.output_spatial_dimensions());
  attr.feature_groups = std::max<int64_t>(proto.feature_group_count(), 1);
  attr.batch_groups = std::max<int64_t>(proto.batch_group_count(), 1);
  GW_ASSIGN_OR_RETURN(attr.precision, ReadPrecision(proto.precision_config()));
  return Attributes(std::move(attr));
}

Result ReadGather(const Proto& proto) {
  const xla::GatherDimensionNumbers& numbers = proto.gather_dimension_numbers();
  GatherAttr attr;
  attr.offset_dims = ToDims(numbers.offset_dims());
  attr.collapsed_slice_dims = ToDims(numbers.collapsed_slice_dims());
  attr.start_index_map = ToDims(numbers.start_index_map());
  attr.operand_batching_dims = ToDims(numbers.operand_batching_dims());
  attr.start_indices_batching_dims = ToDims(numbers.start_indices_batching_dims());
  attr.index_vector_dim = numbers.index_vector_dim();
  attr.slice_sizes = ToDims(proto.gather_slice_sizes());
  attr.indices_are_sorted = proto.indices_are_sorted();
  return Attributes(std::move(attr));
}

Result ReadScatter(const Proto& proto) {
  const xla::ScatterDimensionNumbers& numbers = proto.scatter_dimension_numbers();
  ScatterAttr attr;
  attr.update_window_dims = ToDims(numbers.update_window_dims());
  attr.inserted_window_dims = ToDims(numbers.inserted_window_dims());
  attr.scatter_dims_to_operand_dims = ToDims(numbers.scatter_dims_to_operand_dims());
  attr.input_batching_dims = ToDims(numbers.input_batching_dims());
  attr.scatter_indices_batching_dims = ToDims(numbers.scatter_indices_batching_dims());
  attr.index_vector_dim = numbers.index_vector_dim();
  attr.indices_are_sorted = proto.indices_are_sorted();
  attr.unique_indices = proto.unique_indices();
  return Attributes(std::move(attr));
}

Result ReadCompare(const Proto& proto, absl::Span<Instruction* const> operands) {
  std::optional<ComparisonDirection> direction = ValueOf<ComparisonDirection>(proto.comparison_direction());
  if (!direction.has_value()) return Wrong(absl::StrCat("comparison_direction '", proto.comparison_direction(), "'"));
  std::optional<ComparisonType> type = ValueOf<ComparisonType>(proto.comparison_type());
  if (!type.has_value()) return Wrong(absl::StrCat("comparison_type '", proto.comparison_type(), "'"));
  CompareAttr attr{*direction, *type};
  attr.order_total = proto.comparison_order() == "TOTAL";
  // The type that the elements imply is not said in text.
  const DType dtype = operands.empty() ? DType::kF32 : operands[0]->shape().dtype();
  const ComparisonType implied = IsSigned(dtype)                      ? ComparisonType::kSigned
                                 : IsFloat(dtype) || IsComplex(dtype) ? ComparisonType::kFloat
                                                                      : ComparisonType::kUnsigned;
  if (attr.type == implied || attr.order_total) attr.type = ComparisonType::kDefault;
  return Attributes(attr);
}

Result ReadSort(const Proto& proto) {
  GW_ASSIGN_OR_RETURN(int64_t dim, OneDimension(proto));
  return Attributes(SortAttr{dim, proto.is_stable()});
}

Result ReadCollective(const Proto& proto) {
  CollectiveAttr attr;
  GW_ASSIGN_OR_RETURN(attr.groups, ReadGroups(proto));
  for (const xla::SourceTarget& pair : proto.source_target_pairs()) {
    attr.source_target_pairs.emplace_back(pair.source(), pair.target());
  }
  if (proto.dimensions_size() > 1) return Wrong("more than one dimension");
  if (proto.dimensions_size() == 1) attr.dimension = proto.dimensions(0);
  if (proto.channel_id() != 0) attr.channel_id = proto.channel_id();
  attr.use_global_device_ids = proto.use_global_device_ids();
  attr.constrain_layout = proto.constrain_layout();
  return Attributes(std::move(attr));
}

Result ReadCustomCall(const Proto& proto) {
  CustomCallAttr attr;
  attr.target = proto.custom_call_target();
  attr.backend_config = proto.backend_config();
  GW_ASSIGN_OR_RETURN(attr.api, CheckedEnum<CustomCallApi>(proto.custom_call_api_version(), "custom_call_api_version"));
  // Writers of before the field existed mean the original interface.
  if (attr.api == CustomCallApi::kUnspecified) attr.api = CustomCallApi::kOriginal;
  attr.has_side_effect = proto.custom_call_has_side_effect();
  for (const xla::OutputOperandAliasing& alias : proto.output_operand_aliasing()) {
    attr.aliases.push_back(
        {ToDims(alias.output_shape_index()), alias.operand_index(), ToDims(alias.operand_shape_index())});
  }
  if (!proto.constrain_layout()) return Attributes(std::move(attr));
  attr.operand_shapes_with_layout.emplace();
  for (const xla::ShapeProto& shape_proto : proto.operand_shapes_with_layout()) {
    GW_ASSIGN_OR_RETURN(Shape shape, ReadShape(shape_proto));
    attr.operand_shapes_with_layout->push_back(std::move(shape));
  }
  return Attributes(std::move(attr));
}

Result ReadRng(const Proto& proto) {
  GW_ASSIGN_OR_RETURN(auto distribution, CheckedEnum<RngDistribution>(proto.distribution(), "distribution"));
  return Attributes(RngAttr{distribution});
}

Result ReadRngBits(const Proto& proto) {
  GW_ASSIGN_OR_RETURN(auto algorithm, CheckedEnum<RngAlgorithm>(proto.rng_algorithm(), "rng_algorithm"));
  return Attributes(RngBitGeneratorAttr{algorithm});
}

Result ReadFft(const Proto& proto) {
  GW_ASSIGN_OR_RETURN(FftType type, CheckedEnum<FftType>(proto.fft_type(), "fft_type"));
  return Attributes(FftAttr{type, ToDims(proto.fft_length())});
}

Result ReadTriangularSolve(const Proto& proto) {
  const xla::TriangularSolveOptions& options = proto.triangular_solve_options();
  GW_ASSIGN_OR_RETURN(auto transpose, CheckedEnum<Transposition>(options.transpose_a(), "transpose_a"));
  return Attributes(TriangularSolveAttr{options.left_side(), options.lower(), options.unit_diagonal(), transpose});
}

Result ReadReducePrecision(const Proto& proto) {
  return Attributes(ReducePrecisionAttr{proto.exponent_bits(), proto.mantissa_bits()});
}

Result ReadFeed(const Proto& proto, Opcode opcode) {
  if (opcode == Opcode::kInfeed) return Attributes(FeedAttr{proto.infeed_config(), Shape()});
  GW_ASSIGN_OR_RETURN(Shape shape, ReadShape(proto.outfeed_shape()));
  return Attributes(FeedAttr{proto.outfeed_config(), std::move(shape)});
}

}  // namespace

Result ReadAttributes(const Proto& proto, Opcode opcode, absl::Span<Instruction* const> operands) {
  if (opcode == Opcode::kRaggedDot || opcode == Opcode::kDomain) {
    return absl::UnimplementedError(absl::StrCat(OpcodeName(opcode), " is not read from protos"));
  }
  switch (AttributeIndexOf(opcode)) {
    case kAttributeIndex<DimensionsAttr>:
      return ReadDimensions(proto);
    case kAttributeIndex<DimensionAttr>:
      return ReadDimension(proto);
    case kAttributeIndex<ParameterAttr>:
      return Attributes(ParameterAttr{proto.parameter_number()});
    case kAttributeIndex<ConstantAttr>:
      return ReadConstant(proto);
    case kAttributeIndex<TupleIndexAttr>:
      return Attributes(TupleIndexAttr{proto.tuple_index()});
    case kAttributeIndex<SliceAttr>:
      return ReadSlice(proto);
    case kAttributeIndex<DynamicSliceAttr>:
      return Attributes(DynamicSliceAttr{ToDims(proto.dynamic_slice_sizes())});
    case kAttributeIndex<PadAttr>:
      return ReadPad(proto);
    case kAttributeIndex<DotAttr>:
      return ReadDot(proto);
    case kAttributeIndex<WindowAttr>:
      return Attributes(WindowAttr{ReadWindow(proto.window())});
    case kAttributeIndex<ConvolutionAttr>:
      return ReadConvolution(proto);
    case kAttributeIndex<GatherAttr>:
      return ReadGather(proto);
    case kAttributeIndex<ScatterAttr>:
      return ReadScatter(proto);
    case kAttributeIndex<CompareAttr>:
      return ReadCompare(proto, operands);
    case kAttributeIndex<SortAttr>:
      return ReadSort(proto);
    case kAttributeIndex<TopKAttr>:
      return Attributes(TopKAttr{proto.k(), proto.largest()});
    case kAttributeIndex<CollectiveAttr>:
      return ReadCollective(proto);
    case kAttributeIndex<CustomCallAttr>:
      return ReadCustomCall(proto);
    case kAttributeIndex<RngAttr>:
      return ReadRng(proto);
    case kAttributeIndex<RngBitGeneratorAttr>:
      return ReadRngBits(proto);
    case kAttributeIndex<RngStateAttr>:
      return Attributes(RngStateAttr{proto.delta()});
    case kAttributeIndex<FftAttr>:
      return ReadFft(proto);
    case kAttributeIndex<TriangularSolveAttr>:
      return ReadTriangularSolve(proto);
    case kAttributeIndex<CholeskyAttr>:
      return Attributes(CholeskyAttr{proto.cholesky_options().lower()});
    case kAttributeIndex<BatchNormAttr>:
      return Attributes(BatchNormAttr{proto.epsilon(), proto.feature_index()});
    case kAttributeIndex<ReducePrecisionAttr>:
      return ReadReducePrecision(proto);
    case kAttributeIndex<FusionAttr>:
      return Attributes(FusionAttr{proto.fusion_kind()});
    case kAttributeIndex<ChannelAttr>:
      return Attributes(ChannelAttr{proto.channel_id(), proto.is_host_transfer()});
    case kAttributeIndex<FeedAttr>:
      return ReadFeed(proto, opcode);
    default:
      return Attributes();
  }
}

}  // namespace gangway::hlo

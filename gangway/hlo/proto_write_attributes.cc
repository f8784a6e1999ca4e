#include <variant>

#include "absl/strings/str_cat.h"
#include "gangway/hlo/attribute_names.h"
#include "gangway/hlo/proto_attributes.h"
#include "gangway/hlo/proto_values.h"

namespace gangway::hlo {
namespace {

ComparisonType DefaultComparison(DType dtype) {
  if (IsSigned(dtype)) return ComparisonType::kSigned;
  return IsFloat(dtype) || IsComplex(dtype) ? ComparisonType::kFloat : ComparisonType::kUnsigned;
}

void WriteWindow(const Window& window, xla::Window* proto) {
  for (const WindowDim& dim : window) {
    xla::WindowDimension* added = proto->add_dimensions();
    added->set_size(dim.size);
    added->set_stride(dim.stride);
    added->set_padding_low(dim.pad_low);
    added->set_padding_high(dim.pad_high);
    added->set_window_dilation(dim.window_dilation);
    added->set_base_dilation(dim.base_dilation);
    added->set_window_reversal(dim.reversal);
  }
}

void WritePrecision(const PrecisionConfig& precision, xla::PrecisionConfig* proto) {
  for (int i = 0; i < 2; ++i) {  // XLA lists one per operand, the default ones too
    const bool given = i < static_cast<int>(precision.operands.size());
    proto->add_operand_precision(
        static_cast<xla::PrecisionConfig::Precision>(given ? precision.operands[i] : Precision::kDefault));
  }
  proto->set_algorithm(static_cast<xla::PrecisionConfig::Algorithm>(precision.algorithm));
}

void WriteGroups(const ReplicaGroupList& list, xla::HloInstructionProto* proto) {
  using Form = ReplicaGroupList::Form;
  if (list.form == Form::kMeshAxes) {
    auto* groups = proto->mutable_mesh_axes_replica_group_list();
    WriteMesh(*list.mesh, groups->mutable_mesh());
    WriteAxes(*list.mesh, list.axes, groups->mutable_axes());
    return;
  }
  if (list.form == Form::kIota) {
    auto* groups = proto->mutable_iota_collective_device_list();
    groups->set_num_replica_groups(list.num_groups);
    groups->set_num_devices_per_group(list.group_size);
    AddAll(list.iota_reshape, groups->mutable_iota_reshape_dims());
    AddAll(list.iota_transpose, groups->mutable_iota_transpose_perm());
    for (size_t i = list.iota_transpose.size(); i < list.iota_reshape.size(); ++i) {
      groups->add_iota_transpose_perm(static_cast<int>(i));
    }
    return;
  }
  auto* groups = proto->mutable_collective_device_list();
  for (const std::vector<int64_t>& group : list.groups) {
    AddAll(group, groups->add_replica_groups()->mutable_replica_ids());
  }
}

// One overload per attribute family.
struct AttributeProtoWriter {
  const Instruction& instruction;
  xla::HloInstructionProto* proto;

  void operator()(const std::monostate&) {}
  void operator()(const DimensionsAttr& attr) { AddAll(attr.dims, proto->mutable_dimensions()); }
  void operator()(const ParameterAttr& attr) { proto->set_parameter_number(attr.number); }
  void operator()(const ConstantAttr& attr) {
    if (attr.literal != nullptr) WriteLiteral(*attr.literal, proto->mutable_literal());
  }
  void operator()(const TupleIndexAttr& attr) { proto->set_tuple_index(attr.index); }
  void operator()(const SliceAttr& attr) {
    for (size_t i = 0; i < attr.starts.size(); ++i) {
      auto* dim = proto->add_slice_dimensions();
      dim->set_start(attr.starts[i]);
      dim->set_limit(attr.limits[i]);
      dim->set_stride(attr.strides[i]);
    }
  }
  void operator()(const DynamicSliceAttr& attr) { AddAll(attr.sizes, proto->mutable_dynamic_slice_sizes()); }
  void operator()(const PadAttr& attr) {
    proto->mutable_padding_config();
    for (const PadDim& dim : attr.dims) {
      auto* added = proto->mutable_padding_config()->add_dimensions();
      added->set_edge_padding_low(dim.low);
      added->set_edge_padding_high(dim.high);
      added->set_interior_padding(dim.interior);
    }
  }
  void operator()(const DotAttr& attr) {
    xla::DotDimensionNumbers* numbers = proto->mutable_dot_dimension_numbers();
    AddAll(attr.lhs_batch, numbers->mutable_lhs_batch_dimensions());
    AddAll(attr.rhs_batch, numbers->mutable_rhs_batch_dimensions());
    AddAll(attr.lhs_contracting, numbers->mutable_lhs_contracting_dimensions());
    AddAll(attr.rhs_contracting, numbers->mutable_rhs_contracting_dimensions());
    WritePrecision(attr.precision, proto->mutable_precision_config());
  }
  void operator()(const WindowAttr& attr) { WriteWindow(attr.window, proto->mutable_window()); }
  void operator()(const ConvolutionAttr& attr) {
    WriteWindow(attr.window, proto->mutable_window());
    auto* numbers = proto->mutable_convolution_dimension_numbers();
    numbers->set_input_batch_dimension(attr.input_batch);
    numbers->set_input_feature_dimension(attr.input_feature);
    AddAll(attr.input_spatial, numbers->mutable_input_spatial_dimensions());
    numbers->set_kernel_input_feature_dimension(attr.kernel_input_feature);
    numbers->set_kernel_output_feature_dimension(attr.kernel_output_feature);
    AddAll(attr.kernel_spatial, numbers->mutable_kernel_spatial_dimensions());
    numbers->set_output_batch_dimension(attr.output_batch);
    numbers->set_output_feature_dimension(attr.output_feature);
    AddAll(attr.output_spatial, numbers->mutable_output_spatial_dimensions());
    proto->set_feature_group_count(attr.feature_groups);
    proto->set_batch_group_count(attr.batch_groups);
    WritePrecision(attr.precision, proto->mutable_precision_config());
  }
  void operator()(const GatherAttr& attr) {
    xla::GatherDimensionNumbers* numbers = proto->mutable_gather_dimension_numbers();
    AddAll(attr.offset_dims, numbers->mutable_offset_dims());
    AddAll(attr.collapsed_slice_dims, numbers->mutable_collapsed_slice_dims());
    AddAll(attr.start_index_map, numbers->mutable_start_index_map());
    AddAll(attr.operand_batching_dims, numbers->mutable_operand_batching_dims());
    AddAll(attr.start_indices_batching_dims, numbers->mutable_start_indices_batching_dims());
    numbers->set_index_vector_dim(attr.index_vector_dim);
    AddAll(attr.slice_sizes, proto->mutable_gather_slice_sizes());
    proto->set_indices_are_sorted(attr.indices_are_sorted);
  }
  void operator()(const ScatterAttr& attr) {
    xla::ScatterDimensionNumbers* numbers = proto->mutable_scatter_dimension_numbers();
    AddAll(attr.update_window_dims, numbers->mutable_update_window_dims());
    AddAll(attr.inserted_window_dims, numbers->mutable_inserted_window_dims());
    AddAll(attr.scatter_dims_to_operand_dims, numbers->mutable_scatter_dims_to_operand_dims());
    AddAll(attr.input_batching_dims, numbers->mutable_input_batching_dims());
    AddAll(attr.scatter_indices_batching_dims, numbers->mutable_scatter_indices_batching_dims());
    numbers->set_index_vector_dim(attr.index_vector_dim);
    proto->set_indices_are_sorted(attr.indices_are_sorted);
    proto->set_unique_indices(attr.unique_indices);
  }
  void operator()(const CompareAttr& attr) {
    proto->set_comparison_direction(std::string(NameOf(attr.direction)));
    ComparisonType type = attr.order_total ? ComparisonType::kTotalOrder : attr.type;
    if (type == ComparisonType::kDefault && instruction.operand_count() > 0) {
      type = DefaultComparison(instruction.operand(0)->shape().dtype());
    }
    proto->set_comparison_type(std::string(NameOf(type)));
    if (attr.order_total) proto->set_comparison_order("TOTAL");
  }
  void operator()(const SortAttr& attr) {
    proto->add_dimensions(attr.dimension);
    proto->set_is_stable(attr.is_stable);
  }
  void operator()(const TopKAttr& attr) {
    proto->set_k(attr.k);
    proto->set_largest(attr.largest);
  }
  void operator()(const CollectiveAttr& attr) {
    const bool permute =
        instruction.opcode() == Opcode::kCollectivePermute || instruction.opcode() == Opcode::kCollectivePermuteStart;
    if (!permute) WriteGroups(attr.groups, proto);
    for (const auto& [source, target] : attr.source_target_pairs) {
      auto* pair = proto->add_source_target_pairs();
      pair->set_source(source);
      pair->set_target(target);
    }
    if (attr.dimension.has_value()) proto->add_dimensions(*attr.dimension);
    if (attr.channel_id.has_value()) proto->set_channel_id(*attr.channel_id);
    proto->set_use_global_device_ids(attr.use_global_device_ids);
    proto->set_constrain_layout(attr.constrain_layout);
  }
  void operator()(const CustomCallAttr& attr) {
    proto->set_custom_call_target(attr.target);
    proto->set_backend_config(attr.backend_config);
    proto->set_custom_call_api_version(static_cast<xla::CustomCallApiVersion>(attr.api));
    proto->set_custom_call_has_side_effect(attr.has_side_effect);
    for (const OutputAlias& alias : attr.aliases) {
      auto* added = proto->add_output_operand_aliasing();
      AddAll(alias.output_index, added->mutable_output_shape_index());
      added->set_operand_index(alias.operand);
      AddAll(alias.operand_index, added->mutable_operand_shape_index());
    }
    if (!attr.operand_shapes_with_layout.has_value()) return;
    proto->set_constrain_layout(true);
    for (const Shape& shape : *attr.operand_shapes_with_layout) {
      WriteShape(shape, proto->add_operand_shapes_with_layout());
    }
  }
  void operator()(const RngAttr& attr) {
    proto->set_distribution(static_cast<xla::RandomDistribution>(attr.distribution));
  }
  void operator()(const RngBitGeneratorAttr& attr) {
    proto->set_rng_algorithm(static_cast<xla::RandomAlgorithm>(attr.algorithm));
  }
  void operator()(const RngStateAttr& attr) { proto->set_delta(attr.delta); }
  void operator()(const FftAttr& attr) {
    proto->set_fft_type(static_cast<xla::FftType>(attr.type));
    AddAll(attr.lengths, proto->mutable_fft_length());
  }
  void operator()(const TriangularSolveAttr& attr) {
    xla::TriangularSolveOptions* options = proto->mutable_triangular_solve_options();
    options->set_left_side(attr.left_side);
    options->set_lower(attr.lower);
    options->set_unit_diagonal(attr.unit_diagonal);
    options->set_transpose_a(static_cast<xla::TriangularSolveOptions::Transpose>(attr.transpose_a));
  }
  void operator()(const CholeskyAttr& attr) { proto->mutable_cholesky_options()->set_lower(attr.lower); }
  void operator()(const BatchNormAttr& attr) {
    proto->set_epsilon(attr.epsilon);
    proto->set_feature_index(attr.feature);
  }
  void operator()(const ReducePrecisionAttr& attr) {
    proto->set_exponent_bits(attr.exponent_bits);
    proto->set_mantissa_bits(attr.mantissa_bits);
  }
  void operator()(const DimensionAttr& attr) { proto->add_dimensions(attr.dimension); }
  void operator()(const FusionAttr& attr) { proto->set_fusion_kind(attr.kind); }
  void operator()(const ChannelAttr& attr) {
    proto->set_channel_id(attr.channel_id);
    proto->set_is_host_transfer(attr.is_host_transfer);
  }
  void operator()(const FeedAttr& attr) {
    if (instruction.opcode() == Opcode::kInfeed) {
      proto->set_infeed_config(attr.config);
      return;
    }
    proto->set_outfeed_config(attr.config);
    WriteShape(attr.outfeed_shape, proto->mutable_outfeed_shape());
  }
};

}  // namespace

absl::Status WriteAttributes(const Instruction& instruction, xla::HloInstructionProto* proto) {
  if (instruction.opcode() == Opcode::kRaggedDot || instruction.opcode() == Opcode::kDomain) {
    return absl::UnimplementedError(absl::StrCat(OpcodeName(instruction.opcode()), " has no proto form here"));
  }
  std::visit(AttributeProtoWriter{instruction, proto}, instruction.attributes());
  return absl::OkStatus();
}

}  // namespace gangway::hlo

// Text of gather and scatter dimension numbers.
#include "gangway/hlo/text_attributes.h"

namespace gangway::hlo {
namespace {

absl::StatusOr<Attributes> ReadGather(const AttributeContext&, AttributeText* text) {
  GatherAttr attr;
  GW_ASSIGN_OR_RETURN(attr.offset_dims, text->TakeDims("offset_dims"));
  GW_ASSIGN_OR_RETURN(attr.collapsed_slice_dims, text->TakeDims("collapsed_slice_dims"));
  GW_ASSIGN_OR_RETURN(attr.start_index_map, text->TakeDims("start_index_map"));
  GW_ASSIGN_OR_RETURN(attr.operand_batching_dims, text->TakeDims("operand_batching_dims"));
  GW_ASSIGN_OR_RETURN(attr.start_indices_batching_dims, text->TakeDims("start_indices_batching_dims"));
  GW_ASSIGN_OR_RETURN(attr.index_vector_dim, text->TakeInt("index_vector_dim"));
  GW_ASSIGN_OR_RETURN(attr.slice_sizes, text->TakeDims("slice_sizes"));
  GW_ASSIGN_OR_RETURN(attr.indices_are_sorted, text->TakeBool("indices_are_sorted"));
  return Attributes(std::move(attr));
}

void WriteGather(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<GatherAttr>();
  writer->Dims("offset_dims", attr.offset_dims);
  writer->Dims("collapsed_slice_dims", attr.collapsed_slice_dims);
  writer->Dims("start_index_map", attr.start_index_map);
  writer->DimsIf("operand_batching_dims", attr.operand_batching_dims);
  writer->DimsIf("start_indices_batching_dims", attr.start_indices_batching_dims);
  writer->Add("index_vector_dim", attr.index_vector_dim);
  writer->Dims("slice_sizes", attr.slice_sizes);
  writer->Flag("indices_are_sorted", attr.indices_are_sorted);
}

absl::StatusOr<Attributes> ReadScatter(const AttributeContext&, AttributeText* text) {
  ScatterAttr attr;
  GW_ASSIGN_OR_RETURN(attr.update_window_dims, text->TakeDims("update_window_dims"));
  GW_ASSIGN_OR_RETURN(attr.inserted_window_dims, text->TakeDims("inserted_window_dims"));
  GW_ASSIGN_OR_RETURN(attr.scatter_dims_to_operand_dims, text->TakeDims("scatter_dims_to_operand_dims"));
  GW_ASSIGN_OR_RETURN(attr.input_batching_dims, text->TakeDims("input_batching_dims"));
  GW_ASSIGN_OR_RETURN(attr.scatter_indices_batching_dims, text->TakeDims("scatter_indices_batching_dims"));
  GW_ASSIGN_OR_RETURN(attr.index_vector_dim, text->TakeInt("index_vector_dim"));
  GW_ASSIGN_OR_RETURN(attr.indices_are_sorted, text->TakeBool("indices_are_sorted"));
  GW_ASSIGN_OR_RETURN(attr.unique_indices, text->TakeBool("unique_indices"));
  return Attributes(std::move(attr));
}

void WriteScatter(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<ScatterAttr>();
  writer->Dims("update_window_dims", attr.update_window_dims);
  writer->Dims("inserted_window_dims", attr.inserted_window_dims);
  writer->Dims("scatter_dims_to_operand_dims", attr.scatter_dims_to_operand_dims);
  writer->DimsIf("input_batching_dims", attr.input_batching_dims);
  writer->DimsIf("scatter_indices_batching_dims", attr.scatter_indices_batching_dims);
  writer->Add("index_vector_dim", attr.index_vector_dim);
  writer->Flag("indices_are_sorted", attr.indices_are_sorted);
  writer->Flag("unique_indices", attr.unique_indices);
}

constexpr AttributeRow kRows[] = {
    {Opcode::kGather, ReadGather, WriteGather},
    {Opcode::kScatter, ReadScatter, WriteScatter},
};

}  // namespace

absl::Span<const AttributeRow> GatherAttributeRows() { return kRows; }

}  // namespace gangway::hlo

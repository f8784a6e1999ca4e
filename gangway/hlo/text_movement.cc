// Text of attributes that list dimensions: broadcast, transpose, reduce, iota, slice, pad, ...
#include "absl/strings/str_split.h"
#include "gangway/hlo/text_attributes.h"

namespace gangway::hlo {
namespace {

absl::StatusOr<Attributes> ReadDimensions(const AttributeContext&, AttributeText* text) {
  GW_ASSIGN_OR_RETURN(DimVector dims, text->TakeDims("dimensions"));
  return Attributes(DimensionsAttr{std::move(dims)});
}

void WriteDimensions(const Instruction& instruction, AttributeWriter* writer) {
  writer->Dims("dimensions", instruction.attr<DimensionsAttr>().dims);
}

absl::StatusOr<Attributes> ReadIota(const AttributeContext&, AttributeText* text) {
  GW_ASSIGN_OR_RETURN(int64_t dim, text->TakeInt("iota_dimension"));
  return Attributes(DimensionsAttr{{dim}});
}

void WriteIota(const Instruction& instruction, AttributeWriter* writer) {
  writer->Add("iota_dimension", instruction.attr<DimensionsAttr>().dims.at(0));
}

// {[0:2], [0:4:2]}
absl::StatusOr<Attributes> ReadSlice(const AttributeContext&, AttributeText* text) {
  std::optional<TextLexer> lexer = text->Take("slice");
  if (!lexer.has_value()) return absl::InvalidArgumentError("attribute slice is missing");
  SliceAttr attr;
  GW_RETURN_IF_ERROR(lexer->Expect("{"));
  while (!lexer->Consume("}")) {
    if (!attr.starts.empty()) GW_RETURN_IF_ERROR(lexer->Expect(","));
    GW_RETURN_IF_ERROR(lexer->Expect("["));
    GW_ASSIGN_OR_RETURN(int64_t start, lexer->Int());
    GW_RETURN_IF_ERROR(lexer->Expect(":"));
    GW_ASSIGN_OR_RETURN(int64_t limit, lexer->Int());
    int64_t stride = 1;
    if (lexer->Consume(":")) {
      GW_ASSIGN_OR_RETURN(stride, lexer->Int());
    }
    GW_RETURN_IF_ERROR(lexer->Expect("]"));
    attr.starts.push_back(start);
    attr.limits.push_back(limit);
    attr.strides.push_back(stride);
  }
  return Attributes(std::move(attr));
}

void WriteSlice(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<SliceAttr>();
  bool strided = false;
  for (int64_t stride : attr.strides) strided |= stride != 1;
  std::string text = "{";
  for (size_t i = 0; i < attr.starts.size(); ++i) {
    absl::StrAppend(&text, i > 0 ? ", [" : "[", attr.starts[i], ":", attr.limits[i]);
    if (strided) absl::StrAppend(&text, ":", attr.strides[i]);
    absl::StrAppend(&text, "]");
  }
  writer->Add("slice", text + "}");
}

absl::StatusOr<Attributes> ReadDynamicSlice(const AttributeContext&, AttributeText* text) {
  GW_ASSIGN_OR_RETURN(DimVector sizes, text->TakeDims("dynamic_slice_sizes"));
  return Attributes(DynamicSliceAttr{std::move(sizes)});
}

void WriteDynamicSlice(const Instruction& instruction, AttributeWriter* writer) {
  writer->Dims("dynamic_slice_sizes", instruction.attr<DynamicSliceAttr>().sizes);
}

// low_high or low_high_interior per dimension, joined by x.
absl::StatusOr<Attributes> ReadPad(const AttributeContext&, AttributeText* text) {
  std::optional<std::string> padding = text->TakeRaw("padding");
  PadAttr attr;
  if (!padding.has_value()) return Attributes(std::move(attr));  // a scalar has none
  for (absl::string_view dim : absl::StrSplit(*padding, 'x')) {
    std::vector<absl::string_view> parts = absl::StrSplit(dim, '_');
    PadDim pad;
    if ((parts.size() != 2 && parts.size() != 3) || !absl::SimpleAtoi(parts[0], &pad.low) ||
        !absl::SimpleAtoi(parts[1], &pad.high) || (parts.size() == 3 && !absl::SimpleAtoi(parts[2], &pad.interior))) {
      return absl::InvalidArgumentError(absl::StrCat("padding: expected low_high_interior, not '", dim, "'"));
    }
    attr.dims.push_back(pad);
  }
  return Attributes(std::move(attr));
}

void WritePad(const Instruction& instruction, AttributeWriter* writer) {
  const auto& dims = instruction.attr<PadAttr>().dims;
  if (dims.empty()) return;
  bool interior = false;
  for (const PadDim& dim : dims) interior |= dim.interior != 0;
  writer->Add("padding", absl::StrJoin(dims, "x", [&](std::string* out, const PadDim& dim) {
                absl::StrAppend(out, dim.low, "_", dim.high);
                if (interior) absl::StrAppend(out, "_", dim.interior);
              }));
}

absl::StatusOr<Attributes> ReadDimension(const AttributeContext&, AttributeText* text) {
  GW_ASSIGN_OR_RETURN(DimVector dims, text->TakeDims("dimensions"));
  if (dims.size() != 1) return absl::InvalidArgumentError("dimensions must name one");
  return Attributes(DimensionAttr{dims[0]});
}

void WriteDimension(const Instruction& instruction, AttributeWriter* writer) {
  writer->Dims("dimensions", {instruction.attr<DimensionAttr>().dimension});
}

absl::StatusOr<Attributes> ReadTupleIndex(const AttributeContext&, AttributeText* text) {
  GW_ASSIGN_OR_RETURN(int64_t index, text->TakeInt("index"));
  return Attributes(TupleIndexAttr{index});
}

void WriteTupleIndex(const Instruction& instruction, AttributeWriter* writer) {
  writer->Add("index", instruction.attr<TupleIndexAttr>().index);
}

constexpr AttributeRow kRows[] = {
    {Opcode::kBroadcast, ReadDimensions, WriteDimensions},
    {Opcode::kConcatenate, ReadDimensions, WriteDimensions},
    {Opcode::kDynamicSlice, ReadDynamicSlice, WriteDynamicSlice},
    {Opcode::kGetDimensionSize, ReadDimension, WriteDimension},
    {Opcode::kGetTupleElement, ReadTupleIndex, WriteTupleIndex},
    {Opcode::kIota, ReadIota, WriteIota},
    {Opcode::kMap, ReadDimensions, WriteDimensions},
    {Opcode::kPad, ReadPad, WritePad},
    {Opcode::kReduce, ReadDimensions, WriteDimensions},
    {Opcode::kReverse, ReadDimensions, WriteDimensions},
    {Opcode::kSetDimensionSize, ReadDimension, WriteDimension},
    {Opcode::kSlice, ReadSlice, WriteSlice},
    {Opcode::kTranspose, ReadDimensions, WriteDimensions},
};

}  // namespace

absl::Span<const AttributeRow> MovementAttributeRows() { return kRows; }

}  // namespace gangway::hlo

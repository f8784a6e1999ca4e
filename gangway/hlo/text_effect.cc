// Text of custom calls, fusions, feeds and sends.
#include "gangway/hlo/attribute_names.h"
#include "gangway/hlo/text_attributes.h"

namespace gangway::hlo {
namespace {

absl::StatusOr<std::vector<Shape>> ReadShapes(TextLexer* lexer) {
  std::vector<Shape> shapes;
  GW_RETURN_IF_ERROR(lexer->Expect("{"));
  while (!lexer->Consume("}")) {
    if (!shapes.empty()) GW_RETURN_IF_ERROR(lexer->Expect(","));
    GW_ASSIGN_OR_RETURN(Shape shape, lexer->ReadShape());
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

// {{0}: (1, {}), {1}: (0, {2}, must-alias)}; the kind may be left out.
absl::StatusOr<std::vector<OutputAlias>> ReadAliases(TextLexer* lexer) {
  std::vector<OutputAlias> aliases;
  GW_RETURN_IF_ERROR(lexer->Expect("{"));
  while (!lexer->Consume("}")) {
    if (!aliases.empty()) GW_RETURN_IF_ERROR(lexer->Expect(","));
    OutputAlias alias;
    GW_ASSIGN_OR_RETURN(alias.output_index, lexer->Dims());
    GW_RETURN_IF_ERROR(lexer->Expect(":"));
    GW_RETURN_IF_ERROR(lexer->Expect("("));
    GW_ASSIGN_OR_RETURN(alias.operand, lexer->Int());
    GW_RETURN_IF_ERROR(lexer->Expect(","));
    GW_ASSIGN_OR_RETURN(alias.operand_index, lexer->Dims());
    if (lexer->Consume(",")) GW_RETURN_IF_ERROR(lexer->Name().status());
    GW_RETURN_IF_ERROR(lexer->Expect(")"));
    aliases.push_back(std::move(alias));
  }
  return aliases;
}

absl::StatusOr<Attributes> ReadCustomCall(const AttributeContext&, AttributeText* text) {
  CustomCallAttr attr;
  GW_ASSIGN_OR_RETURN(attr.target, text->TakeString("custom_call_target"));
  if (std::optional<TextLexer> lexer = text->Take("operand_layout_constraints")) {
    GW_ASSIGN_OR_RETURN(attr.operand_shapes_with_layout, ReadShapes(&*lexer));
  }
  GW_ASSIGN_OR_RETURN(attr.has_side_effect, text->TakeBool("custom_call_has_side_effect"));
  if (std::optional<TextLexer> lexer = text->Take("output_to_operand_aliasing")) {
    GW_ASSIGN_OR_RETURN(attr.aliases, ReadAliases(&*lexer));
  }
  GW_ASSIGN_OR_RETURN(std::string api, text->TakeWord("api_version"));
  if (!api.empty()) {
    std::optional<CustomCallApi> value = ValueOf<CustomCallApi>(api);
    if (!value.has_value()) return absl::InvalidArgumentError(absl::StrCat("api_version: unknown '", api, "'"));
    attr.api = *value;
  }
  GW_ASSIGN_OR_RETURN(attr.backend_config, text->TakeString("backend_config"));
  return Attributes(std::move(attr));
}

void WriteCustomCall(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<CustomCallAttr>();
  writer->Quoted("custom_call_target", attr.target);
  if (attr.operand_shapes_with_layout.has_value()) {
    std::string shapes =
        absl::StrJoin(*attr.operand_shapes_with_layout, ", ",
                      [](std::string* out, const Shape& shape) { absl::StrAppend(out, shape.ToString(true)); });
    writer->Add("operand_layout_constraints", absl::StrCat("{", shapes, "}"));
  }
  writer->Flag("custom_call_has_side_effect", attr.has_side_effect);
  if (!attr.aliases.empty()) {
    std::string aliases = absl::StrJoin(attr.aliases, ", ", [](std::string* out, const OutputAlias& alias) {
      absl::StrAppend(out, "{", absl::StrJoin(alias.output_index, ","), "}: (", alias.operand, ", {",
                      absl::StrJoin(alias.operand_index, ","), "})");
    });
    writer->Add("output_to_operand_aliasing", absl::StrCat("{", aliases, "}"));
  }
  writer->AddIf(attr.api != CustomCallApi::kOriginal, "api_version", NameOf(attr.api));
}

absl::StatusOr<Attributes> ReadFusion(const AttributeContext&, AttributeText* text) {
  GW_ASSIGN_OR_RETURN(std::string kind, text->TakeWord("kind"));
  return Attributes(FusionAttr{std::move(kind)});
}

void WriteFusion(const Instruction& instruction, AttributeWriter* writer) {
  writer->Add("kind", instruction.attr<FusionAttr>().kind);
}

absl::StatusOr<Attributes> ReadChannel(const AttributeContext&, AttributeText* text) {
  ChannelAttr attr;
  GW_ASSIGN_OR_RETURN(attr.channel_id, text->TakeInt("channel_id", 0));
  GW_ASSIGN_OR_RETURN(attr.is_host_transfer, text->TakeBool("is_host_transfer"));
  return Attributes(attr);
}

void WriteChannel(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<ChannelAttr>();
  if (attr.channel_id != 0) writer->Add("channel_id", attr.channel_id);
  writer->Flag("is_host_transfer", attr.is_host_transfer);
}

absl::StatusOr<Attributes> ReadInfeed(const AttributeContext&, AttributeText* text) {
  FeedAttr attr;
  GW_ASSIGN_OR_RETURN(attr.config, text->TakeString("infeed_config"));
  return Attributes(std::move(attr));
}

void WriteInfeed(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<FeedAttr>();
  if (!attr.config.empty()) writer->Quoted("infeed_config", attr.config);
}

absl::StatusOr<Attributes> ReadOutfeed(const AttributeContext& context, AttributeText* text) {
  FeedAttr attr;
  if (std::optional<TextLexer> lexer = text->Take("outfeed_shape")) {
    GW_ASSIGN_OR_RETURN(attr.outfeed_shape, lexer->ReadShape());
  } else if (!context.operands.empty()) {
    attr.outfeed_shape = context.operands[0]->shape();
  }
  GW_ASSIGN_OR_RETURN(attr.config, text->TakeString("outfeed_config"));
  return Attributes(std::move(attr));
}

void WriteOutfeed(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<FeedAttr>();
  writer->Add("outfeed_shape", attr.outfeed_shape.ToString(/*with_layout=*/true));
  if (!attr.config.empty()) writer->Quoted("outfeed_config", attr.config);
}

constexpr AttributeRow kRows[] = {
    {Opcode::kCustomCall, ReadCustomCall, WriteCustomCall},
    {Opcode::kFusion, ReadFusion, WriteFusion},
    {Opcode::kInfeed, ReadInfeed, WriteInfeed},
    {Opcode::kOutfeed, ReadOutfeed, WriteOutfeed},
    {Opcode::kRecv, ReadChannel, WriteChannel},
    {Opcode::kRecvDone, ReadChannel, WriteChannel},
    {Opcode::kSend, ReadChannel, WriteChannel},
    {Opcode::kSendDone, ReadChannel, WriteChannel},
};

}  // namespace

absl::Span<const AttributeRow> EffectAttributeRows() { return kRows; }

}  // namespace gangway::hlo

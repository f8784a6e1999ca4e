#include "gangway/hlo/text_attributes.h"

#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"

namespace gangway::hlo {
namespace {

// More than any operation has; each new one is compared with those before it.
constexpr size_t kMaxAttributes = 256;

}  // namespace

absl::StatusOr<AttributeText> AttributeText::Read(TextLexer* lexer) {
  AttributeText text(lexer->whole_text());
  while (lexer->Consume(",")) {
    Entry entry;
    GW_ASSIGN_OR_RETURN(entry.key, lexer->Name());
    GW_RETURN_IF_ERROR(lexer->Expect("="));
    GW_ASSIGN_OR_RETURN(entry.value, lexer->RawValue());
    // mesh['x'=2,'y'=2], device_ids=(...) {'x'}: the comma belongs to the replica groups.
    if (entry.key == "device_ids" && !text.entries_.empty() && text.entries_.back().key == "replica_groups") {
      absl::string_view& groups = text.entries_.back().value;
      groups = absl::string_view(groups.data(), entry.value.data() + entry.value.size() - groups.data());
      continue;
    }
    if (text.entries_.size() == kMaxAttributes) {
      return lexer->Error(absl::StrCat("at most ", kMaxAttributes, " attributes"));
    }
    if (text.Find(entry.key) != nullptr) return lexer->Error(absl::StrCat("attribute ", entry.key, " only once"));
    text.entries_.push_back(entry);
  }
  return text;
}

AttributeText::Entry* AttributeText::Find(absl::string_view key) {
  for (Entry& entry : entries_) {
    if (entry.key == key && !entry.taken) return &entry;
  }
  return nullptr;
}

std::optional<TextLexer> AttributeText::Take(absl::string_view key) {
  Entry* entry = Find(key);
  if (entry == nullptr) return std::nullopt;
  entry->taken = true;
  return TextLexer(whole_, entry->value);
}

std::optional<std::string> AttributeText::TakeRaw(absl::string_view key) {
  Entry* entry = Find(key);
  if (entry == nullptr) return std::nullopt;
  entry->taken = true;
  return std::string(entry->value);
}

absl::StatusOr<int64_t> AttributeText::TakeInt(absl::string_view key, std::optional<int64_t> fallback) {
  std::optional<TextLexer> lexer = Take(key);
  if (!lexer.has_value()) {
    if (fallback.has_value()) return *fallback;
    return absl::InvalidArgumentError(absl::StrCat("attribute ", key, " is missing"));
  }
  GW_ASSIGN_OR_RETURN_WITH(int64_t value, lexer->Int(), key);
  GW_RETURN_IF_ERROR_WITH(lexer->ExpectEnd(), key);
  return value;
}

absl::StatusOr<bool> AttributeText::TakeBool(absl::string_view key) {
  std::optional<TextLexer> lexer = Take(key);
  if (!lexer.has_value()) return false;
  GW_ASSIGN_OR_RETURN_WITH(bool value, lexer->Bool(), key);
  GW_RETURN_IF_ERROR_WITH(lexer->ExpectEnd(), key);
  return value;
}

absl::StatusOr<DimVector> AttributeText::TakeDims(absl::string_view key) {
  std::optional<TextLexer> lexer = Take(key);
  if (!lexer.has_value()) return DimVector();
  GW_ASSIGN_OR_RETURN_WITH(DimVector dims, lexer->Dims(), key);
  GW_RETURN_IF_ERROR_WITH(lexer->ExpectEnd(), key);
  return dims;
}

absl::StatusOr<std::string> AttributeText::TakeWord(absl::string_view key) {
  std::optional<TextLexer> lexer = Take(key);
  if (!lexer.has_value()) return std::string();
  GW_ASSIGN_OR_RETURN_WITH(absl::string_view word, lexer->Name(), key);
  GW_RETURN_IF_ERROR_WITH(lexer->ExpectEnd(), key);
  return std::string(word);
}

absl::StatusOr<std::string> AttributeText::TakeString(absl::string_view key) {
  std::optional<TextLexer> lexer = Take(key);
  if (!lexer.has_value()) return std::string();
  if (lexer->Peek() == '{') {
    TextLexer all = *lexer;
    GW_ASSIGN_OR_RETURN_WITH(absl::string_view raw, all.RawValue(), key);
    return std::string(raw);
  }
  GW_ASSIGN_OR_RETURN_WITH(std::string value, lexer->String(), key);
  GW_RETURN_IF_ERROR_WITH(lexer->ExpectEnd(), key);
  return value;
}

std::string AttributeText::Rest() const {
  std::string rest;
  for (const Entry& entry : entries_) {
    if (!entry.taken) absl::StrAppend(&rest, ", ", entry.key, "=", entry.value);
  }
  return rest;
}

void AttributeWriter::Quoted(absl::string_view key, absl::string_view value) {
  Add(key, absl::StrCat("\"", absl::CEscape(value), "\""));
}

const AttributeRow* AttributeRowOf(Opcode opcode) {
  static const std::array<const AttributeRow*, kOpcodeCount> table = [] {
    std::array<const AttributeRow*, kOpcodeCount> rows{};
    for (absl::Span<const AttributeRow> family :
         {MovementAttributeRows(), DotAttributeRows(), WindowAttributeRows(), GatherAttributeRows(),
          CollectiveAttributeRows(), LinalgAttributeRows(), EffectAttributeRows()}) {
      for (const AttributeRow& row : family) rows[static_cast<int>(row.opcode)] = &row;
    }
    return rows;
  }();
  return table[static_cast<int>(opcode)];
}

std::string PrintStringOrBraced(absl::string_view text) {
  return IsBraced(text) ? std::string(text) : absl::StrCat("\"", absl::CEscape(text), "\"");
}

absl::StatusOr<FrontendAttributes> ReadFrontendAttributes(TextLexer lexer) {
  FrontendAttributes attributes;
  GW_RETURN_IF_ERROR(lexer.Expect("{"));
  while (!lexer.Consume("}")) {
    if (!attributes.empty()) GW_RETURN_IF_ERROR(lexer.Expect(","));
    GW_ASSIGN_OR_RETURN(absl::string_view key, lexer.Name());
    GW_RETURN_IF_ERROR(lexer.Expect("="));
    std::string value;
    if (lexer.Peek() == '{') {
      GW_ASSIGN_OR_RETURN(absl::string_view raw, lexer.RawValue());
      value = std::string(raw);
    } else {
      GW_ASSIGN_OR_RETURN(value, lexer.String());
    }
    if (!attributes.emplace(key, std::move(value)).second) return lexer.Error(absl::StrCat(key, " only once"));
  }
  GW_RETURN_IF_ERROR(lexer.ExpectEnd());
  return attributes;
}

std::string PrintFrontendAttributes(const FrontendAttributes& attributes) {
  return absl::StrCat("{",
                      absl::StrJoin(attributes, ",",
                                    [](std::string* out, const auto& entry) {
                                      absl::StrAppend(out, entry.first, "=", PrintStringOrBraced(entry.second));
                                    }),
                      "}");
}

absl::StatusOr<OpMetadata> ReadMetadata(TextLexer lexer) {
  OpMetadata metadata;
  GW_RETURN_IF_ERROR(lexer.Expect("{"));
  while (!lexer.Consume("}")) {
    GW_ASSIGN_OR_RETURN(absl::string_view key, lexer.Name());
    GW_RETURN_IF_ERROR(lexer.Expect("="));
    if (key == "op_type" || key == "op_name" || key == "source_file") {
      std::string& field = key == "op_type"   ? metadata.op_type
                           : key == "op_name" ? metadata.op_name
                                              : metadata.source_file;
      GW_ASSIGN_OR_RETURN(field, lexer.String());
    } else if (key == "source_line" || key == "stack_frame_id") {
      GW_ASSIGN_OR_RETURN(int64_t value, lexer.Int());
      if (value < 0 || value > INT32_MAX) return lexer.Error("a number below 2^31");
      (key == "source_line" ? metadata.source_line : metadata.stack_frame_id) = static_cast<int>(value);
    } else if (lexer.Peek() == '"') {
      GW_ASSIGN_OR_RETURN(std::string value, lexer.String());
      absl::StrAppend(&metadata.rest, metadata.rest.empty() ? "" : " ", key, "=\"", absl::CEscape(value), "\"");
    } else {
      absl::string_view word = lexer.RawWord();
      if (word.empty() || lexer.Peek() == '{') return lexer.Error("a number or a string");
      absl::StrAppend(&metadata.rest, metadata.rest.empty() ? "" : " ", key, "=", word);
    }
    lexer.Consume(",");
  }
  GW_RETURN_IF_ERROR(lexer.ExpectEnd());
  return metadata;
}

std::string PrintMetadata(const OpMetadata& metadata) {
  std::vector<std::string> parts;
  auto quoted = [&](absl::string_view key, absl::string_view value) {
    if (!value.empty()) parts.push_back(absl::StrCat(key, "=\"", absl::CEscape(value), "\""));
  };
  quoted("op_type", metadata.op_type);
  quoted("op_name", metadata.op_name);
  quoted("source_file", metadata.source_file);
  if (metadata.source_line != 0) parts.push_back(absl::StrCat("source_line=", metadata.source_line));
  if (!metadata.rest.empty()) parts.push_back(metadata.rest);
  if (metadata.stack_frame_id != 0) parts.push_back(absl::StrCat("stack_frame_id=", metadata.stack_frame_id));
  return absl::StrCat("{", absl::StrJoin(parts, " "), "}");
}

}  // namespace gangway::hlo

#include "gangway/hlo/text_module.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "gangway/hlo/text_attributes.h"
#include "gangway/mesh/hlo_sharding.h"

namespace gangway::hlo {
namespace {

std::string Index(const DimVector& index) { return absl::StrCat("{", absl::StrJoin(index, ","), "}"); }

// { {0}: (0, {}, must-alias), {1}: (1, {0}, may-alias) }
absl::Status ReadAliases(TextLexer lexer, ModuleConfig* config) {
  GW_RETURN_IF_ERROR(lexer.Expect("{"));
  while (!lexer.Consume("}")) {
    if (!config->aliases.empty()) GW_RETURN_IF_ERROR(lexer.Expect(","));
    InputOutputAlias alias;
    GW_ASSIGN_OR_RETURN(alias.output_index, lexer.Dims());
    GW_RETURN_IF_ERROR(lexer.Expect(":"));
    GW_RETURN_IF_ERROR(lexer.Expect("("));
    GW_ASSIGN_OR_RETURN(alias.parameter, lexer.Int());
    GW_RETURN_IF_ERROR(lexer.Expect(","));
    GW_ASSIGN_OR_RETURN(alias.parameter_index, lexer.Dims());
    if (lexer.Consume(",")) {
      alias.must_alias = lexer.ConsumeWord("must-alias");
      if (!alias.must_alias && !lexer.ConsumeWord("may-alias")) return lexer.Error("must-alias or may-alias");
    }
    GW_RETURN_IF_ERROR(lexer.Expect(")"));
    config->aliases.push_back(std::move(alias));
  }
  return lexer.ExpectEnd();
}

std::string PrintAliases(const ModuleConfig& config) {
  return absl::StrJoin(config.aliases, ", ", [](std::string* out, const InputOutputAlias& alias) {
    absl::StrAppend(out, Index(alias.output_index), ": (", alias.parameter, ", ", Index(alias.parameter_index),
                    alias.must_alias ? ", must-alias)" : ", may-alias)");
  });
}

// { (1, {1}), (2, {}) }
absl::Status ReadDonors(TextLexer lexer, ModuleConfig* config) {
  GW_RETURN_IF_ERROR(lexer.Expect("{"));
  while (!lexer.Consume("}")) {
    if (!config->donors.empty()) GW_RETURN_IF_ERROR(lexer.Expect(","));
    BufferDonor donor;
    GW_RETURN_IF_ERROR(lexer.Expect("("));
    GW_ASSIGN_OR_RETURN(donor.parameter, lexer.Int());
    GW_RETURN_IF_ERROR(lexer.Expect(","));
    GW_ASSIGN_OR_RETURN(donor.parameter_index, lexer.Dims());
    GW_RETURN_IF_ERROR(lexer.Expect(")"));
    config->donors.push_back(std::move(donor));
  }
  return lexer.ExpectEnd();
}

std::string PrintDonors(const ModuleConfig& config) {
  return absl::StrJoin(config.donors, ", ", [](std::string* out, const BufferDonor& donor) {
    absl::StrAppend(out, "(", donor.parameter, ", ", Index(donor.parameter_index), ")");
  });
}

// {(f32[2]{0}, s32[])->f32[2]{0}}
absl::Status ReadEntryLayout(TextLexer lexer, ModuleConfig* config) {
  GW_RETURN_IF_ERROR(lexer.Expect("{"));
  GW_RETURN_IF_ERROR(lexer.Expect("("));
  std::vector<Shape> parameters;
  while (!lexer.Consume(")")) {
    if (!parameters.empty()) GW_RETURN_IF_ERROR(lexer.Expect(","));
    GW_ASSIGN_OR_RETURN(Shape shape, lexer.ReadShape());
    parameters.push_back(std::move(shape));
  }
  GW_RETURN_IF_ERROR(lexer.Expect("->"));
  GW_ASSIGN_OR_RETURN(Shape result, lexer.ReadShape());
  GW_RETURN_IF_ERROR(lexer.Expect("}"));
  config->parameter_layouts = std::move(parameters);
  config->result_layout = std::move(result);
  return lexer.ExpectEnd();
}

absl::StatusOr<std::vector<bool>> ReadFlags(AttributeText* text, absl::string_view key) {
  std::vector<bool> flags;
  std::optional<TextLexer> lexer = text->Take(key);
  if (!lexer.has_value()) return flags;
  GW_RETURN_IF_ERROR(lexer->Expect("{"));
  while (!lexer->Consume("}")) {
    if (!flags.empty()) GW_RETURN_IF_ERROR(lexer->Expect(","));
    GW_ASSIGN_OR_RETURN(bool flag, lexer->Bool());
    flags.push_back(flag);
  }
  return flags;
}

void PrintFlags(absl::string_view key, const std::vector<bool>& flags, AttributeWriter* writer) {
  if (flags.empty() || (flags.size() == 1 && !flags[0])) return;
  std::string text =
      absl::StrJoin(flags, ",", [](std::string* out, bool flag) { absl::StrAppend(out, flag ? "true" : "false"); });
  writer->Add(key, absl::StrCat("{", text, "}"));
}

absl::StatusOr<std::vector<std::string>> ReadStrings(AttributeText* text, absl::string_view key) {
  std::vector<std::string> strings;
  std::optional<TextLexer> lexer = text->Take(key);
  if (!lexer.has_value()) return strings;
  GW_RETURN_IF_ERROR(lexer->Expect("{"));
  while (!lexer->Consume("}")) {
    if (!strings.empty()) GW_RETURN_IF_ERROR(lexer->Expect(","));
    GW_ASSIGN_OR_RETURN(std::string value, lexer->String());
    strings.push_back(std::move(value));
  }
  return strings;
}

void PrintStrings(absl::string_view key, const std::vector<std::string>& strings, AttributeWriter* writer) {
  if (strings.empty()) return;
  std::string text = absl::StrJoin(strings, ",", [](std::string* out, const std::string& value) {
    absl::StrAppend(out, "\"", absl::CEscape(value), "\"");
  });
  writer->Add(key, absl::StrCat("{", text, "}"));
}

absl::Status ReadConfig(AttributeText* text, ModuleConfig* config) {
  GW_ASSIGN_OR_RETURN(config->is_scheduled, text->TakeBool("is_scheduled"));
  if (auto lexer = text->Take("input_output_alias")) GW_RETURN_IF_ERROR(ReadAliases(*lexer, config));
  if (auto lexer = text->Take("buffer_donor")) GW_RETURN_IF_ERROR(ReadDonors(*lexer, config));
  if (auto lexer = text->Take("entry_computation_layout")) GW_RETURN_IF_ERROR(ReadEntryLayout(*lexer, config));
  GW_ASSIGN_OR_RETURN(config->propagate_to_parameters,
                      ReadFlags(text, "allow_spmd_sharding_propagation_to_parameters"));
  GW_ASSIGN_OR_RETURN(config->propagate_to_output, ReadFlags(text, "allow_spmd_sharding_propagation_to_output"));
  GW_ASSIGN_OR_RETURN(config->num_replicas, text->TakeInt("replica_count", 1));
  GW_ASSIGN_OR_RETURN(config->num_partitions, text->TakeInt("num_partitions", 1));
  constexpr int64_t kMaxDevices = int64_t{1} << 24;
  for (int64_t count : {config->num_replicas, config->num_partitions}) {
    if (count < 1 || count > kMaxDevices) return absl::InvalidArgumentError("device counts must be in [1, 2^24]");
  }
  if (auto lexer = text->Take("frontend_attributes")) {
    GW_ASSIGN_OR_RETURN(config->frontend_attributes, ReadFrontendAttributes(*lexer));
  }
  GW_ASSIGN_OR_RETURN(config->parameter_memory_kinds, ReadStrings(text, "parameter_memory_kinds"));
  GW_ASSIGN_OR_RETURN(config->result_memory_kinds, ReadStrings(text, "result_memory_kinds"));
  GW_ASSIGN_OR_RETURN(config->parameter_layout_modes, ReadStrings(text, "parameter_layout_modes"));
  GW_ASSIGN_OR_RETURN(config->result_layout_modes, ReadStrings(text, "result_layout_modes"));
  config->extra_text = text->Rest();
  return absl::OkStatus();
}

std::string PrintEntryLayout(const ModuleConfig& config) {
  // A tuple's text has the parentheses and the counting comments that XLA gives to parameters too.
  Shape parameters = Shape::Tuple(config.parameter_layouts.value_or(std::vector<Shape>()));
  return absl::StrCat("{", parameters.ToString(true), "->", config.result_layout->ToString(true), "}");
}

// Reads `1 value`, `2 value`, ... as long as numbers come.
template <typename ReadValue>
absl::Status ReadTable(absl::string_view title, TextLexer* lexer, ReadValue read_value) {
  if (!lexer->ConsumeWord(title)) return absl::OkStatus();
  for (int64_t next = 1; lexer->Peek() >= '0' && lexer->Peek() <= '9'; ++next) {
    GW_ASSIGN_OR_RETURN(int64_t number, lexer->Int());
    if (number != next) return lexer->Error(absl::StrCat("number ", next, " before"));
    GW_RETURN_IF_ERROR(read_value());
  }
  return absl::OkStatus();
}

// {key=1 key=2}
absl::Status ReadFields(TextLexer* lexer, std::initializer_list<std::pair<absl::string_view, int*>> fields) {
  GW_RETURN_IF_ERROR(lexer->Expect("{"));
  while (!lexer->Consume("}")) {
    GW_ASSIGN_OR_RETURN(absl::string_view key, lexer->Name());
    GW_RETURN_IF_ERROR(lexer->Expect("="));
    GW_ASSIGN_OR_RETURN(int64_t value, lexer->Int());
    if (value < 0 || value > INT32_MAX) return lexer->Error("a number below 2^31 before");
    for (auto [name, field] : fields) {
      if (name == key) *field = static_cast<int>(value);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> ReadModuleLine(TextLexer* lexer) {
  if (!lexer->ConsumeWord("HloModule")) return lexer->Error("HloModule");
  GW_ASSIGN_OR_RETURN(absl::string_view name, lexer->Name());
  auto module = std::make_unique<Module>(std::string(name));
  GW_ASSIGN_OR_RETURN(AttributeText text, AttributeText::Read(lexer));
  GW_RETURN_IF_ERROR_WITH(ReadConfig(&text, &module->config()), "HloModule line");
  GW_RETURN_IF_ERROR_WITH(ReadMeshesAttribute(module.get()), "HloModule line");
  return module;
}

void PrintModuleLine(const Module& module, std::string* out) {
  const ModuleConfig& config = module.config();
  absl::StrAppend(out, "HloModule ", module.name());
  AttributeWriter writer(out);
  writer.Flag("is_scheduled", config.is_scheduled);
  if (!config.aliases.empty()) writer.Add("input_output_alias", absl::StrCat("{ ", PrintAliases(config), " }"));
  if (!config.donors.empty()) writer.Add("buffer_donor", absl::StrCat("{ ", PrintDonors(config), " }"));
  absl::StrAppend(out, config.extra_text);
  if (config.result_layout.has_value()) writer.Add("entry_computation_layout", PrintEntryLayout(config));
  PrintFlags("allow_spmd_sharding_propagation_to_parameters", config.propagate_to_parameters, &writer);
  PrintFlags("allow_spmd_sharding_propagation_to_output", config.propagate_to_output, &writer);
  if (config.num_replicas != 1) writer.Add("replica_count", config.num_replicas);
  if (config.num_partitions != 1) writer.Add("num_partitions", config.num_partitions);
  FrontendAttributes attributes = AttributesWithMeshes(module);
  if (!attributes.empty()) writer.Add("frontend_attributes", PrintFrontendAttributes(attributes));
  PrintStrings("parameter_memory_kinds", config.parameter_memory_kinds, &writer);
  PrintStrings("result_memory_kinds", config.result_memory_kinds, &writer);
  PrintStrings("parameter_layout_modes", config.parameter_layout_modes, &writer);
  PrintStrings("result_layout_modes", config.result_layout_modes, &writer);
  absl::StrAppend(out, "\n\n");
}

absl::Status ReadMeshesAttribute(Module* module) {
  auto it = module->config().frontend_attributes.find(kMeshesAttribute);
  if (it == module->config().frontend_attributes.end()) return absl::OkStatus();
  GW_ASSIGN_OR_RETURN_WITH(MeshTable meshes, ParseSdyMeshes(it->second), kMeshesAttribute);
  module->meshes().assign(meshes.begin(), meshes.end());
  return absl::OkStatus();
}

FrontendAttributes AttributesWithMeshes(const Module& module) {
  FrontendAttributes attributes = module.config().frontend_attributes;
  if (module.meshes().empty() || attributes.contains(kMeshesAttribute)) return attributes;
  auto print_axis = [](std::string* out, const MeshAxis& axis) {
    absl::StrAppend(out, "\"", axis.name, "\"=", axis.size);
  };
  auto print_mesh = [&](std::string* out, const std::pair<std::string, MeshRef>& named) {
    const Mesh& mesh = *named.second;
    absl::StrAppend(out, named.first, " = #sdy.mesh<[", absl::StrJoin(mesh.axes(), ", ", print_axis), "]");
    if (!mesh.IsIota()) absl::StrAppend(out, ", device_ids=[", absl::StrJoin(mesh.device_ids(), ", "), "]");
    absl::StrAppend(out, ">");
  };
  attributes[kMeshesAttribute] = absl::StrCat("{", absl::StrJoin(module.meshes(), ", ", print_mesh), "}");
  return attributes;
}

absl::Status ReadStackFrames(TextLexer* lexer, StackFrames* frames) {
  auto read_string = [&](std::vector<std::string>* strings) -> absl::Status {
    GW_ASSIGN_OR_RETURN(std::string value, lexer->String());
    strings->push_back(std::move(value));
    return absl::OkStatus();
  };
  GW_RETURN_IF_ERROR(ReadTable("FileNames", lexer, [&] { return read_string(&frames->files); }));
  GW_RETURN_IF_ERROR(ReadTable("FunctionNames", lexer, [&] { return read_string(&frames->functions); }));
  GW_RETURN_IF_ERROR(ReadTable("FileLocations", lexer, [&] {
    StackFrames::Location& at = frames->locations.emplace_back();
    return ReadFields(lexer, {{"file_name_id", &at.file},
                              {"function_name_id", &at.function},
                              {"line", &at.line},
                              {"end_line", &at.end_line},
                              {"column", &at.column},
                              {"end_column", &at.end_column}});
  }));
  return ReadTable("StackFrames", lexer, [&]() -> absl::Status {
    StackFrames::Frame& frame = frames->frames.emplace_back();
    int parent_after = 0;  // the text counts "no parent" as 1
    GW_RETURN_IF_ERROR(ReadFields(lexer, {{"file_location_id", &frame.location}, {"parent_frame_id", &parent_after}}));
    frame.parent = std::max(parent_after - 1, 0);
    return absl::OkStatus();
  });
}

void PrintStackFrames(const StackFrames& frames, std::string* out) {
  if (frames.empty()) return;
  auto print_strings = [&](absl::string_view title, const std::vector<std::string>& strings) {
    absl::StrAppend(out, title, "\n");
    for (size_t i = 0; i < strings.size(); ++i) {
      absl::StrAppend(out, i + 1, " \"", absl::CEscape(strings[i]), "\"\n");
    }
    absl::StrAppend(out, "\n");
  };
  print_strings("FileNames", frames.files);
  print_strings("FunctionNames", frames.functions);
  absl::StrAppend(out, "FileLocations\n");
  for (size_t i = 0; i < frames.locations.size(); ++i) {
    const StackFrames::Location& at = frames.locations[i];
    absl::StrAppend(out, i + 1, " {file_name_id=", at.file, " function_name_id=", at.function, " line=", at.line);
    absl::StrAppend(out, " end_line=", at.end_line, " column=", at.column, " end_column=", at.end_column, "}\n");
  }
  absl::StrAppend(out, "\nStackFrames\n");
  for (size_t i = 0; i < frames.frames.size(); ++i) {
    const StackFrames::Frame& frame = frames.frames[i];
    absl::StrAppend(out, i + 1, " {file_location_id=", frame.location, " parent_frame_id=", frame.parent + 1, "}\n");
  }
  absl::StrAppend(out, "\n\n");
}

}  // namespace gangway::hlo

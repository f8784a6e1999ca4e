#include "gangway/stablehlo/entry_function.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "gangway/mesh/proto/sharding_attribute.h"
#include "gangway/stablehlo/location.h"
#include "gangway/stablehlo/op_context.h"

namespace gangway::stablehlo {
namespace {

using bytecode::AttributeId;
using hlo::Instruction;
using hlo::Opcode;

// What a function says about one argument or result.
struct Annotations {
  std::optional<Sharding> sharding;
  std::optional<int64_t> aliasing_output;
  bool buffer_donor = false;
  std::string memory_kind;
  std::string layout_mode;
};

class EntryFunction {
 public:
  EntryFunction(Translation& program, const OpView& function) : program_(program), function_(function) {}

  absl::Status Convert() {
    const bytecode::Operation& op = function_.op();
    if (op.regions.size() != 1) return OpContext::Error("has no body");
    GW_ASSIGN_OR_RETURN(const bytecode::Block* block, Translation::SingleBlock(op.regions[0]));
    scope_.computation = program_.module().AddComputation("main");
    GW_RETURN_IF_ERROR(AddParameters(*block));
    GW_ASSIGN_OR_RETURN(std::vector<Instruction*> results, program_.ConvertBlock(*block, scope_));
    GW_RETURN_IF_ERROR(SetResults(std::move(results)));
    program_.module().set_entry(scope_.computation);
    return absl::OkStatus();
  }

 private:
  hlo::ModuleConfig& config() { return program_.module().config(); }

  absl::StatusOr<std::vector<OpView::Dictionary>> ReadDictionaries(absl::string_view attribute, size_t count) {
    GW_ASSIGN_OR_RETURN(std::vector<AttributeId> ids, function_.Array(attribute));
    std::vector<OpView::Dictionary> dictionaries(count);
    if (ids.empty()) return dictionaries;
    if (ids.size() != count) {
      return OpContext::Error(
          absl::StrCat("attribute ", attribute, ": ", ids.size(), " entries for ", count, " values"));
    }
    for (size_t i = 0; i < count; ++i) {
      GW_ASSIGN_OR_RETURN_WITH(const bytecode::DictionaryAttr* dictionary,
                               program_.entries().attribute_as<bytecode::DictionaryAttr>(ids[i]),
                               OpView::Context(attribute));
      dictionaries[i] = dictionary->entries;
    }
    return dictionaries;
  }

  absl::Status ReadAnnotation(absl::string_view name, AttributeId id, const Shape& shape, Annotations& annotations) {
    const bytecode::Entries& entries = program_.entries();
    if (name == "sdy.sharding") {
      GW_ASSIGN_OR_RETURN(annotations.sharding, program_.meshes().Read(id, shape.rank()));
    } else if (name == "mhlo.sharding" && !annotations.sharding.has_value()) {
      GW_ASSIGN_OR_RETURN(const bytecode::StringAttr* text, entries.attribute_as<bytecode::StringAttr>(id));
      GW_ASSIGN_OR_RETURN(Shardings shardings, ReadShardingAttribute(text->value, {shape.rank()},
                                                                     program_.num_devices(), program_.default_mesh()));
      if (shardings.size() != 1) return OpContext::Error("not one sharding");
      annotations.sharding = shardings.front();
    } else if (name == "mhlo.frontend_attributes") {
      GW_ASSIGN_OR_RETURN(const bytecode::DictionaryAttr* dictionary,
                          entries.attribute_as<bytecode::DictionaryAttr>(id));
      GW_ASSIGN_OR_RETURN(auto texts, StringEntries(entries, dictionary->entries));
      for (const auto& [key, text] : texts) {
        if (key != "xla.sdy.sharding") continue;
        GW_ASSIGN_OR_RETURN_WITH(annotations.sharding, ParseSdySharding(text, program_.meshes().Table()), key);
      }
    } else if (name == "tf.aliasing_output") {
      GW_ASSIGN_OR_RETURN(const bytecode::IntegerAttr* index, entries.attribute_as<bytecode::IntegerAttr>(id));
      annotations.aliasing_output = index->value;
    } else if (name == "jax.buffer_donor") {
      GW_ASSIGN_OR_RETURN(const bytecode::BoolAttr* donor, entries.attribute_as<bytecode::BoolAttr>(id));
      annotations.buffer_donor = donor->value;
    } else if (name == "mhlo.memory_kind" || name == "mhlo.layout_mode") {
      GW_ASSIGN_OR_RETURN(const bytecode::StringAttr* text, entries.attribute_as<bytecode::StringAttr>(id));
      (name == "mhlo.memory_kind" ? annotations.memory_kind : annotations.layout_mode) = std::string(text->value);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Annotations> ReadAnnotations(const OpView::Dictionary& dictionary, const Shape& shape) {
    Annotations annotations;
    for (const auto& [name, id] : dictionary) {
      GW_RETURN_IF_ERROR_WITH(ReadAnnotation(name, id, shape, annotations), OpView::Context(name));
    }
    if (annotations.sharding.has_value()) {
      GW_RETURN_IF_ERROR(ValidateSharding(*annotations.sharding, shape));
    }
    return annotations;
  }

  // The user's name for the argument, "params['w']", made an identifier.
  static std::string ParameterName(absl::string_view wanted) {
    std::string name;
    for (char c : wanted.substr(0, 80)) name += absl::ascii_isalnum(c) || c == '.' || c == '-' ? c : '_';
    if (name.empty() || !absl::ascii_isalpha(name[0])) name.insert(0, "arg");
    if (ParseDType(name).has_value()) name += '_';  // XLA takes "u4" for a type
    return name;
  }

  absl::Status AddParameters(const bytecode::Block& block) {
    const uint32_t count = block.arguments.count;
    GW_ASSIGN_OR_RETURN(std::vector<OpView::Dictionary> dictionaries, ReadDictionaries("arg_attrs", count));
    const bool partitioned = program_.num_devices() > 1;
    config().parameter_memory_kinds.resize(count);
    config().parameter_layout_modes.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      GW_ASSIGN_OR_RETURN_WITH(Shape shape, program_.ShapeOf(block.arguments[i]),
                               absl::StrCat(function_.Describe(), ": attribute function_type: argument ", i));
      GW_ASSIGN_OR_RETURN_WITH(Annotations annotations, ReadAnnotations(dictionaries[i], shape),
                               absl::StrCat("argument ", i));
      const int64_t leaves = LeafCount(shape);
      program_.Pay(shape);
      hlo::OpMetadata metadata;
      if (block.argument_locations[i].has_value()) {
        metadata = ReadLocation(program_.entries(), *block.argument_locations[i]);
      }
      Instruction* parameter = scope_.computation->Add(Opcode::kParameter, std::move(shape), {}, hlo::ParameterAttr{i},
                                                       ParameterName(metadata.op_name));
      parameter->set_metadata(std::move(metadata));
      program_.Define(block.arguments[i], parameter);
      if (partitioned) {
        config().propagate_to_parameters.insert(config().propagate_to_parameters.end(), leaves,
                                                !annotations.sharding.has_value());
      }
      if (annotations.sharding.has_value()) parameter->set_shardings(Shardings{*annotations.sharding});
      if (annotations.aliasing_output.has_value()) aliases_.emplace_back(i, *annotations.aliasing_output);
      if (annotations.buffer_donor) config().donors.push_back({i, {}});
      config().parameter_memory_kinds[i] = annotations.memory_kind;
      config().parameter_layout_modes[i] = annotations.layout_mode;
    }
    ClearIfAllEmpty(config().parameter_memory_kinds);
    ClearIfAllEmpty(config().parameter_layout_modes);
    return absl::OkStatus();
  }

  // Result shardings are constraints on the results, and the root's shardings.
  absl::Status SetResults(std::vector<Instruction*> results) {
    GW_ASSIGN_OR_RETURN(std::vector<OpView::Dictionary> dictionaries, ReadDictionaries("res_attrs", results.size()));
    GW_ASSIGN_OR_RETURN(OpContext context, OpContext::Make(program_, scope_, function_));
    const bool partitioned = program_.num_devices() > 1;
    Shardings shardings;
    bool any_sharding = false;
    for (size_t i = 0; i < results.size(); ++i) {
      const Shape shape = results[i]->shape();
      GW_ASSIGN_OR_RETURN_WITH(Annotations annotations, ReadAnnotations(dictionaries[i], shape),
                               absl::StrCat("result ", i));
      any_sharding |= annotations.sharding.has_value();
      if (annotations.sharding.has_value()) {
        results[i] = context.EmitSharding(results[i], *annotations.sharding);
        shardings.push_back(*annotations.sharding);
      } else if (program_.default_mesh() != nullptr) {
        for (const Shape& leaf : Leaves(shape))
          shardings.push_back(Sharding::Open(program_.default_mesh(), leaf.rank()));
      }
      if (partitioned) {
        config().propagate_to_output.insert(config().propagate_to_output.end(), LeafCount(shape),
                                            !annotations.sharding.has_value());
      }
      config().result_memory_kinds.push_back(annotations.memory_kind);
      config().result_layout_modes.push_back(annotations.layout_mode);
    }
    ClearIfAllEmpty(config().result_memory_kinds);
    ClearIfAllEmpty(config().result_layout_modes);
    GW_RETURN_IF_ERROR(SetAliases(results.size()));
    if (results.size() == 1) {
      scope_.computation->set_root(results.front());
      return absl::OkStatus();
    }
    Instruction* root = context.EmitTuple(std::move(results));
    if (any_sharding && program_.default_mesh() != nullptr) root->set_shardings(std::move(shardings));
    scope_.computation->set_root(root);
    return absl::OkStatus();
  }

  // Donation JAX could match with a result of the same type; another buffer may still be given, hence no "must".
  absl::Status SetAliases(size_t result_count) {
    for (const auto& [parameter, result] : aliases_) {
      if (result < 0 || static_cast<size_t>(result) >= result_count) {
        return OpContext::Error(
            absl::StrCat("attribute tf.aliasing_output: argument ", parameter, " names result ", result));
      }
      hlo::InputOutputAlias alias;
      if (result_count != 1) alias.output_index = {result};
      alias.parameter = parameter;
      config().aliases.push_back(std::move(alias));
    }
    return absl::OkStatus();
  }

  static void ClearIfAllEmpty(std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      if (!text.empty()) return;
    }
    texts.clear();
  }

  Translation& program_;
  const OpView& function_;
  Scope scope_;
  std::vector<std::pair<int64_t, int64_t>> aliases_;  // parameter, result
};

}  // namespace

absl::Status ConvertEntryFunction(Translation& program, const bytecode::Operation& function) {
  GW_ASSIGN_OR_RETURN(OpView view, OpView::Make(program.artifact(), function));
  return EntryFunction(program, view).Convert();
}

}  // namespace gangway::stablehlo

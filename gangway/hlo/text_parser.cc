#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/hlo/literal_text.h"
#include "gangway/hlo/shard_group.h"
#include "gangway/hlo/text.h"
#include "gangway/hlo/text_attributes.h"
#include "gangway/hlo/text_called.h"
#include "gangway/hlo/text_module.h"
#include "gangway/mesh/hlo_sharding.h"
#include "gangway/mesh/shard_group.h"

namespace gangway::hlo {
namespace {

// Reads one module. Shardings are resolved last: a text may leave the number of devices to them.
class Parser {
 public:
  explicit Parser(absl::string_view text) : lexer_(text) {
    for (size_t at = 0; (at = text.find("parameter(", at)) != absl::string_view::npos; at += 10) ++max_parameters_;
  }

  absl::StatusOr<std::unique_ptr<Module>> Parse() {
    GW_ASSIGN_OR_RETURN(module_, ReadModuleLine(&lexer_));
    GW_RETURN_IF_ERROR(ReadStackFrames(&lexer_, &module_->stack_frames()));
    while (!lexer_.AtEnd()) GW_RETURN_IF_ERROR(ReadComputation());
    if (module_->computations().empty()) return lexer_.Error("a computation");
    if (module_->entry() == nullptr) module_->set_entry(module_->computations().back().get());
    GW_RETURN_IF_ERROR(ResolveShardings());
    return std::move(module_);
  }

 private:
  struct PendingSharding {
    Instruction* instruction;
    std::string text;
  };

  absl::Status ReadComputation() {
    const bool is_entry = lexer_.ConsumeWord("ENTRY");
    if (is_entry && module_->entry() != nullptr) return lexer_.Error("one ENTRY only");
    GW_ASSIGN_OR_RETURN(absl::string_view name, lexer_.Name());
    if (module_->FindComputation(name) != nullptr) return lexer_.Error("a new computation name before");
    if (lexer_.Peek() == '(') {
      GW_RETURN_IF_ERROR(lexer_.SkipGroup());
      GW_RETURN_IF_ERROR(lexer_.Expect("->"));
      GW_RETURN_IF_ERROR(lexer_.ReadShape().status());
    }
    GW_RETURN_IF_ERROR(lexer_.Expect("{"));
    computation_ = module_->AddComputation(std::string(name));
    by_name_.clear();
    bool has_root = false;
    while (!lexer_.Consume("}")) GW_RETURN_IF_ERROR(ReadInstruction(&has_root));
    if (computation_->size() == 0) return lexer_.Error("instructions before");
    if (!has_root) computation_->set_root(computation_->instructions().back().get());
    GW_RETURN_IF_ERROR(CheckParameters());
    if (is_entry) module_->set_entry(computation_);
    // `}, execution_thread="main"`: this IR has one thread of execution.
    return AttributeText::Read(&lexer_).status();
  }

  absl::Status CheckParameters() {
    for (size_t i = 0; i < computation_->parameters().size(); ++i) {
      if (computation_->parameters()[i] == nullptr) return lexer_.Error(absl::StrCat("parameter(", i, ") before"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadInstruction(bool* has_root) {
    const bool is_root = lexer_.ConsumeWord("ROOT");
    if (is_root && *has_root) return lexer_.Error("one ROOT only");
    GW_ASSIGN_OR_RETURN(absl::string_view name, lexer_.Name());
    if (by_name_.contains(name)) return lexer_.Error(absl::StrCat("a new name before, not ", name));
    GW_ASSIGN_OR_RETURN_WITH(Instruction * instruction, ReadBody(name), absl::StrCat("instruction %", name));
    by_name_.emplace(name, instruction);
    if (is_root) computation_->set_root(instruction);
    *has_root |= is_root;
    return absl::OkStatus();
  }

  // ` = f32[2] add(%x, %y), key=value, ...`
  absl::StatusOr<Instruction*> ReadBody(absl::string_view name) {
    GW_RETURN_IF_ERROR(lexer_.Expect("="));
    GW_ASSIGN_OR_RETURN(Shape shape, lexer_.ReadShape());
    TextLexer here = lexer_;
    GW_ASSIGN_OR_RETURN(absl::string_view opcode_name, lexer_.Name());
    std::optional<Opcode> opcode = ParseOpcode(opcode_name);
    if (!opcode.has_value()) return here.Error("an operation");
    GW_RETURN_IF_ERROR(lexer_.Expect("("));
    Attributes attributes;
    std::vector<Instruction*> operands;
    if (*opcode == Opcode::kParameter) {
      GW_ASSIGN_OR_RETURN(attributes, ReadParameterNumber());
    } else if (*opcode == Opcode::kConstant) {
      GW_ASSIGN_OR_RETURN(attributes, ReadConstant(shape));
    } else {
      GW_ASSIGN_OR_RETURN(operands, ReadOperands());
    }
    GW_RETURN_IF_ERROR(lexer_.Expect(")"));
    GW_ASSIGN_OR_RETURN(AttributeText text, AttributeText::Read(&lexer_));
    const AttributeContext context{*opcode, shape, operands};
    if (const AttributeRow* row = AttributeRowOf(*opcode)) {
      GW_ASSIGN_OR_RETURN(attributes, row->read(context, &text));
    }
    GW_ASSIGN_OR_RETURN(std::vector<Computation*> called, ReadCalled(context, *module_, &text));
    Instruction* added =
        computation_->Add(*opcode, std::move(shape), std::move(operands), std::move(attributes), std::string(name));
    added->set_called(std::move(called));
    GW_RETURN_IF_ERROR(ReadAnnotations(&text, added));
    return added;
  }

  absl::StatusOr<Attributes> ReadParameterNumber() {
    TextLexer here = lexer_;
    GW_ASSIGN_OR_RETURN(int64_t number, lexer_.Int());
    const std::vector<Instruction*>& taken = computation_->parameters();
    const bool is_new = number >= static_cast<int64_t>(taken.size()) || (number >= 0 && taken[number] == nullptr);
    if (number < 0 || number >= max_parameters_ || !is_new) return here.Error("a parameter number not used yet");
    return Attributes(ParameterAttr{number});
  }

  absl::StatusOr<Attributes> ReadConstant(const Shape& shape) {
    if (lexer_.Consume("{...}")) {
      GW_ASSIGN_OR_RETURN(std::shared_ptr<const Literal> zeros, ElidedLiteral(shape));
      return Attributes(ConstantAttr{std::move(zeros), /*elided=*/true});
    }
    GW_ASSIGN_OR_RETURN(Literal literal, ReadLiteral(shape, &lexer_));
    return Attributes(ConstantAttr{std::make_shared<const Literal>(std::move(literal))});
  }

  // Zeros, shared between the constants of one type: they hold no information.
  absl::StatusOr<std::shared_ptr<const Literal>> ElidedLiteral(const Shape& shape) {
    std::shared_ptr<const Literal>& literal = elided_[shape.ToString()];
    if (literal == nullptr) {
      constexpr int64_t kMaxElidedBytes = int64_t{1} << 31;  // of one computation
      if (shape.ByteSize() > kMaxElidedBytes - elided_bytes_) return lexer_.Error("smaller elided constants before");
      elided_bytes_ += shape.ByteSize();
      literal = std::make_shared<const Literal>(WithoutLayout(shape));
    }
    return literal;
  }

  absl::StatusOr<Instruction*> ReadReference() {
    TextLexer here = lexer_;
    GW_ASSIGN_OR_RETURN(absl::string_view name, lexer_.Name());
    auto it = by_name_.find(name);
    if (it == by_name_.end()) return here.Error("the name of an instruction above");
    Instruction* instruction = it->second;
    while (lexer_.Consume("#")) {
      GW_ASSIGN_OR_RETURN(instruction, ReadElement(instruction));
    }
    return instruction;
  }

  // `%while#3`: a get-tuple-element the text has no line for. One is made per element; its name tells the printer.
  absl::StatusOr<Instruction*> ReadElement(Instruction* tuple) {
    TextLexer here = lexer_;
    GW_ASSIGN_OR_RETURN(int64_t index, lexer_.Int());
    if (index < 0 || index >= static_cast<int64_t>(tuple->shape().tuple().size())) {
      return here.Error(absl::StrCat("an element of ", tuple->shape().ToString()));
    }
    Instruction*& element = elements_[{tuple, index}];
    if (element == nullptr) {
      element = computation_->Add(Opcode::kGetTupleElement, tuple->shape().tuple()[index], {tuple},
                                  TupleIndexAttr{index}, absl::StrCat(tuple->name(), "#", index));
    }
    return element;
  }

  // Names, each with or without the shape in front.
  absl::StatusOr<std::vector<Instruction*>> ReadOperands() {
    std::vector<Instruction*> operands;
    while (lexer_.Peek() != ')') {
      if (!operands.empty()) GW_RETURN_IF_ERROR(lexer_.Expect(","));
      TextLexer ahead = lexer_;
      const bool has_shape = ahead.Peek() == '(' || (ahead.Name().ok() && ahead.PeekIs("["));
      if (has_shape) GW_RETURN_IF_ERROR(lexer_.ReadShape().status());
      GW_ASSIGN_OR_RETURN(Instruction * operand, ReadReference());
      operands.push_back(operand);
    }
    return operands;
  }

  // What every operation may carry.
  absl::Status ReadAnnotations(AttributeText* text, Instruction* instruction) {
    if (auto lexer = text->Take("metadata")) {
      GW_ASSIGN_OR_RETURN(OpMetadata metadata, ReadMetadata(*lexer));
      instruction->set_metadata(std::move(metadata));
    }
    if (auto lexer = text->Take("frontend_attributes")) {
      GW_ASSIGN_OR_RETURN(instruction->mutable_frontend_attributes(), ReadFrontendAttributes(*lexer));
    }
    if (auto sharding = text->TakeRaw("sharding")) pending_.push_back({instruction, std::move(*sharding)});
    GW_ASSIGN_OR_RETURN(std::string config, text->TakeString("backend_config"));
    instruction->set_backend_config(std::move(config));
    if (auto lexer = text->Take("control-predecessors")) GW_RETURN_IF_ERROR(ReadControl(*lexer, instruction));
    instruction->set_extra_text(text->Rest());
    return absl::OkStatus();
  }

  absl::Status ReadControl(TextLexer lexer, Instruction* instruction) {
    GW_RETURN_IF_ERROR(lexer.Expect("{"));
    for (bool first = true; !lexer.Consume("}"); first = false) {
      if (!first) GW_RETURN_IF_ERROR(lexer.Expect(","));
      TextLexer here = lexer;
      GW_ASSIGN_OR_RETURN(absl::string_view name, lexer.Name());
      auto it = by_name_.find(name);
      if (it == by_name_.end()) return here.Error("the name of an instruction above");
      instruction->AddControlPredecessor(it->second);
    }
    return absl::OkStatus();
  }

  // Devices of the program: as the module line says, else as its tile assignments do (texts written by hand).
  int64_t DeviceCount() const {
    int64_t devices = module_->config().num_partitions;
    if (devices > 1) return devices;
    for (const PendingSharding& pending : pending_) {
      absl::StatusOr<TileAssignment> tiles = ParseTileAssignment(pending.text);
      if (!tiles.ok() || tiles->kind != TileAssignment::Kind::kTiled) continue;
      int64_t count = 1;
      for (int64_t dim : tiles->dims) count = std::clamp<int64_t>(count * std::min(dim, kMaxDevices), 1, kMaxDevices);
      devices = std::max(devices, count);
    }
    return devices;
  }

  absl::Status ResolveShardings() {
    const int64_t devices = DeviceCount();
    MeshRef mesh = module_->meshes().empty() ? nullptr : module_->meshes().front().second;
    for (const PendingSharding& pending : pending_) {
      std::vector<int64_t> ranks;
      for (const Shape& leaf : Leaves(pending.instruction->shape())) ranks.push_back(leaf.rank());
      GW_ASSIGN_OR_RETURN_WITH(Shardings shardings, ParseHloShardings(pending.text, ranks, devices, mesh),
                               absl::StrCat("instruction %", pending.instruction->name(), ": sharding"));
      // Further shardings over an equal mesh share it.
      if (mesh == nullptr && !shardings.empty() && absl::StrContains(pending.text, "mesh[")) mesh = shardings[0].mesh;
      pending.instruction->set_shardings(std::move(shardings));
      JoinShardGroups(pending.instruction, ShardGroups(pending.text));
    }
    return absl::OkStatus();
  }

  static constexpr int64_t kMaxDevices = int64_t{1} << 24;

  TextLexer lexer_;
  int64_t max_parameters_ = 0;
  std::unique_ptr<Module> module_;
  Computation* computation_ = nullptr;
  absl::flat_hash_map<absl::string_view, Instruction*> by_name_;                  // of this computation
  absl::flat_hash_map<std::pair<Instruction*, int64_t>, Instruction*> elements_;  // get-tuple-element without a line
  absl::flat_hash_map<std::string, std::shared_ptr<const Literal>> elided_;
  int64_t elided_bytes_ = 0;
  std::vector<PendingSharding> pending_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> ParseModule(absl::string_view text) { return Parser(text).Parse(); }

}  // namespace gangway::hlo

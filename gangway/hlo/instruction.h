// One operation of a computation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gangway/base/strong_id.h"
#include "gangway/hlo/attributes.h"
#include "gangway/hlo/opcode.h"
#include "gangway/mesh/sharding.h"
#include "gangway/tensor/shape.h"

namespace gangway::hlo {

class Computation;
class Module;

// Unique within a module and never reused; also the id written to protos.
using InstructionId = StrongId<struct InstructionIdTag>;

// Where the user wrote it: XLA's OpMetadata.
struct OpMetadata {
  std::string op_type;
  std::string op_name;  // "jit(step)/layer/dot_general"
  std::string source_file;
  int source_line = 0;
  int stack_frame_id = 0;  // into the module's stack frame tables
  std::string rest;        // further fields of the text form, verbatim

  bool empty() const { return *this == OpMetadata{}; }
  friend bool operator==(const OpMetadata&, const OpMetadata&) = default;
};

using FrontendAttributes = std::map<std::string, std::string>;

// Owned by its Computation, which alone creates it; operands are instructions of the same computation, users is kept up
// to date. Not thread-safe; a module is worked on by one thread.
class Instruction {
 public:
  Instruction(const Instruction&) = delete;
  Instruction& operator=(const Instruction&) = delete;

  InstructionId id() const { return id_; }
  const std::string& name() const { return name_; }  // without '%', unique in the module
  Opcode opcode() const { return opcode_; }
  const Shape& shape() const { return shape_; }
  void set_shape(Shape shape) { shape_ = std::move(shape); }
  Computation* parent() const { return parent_; }

  const std::vector<Instruction*>& operands() const { return operands_; }
  Instruction* operand(int64_t i) const { return operands_[i]; }
  int64_t operand_count() const { return static_cast<int64_t>(operands_.size()); }
  void ReplaceOperand(int64_t i, Instruction* with);
  // One entry per use: an instruction that takes this one twice is listed twice.
  const std::vector<Instruction*>& users() const { return users_; }
  bool IsRoot() const;

  // Makes every user (and the computation's root) take `with` instead. Shapes must be compatible. Sharding and metadata
  // stay put.
  void ReplaceAllUsesWith(Instruction* with);

  const Attributes& attributes() const { return attributes_; }
  Attributes& mutable_attributes() { return attributes_; }
  // The attribute of a family; a bug to ask for another than the opcode has.
  template <typename T>
  const T& attr() const {
    return std::get<T>(attributes_);
  }
  template <typename T>
  T& mutable_attr() {
    return std::get<T>(attributes_);
  }
  template <typename T>
  const T* attr_if() const {
    return std::get_if<T>(&attributes_);
  }

  // reduce, map, sort...: [to_apply]; while: [condition, body]; conditional: branches (true, false for pred); call,
  // fusion: [callee]; select-and-scatter: [select, scatter]; custom-call: called computations.
  const std::vector<Computation*>& called() const { return called_; }
  void set_called(std::vector<Computation*> called) { called_ = std::move(called); }

  // One sharding per leaf of the shape.
  const std::optional<Shardings>& shardings() const { return shardings_; }
  void set_shardings(std::optional<Shardings> shardings) { shardings_ = std::move(shardings); }
  // Of an array: the one sharding. A bug when absent.
  const Sharding& sharding() const { return shardings_->front(); }
  bool has_sharding() const { return shardings_.has_value(); }

  const OpMetadata& metadata() const { return metadata_; }
  void set_metadata(OpMetadata metadata) { metadata_ = std::move(metadata); }
  const FrontendAttributes& frontend_attributes() const { return frontend_attributes_; }
  FrontendAttributes& mutable_frontend_attributes() { return frontend_attributes_; }
  const std::string& backend_config() const { return backend_config_; }  // of others than custom-call; verbatim
  void set_backend_config(std::string config) { backend_config_ = std::move(config); }
  const std::vector<Instruction*>& control_predecessors() const { return control_predecessors_; }
  void AddControlPredecessor(Instruction* before) { control_predecessors_.push_back(before); }
  // Attributes of the text form this IR gives no meaning (", statistics={...}"), kept for round trips.
  const std::string& extra_text() const { return extra_text_; }
  void set_extra_text(std::string text) { extra_text_ = std::move(text); }

  // Must stay although nobody uses it: sends, outfeeds, side-effecting custom calls, collectives with channels
  // excepted.
  bool HasSideEffect() const;

  std::string ToString() const;  // one line of HLO text without indentation, for error messages

 private:
  friend class Computation;
  friend class Module;
  Instruction(InstructionId id, std::string name, Opcode opcode, Shape shape, Computation* parent)
      : id_(id), name_(std::move(name)), opcode_(opcode), shape_(std::move(shape)), parent_(parent) {}

  InstructionId id_;
  std::string name_;
  Opcode opcode_;
  Shape shape_;
  Computation* parent_;
  std::vector<Instruction*> operands_;
  std::vector<Instruction*> users_;
  std::vector<Instruction*> control_predecessors_;
  Attributes attributes_;
  std::vector<Computation*> called_;
  std::optional<Shardings> shardings_;
  OpMetadata metadata_;
  FrontendAttributes frontend_attributes_;
  std::string backend_config_;
  std::string extra_text_;
};

}  // namespace gangway::hlo

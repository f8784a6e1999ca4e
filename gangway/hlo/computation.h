// A function of the module: parameters, instructions in a topological order, one root.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "gangway/hlo/instruction.h"

namespace gangway::hlo {

// Owned by its Module. Instructions keep the order in which they were added, which must be topological when text is
// printed or a pass reads it: passes that insert uses before definitions call SortTopologically when done.
class Computation {
 public:
  const std::string& name() const { return name_; }
  Module* module() const { return module_; }
  int64_t id() const { return id_; }

  // Adds an instruction at the end. An empty name is made from the opcode; a taken one gets a suffix. Attributes and
  // called computations are set by the caller or the Builder; nothing is checked here (Verify does).
  Instruction* Add(Opcode opcode, Shape shape, std::vector<Instruction*> operands, Attributes attributes = {},
                   std::string name = "");
  // Copies everything but operands (given), from any module whose called computations were mapped by the caller.
  Instruction* AddClone(const Instruction& of, Shape shape, std::vector<Instruction*> operands);

  const std::vector<std::unique_ptr<Instruction>>& instructions() const { return instructions_; }
  int64_t size() const { return static_cast<int64_t>(instructions_.size()); }
  Instruction* root() const { return root_; }
  void set_root(Instruction* root) { root_ = root; }
  // By number; parameters are listed when they are added and must be numbered 0..n-1 in any order of addition.
  const std::vector<Instruction*>& parameters() const { return parameters_; }
  Instruction* parameter(int64_t number) const { return parameters_[number]; }

  // Removes instructions that are no parameter, not the root, without users and side effects, and those that become so.
  // Returns how many.
  int64_t RemoveDead();
  // Removes one that has no users; the root and parameters cannot be removed.
  void Remove(Instruction* instruction);
  // Renumbers and drops parameters for which keep[number] is false; they must have no users.
  void RemoveParameters(const std::vector<bool>& keep);
  // Stable: an instruction moves only if it has to.
  void SortTopologically();
  // All instructions of the computation, each once; a bug otherwise.
  void Reorder(absl::Span<Instruction* const> order);

  std::string ToString() const;

 private:
  friend class Module;
  friend class Instruction;
  Computation(Module* module, int64_t id, std::string name) : module_(module), id_(id), name_(std::move(name)) {}

  Module* module_;
  int64_t id_;
  std::string name_;
  std::vector<std::unique_ptr<Instruction>> instructions_;
  std::vector<Instruction*> parameters_;
  Instruction* root_ = nullptr;
};

}  // namespace gangway::hlo

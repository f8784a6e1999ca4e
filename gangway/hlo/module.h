// A program: computations, one of them the entry, and what the outside agreed on (layouts, donation, shardings).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "gangway/hlo/computation.h"
#include "gangway/mesh/mesh.h"

namespace gangway::hlo {

// Donation: result leaf (path) takes over the memory of a parameter.
struct InputOutputAlias {
  DimVector output_index;
  int64_t parameter = 0;
  DimVector parameter_index;
  bool must_alias = false;
  friend bool operator==(const InputOutputAlias&, const InputOutputAlias&) = default;
};

// A donated parameter (leaf) whose memory may be taken by any result.
struct BufferDonor {
  int64_t parameter = 0;
  DimVector parameter_index;
  friend bool operator==(const BufferDonor&, const BufferDonor&) = default;
};

struct ModuleConfig {
  int64_t num_partitions = 1;
  int64_t num_replicas = 1;
  // Entry parameters and result with layouts, as in entry_computation_layout; absent means default.
  std::optional<std::vector<Shape>> parameter_layouts;
  std::optional<Shape> result_layout;
  std::vector<InputOutputAlias> aliases;
  std::vector<BufferDonor> donors;
  bool is_scheduled = false;
  // One per leaf of the entry's parameters / result: may propagation choose its sharding? Empty means no.
  std::vector<bool> propagate_to_parameters;
  std::vector<bool> propagate_to_output;
  std::vector<std::string> parameter_memory_kinds;  // "" is the default; empty means all default
  std::vector<std::string> result_memory_kinds;
  std::vector<std::string> parameter_layout_modes;  // "default", "auto" or a layout text; empty means all default
  std::vector<std::string> result_layout_modes;
  FrontendAttributes frontend_attributes;
  std::string extra_text;  // further attributes of the HloModule line, verbatim
};

// XLA's stack frame tables (FileNames, FunctionNames, FileLocations, StackFrames); ids in text and metadata start at 1.
struct StackFrames {
  struct Location {
    int file = 0, function = 0, line = 0, end_line = 0, column = 0, end_column = 0;
    friend bool operator==(const Location&, const Location&) = default;
  };
  struct Frame {
    int location = 0, parent = 0;  // ids from 1; parent 0: none
    friend bool operator==(const Frame&, const Frame&) = default;
  };
  std::vector<std::string> files, functions;
  std::vector<Location> locations;
  std::vector<Frame> frames;
  bool empty() const { return files.empty() && frames.empty(); }
  friend bool operator==(const StackFrames&, const StackFrames&) = default;
};

// Owns its computations; pointers to them and to instructions stay valid until removed. One thread at a time.
class Module {
 public:
  explicit Module(std::string name) : name_(std::move(name)) {}
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  ModuleConfig& config() { return config_; }
  const ModuleConfig& config() const { return config_; }
  StackFrames& stack_frames() { return stack_frames_; }
  const StackFrames& stack_frames() const { return stack_frames_; }
  // Meshes by symbol, as the program named them; the first one is where new shardings are expressed.
  std::vector<std::pair<std::string, MeshRef>>& meshes() { return meshes_; }
  const std::vector<std::pair<std::string, MeshRef>>& meshes() const { return meshes_; }

  // A name that is taken gets a suffix.
  Computation* AddComputation(std::string name);
  // In order of addition; callees come before callers when text is printed (SortComputations).
  const std::vector<std::unique_ptr<Computation>>& computations() const { return computations_; }
  Computation* entry() const { return entry_; }
  void set_entry(Computation* entry) { entry_ = entry; }
  Computation* FindComputation(absl::string_view name) const;  // null when absent

  // Drops computations the entry does not reach.
  void RemoveUnreachable();
  // Callees before callers, the entry last.
  void SortComputations();
  // Reachable from the entry, callees first.
  std::vector<Computation*> PostOrder() const;

  std::unique_ptr<Module> Clone() const;
  // Copies a computation (of any module) and what it calls into this one; `done` remembers what was copied.
  Computation* CloneComputation(const Computation& of, absl::flat_hash_map<const Computation*, Computation*>* done);

  int64_t InstructionCount() const;
  std::string ToString() const;  // HLO text (text.h)

 private:
  friend class Computation;
  InstructionId NextId() { return InstructionId(next_id_++); }
  std::string UniqueName(absl::string_view wanted);  // of instructions

  std::string name_;
  ModuleConfig config_;
  StackFrames stack_frames_;
  std::vector<std::pair<std::string, MeshRef>> meshes_;
  std::vector<std::unique_ptr<Computation>> computations_;
  absl::flat_hash_map<std::string, Computation*> by_name_;
  Computation* entry_ = nullptr;
  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_map<std::string, int64_t> next_suffix_;
  int64_t next_id_ = 0;
  int64_t next_computation_id_ = 0;
};

}  // namespace gangway::hlo

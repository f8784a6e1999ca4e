// Where the running device is: instructions that compute its place along mesh axes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "gangway/hlo/builder.h"
#include "gangway/mesh/mesh.h"

namespace gangway::partition {

// Positions of the mesh from one value of the part of an axis to the next.
int64_t StrideOf(const Mesh& mesh, const AxisRef& ref);

// For one computation; makes each value once. Borrows the builder.
class Coordinates {
 public:
  explicit Coordinates(hlo::Builder* builder) : builder_(builder) {}

  // s32[]: index along `axes`, row-major, of this device's position in `mesh`.
  hlo::Instruction* Of(const MeshRef& mesh, const AxisList& axes);
  // s32[]: Of(axes) * scale; a constant when that is 0.
  hlo::Instruction* Scaled(const MeshRef& mesh, const AxisList& axes, int64_t scale);
  // s32[]: values[i] on the devices whose place along `axes` is i. A constant or a multiple of the place where that
  // gives them, else read from a table.
  hlo::Instruction* PerShard(const MeshRef& mesh, const AxisList& axes, const std::vector<int64_t>& values);
  // Some number asked for so far does not fit s32.
  bool overflows() const { return overflows_; }
  hlo::Builder* builder() { return builder_; }

 private:
  hlo::Instruction* Position(const MeshRef& mesh);
  hlo::Instruction* Part(const MeshRef& mesh, const AxisRef& ref);

  void NoteOverflow(int64_t number);

  hlo::Builder* builder_;
  bool overflows_ = false;
  hlo::Instruction* partition_ = nullptr;
  absl::flat_hash_map<std::string, hlo::Instruction*> made_;
};

}  // namespace gangway::partition

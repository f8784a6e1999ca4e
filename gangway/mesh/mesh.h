// A logical mesh of devices with named axes, and references to its axes and parts of them (sub-axes).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace gangway {

struct MeshAxis {
  std::string name;
  int64_t size = 1;

  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

// Row-major array of devices over the axes. A device is named by its logical number, its place in the program's device
// assignment; position p of the mesh holds device device_ids[p], or p itself when device_ids is empty.
// A mesh without axes but with one device id k is the *maximal* mesh: everything on device k (as in sdy).
class Mesh {
 public:
  Mesh() = default;  // no axes: one position
  // Fails on duplicate or empty names, sizes below 1, more than 2^24 positions, device ids that are no permutation.
  static absl::StatusOr<Mesh> Make(std::vector<MeshAxis> axes, std::vector<int64_t> device_ids = {});
  static Mesh Maximal(int64_t device);

  const std::vector<MeshAxis>& axes() const { return axes_; }
  int64_t rank() const { return static_cast<int64_t>(axes_.size()); }
  int64_t axis_size(int axis) const { return axes_[axis].size; }
  absl::string_view axis_name(int axis) const { return axes_[axis].name; }
  int FindAxis(absl::string_view name) const;  // -1 when absent
  const std::vector<int64_t>& device_ids() const { return device_ids_; }
  bool IsIota() const { return device_ids_.empty(); }
  bool IsMaximal() const { return axes_.empty() && device_ids_.size() == 1; }
  int64_t size() const;  // number of positions

  int64_t DeviceAt(int64_t position) const { return device_ids_.empty() ? position : device_ids_[position]; }
  int64_t PositionOf(int64_t device) const;  // -1 when the device is not in the mesh

  std::string ToString() const;  // mesh['x'=2,'y'=4] or mesh['x'=2], device_ids=(1,0)
  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  std::vector<MeshAxis> axes_;
  std::vector<int64_t> device_ids_;
};

// Shared because one mesh is named by the shardings of thousands of instructions; immutable.
using MeshRef = std::shared_ptr<const Mesh>;
bool SameMesh(const MeshRef& a, const MeshRef& b);  // by value

// An axis, or the middle part of it when it is viewed as [pre, size, rest] (sdy's sub-axis "x":(pre)size). The full
// axis has pre 1 and size equal to the axis's.
struct AxisRef {
  int axis = 0;
  int64_t pre = 1;
  int64_t size = 1;

  friend auto operator<=>(const AxisRef&, const AxisRef&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const AxisRef& a) {
    return H::combine(std::move(h), a.axis, a.pre, a.size);
  }
};

// Major to minor. Nearly all lists have one entry or none: those take no memory of their own.
using AxisList = absl::InlinedVector<AxisRef, 1>;

AxisRef FullAxis(const Mesh& mesh, int axis);
bool IsFullAxis(const Mesh& mesh, const AxisRef& ref);
bool Overlaps(const AxisRef& a, const AxisRef& b);
bool Overlaps(const AxisList& list, const AxisRef& ref);
bool Contains(const AxisList& list,
              const AxisRef& ref);  // every position part of `ref` is covered by one entry of the list
int64_t ProductOf(const AxisList& axes);
void RemoveOverlapping(AxisList* list, const AxisList& axes);  // the entries that overlap any of `axes`
// Joins neighbours that are adjacent parts of one axis ("x":(1)2,"x":(2)2 -> "x" of size 4) in place.
void MergeSubAxes(AxisList* axes);
// Longest common major prefix, splitting sub-axes where that helps: {x} and {x:(1)2} share {x:(1)2}.
AxisList CommonPrefix(const AxisList& a, const AxisList& b);
// What is left of `axes` after `prefix`, which must be a prefix of it in the sense of CommonPrefix.
AxisList RemovePrefix(const AxisList& axes, const AxisList& prefix);
// The parts of the mesh's axes that `used` does not cover, in mesh order.
AxisList UnusedAxes(const Mesh& mesh, const AxisList& used);

// Index along `axes` (row-major over them) of a mesh position.
int64_t CoordinateOf(const Mesh& mesh, int64_t position, const AxisList& axes);

// Device groups of a collective over `axes`: groups run over all other axes in mesh order, members over `axes` in the
// given order, last fastest. Entries are device numbers.
std::vector<std::vector<int64_t>> ReplicaGroups(const Mesh& mesh, const AxisList& axes);

std::string AxisToString(const Mesh& mesh, const AxisRef& ref);    // 'x' or 'x':(1)2
std::string AxesToString(const Mesh& mesh, const AxisList& axes);  // {'x','y':(2)2}

}  // namespace gangway

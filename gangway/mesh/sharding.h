// How one array is laid out over a mesh: replicated, tiled, partially tiled, manual, partial sum (GSPMD section 3.1;
// sdy).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gangway/mesh/mesh.h"
#include "gangway/tensor/shape.h"

namespace gangway {

// What combines the per-device parts of an unreduced array.
enum class Reduction : uint8_t { kSum, kMax, kMin, kProduct, kAnd, kOr };
absl::string_view ReductionName(Reduction reduction);

// The axes that split one dimension, major to minor. A dimension of extent n over p = ProductOf(axes) shards has shards
// of ceil(n/p); the last ones may be partly or wholly padding.
struct DimSharding {
  AxisList axes;
  bool open = false;            // propagation may add axes
  std::optional<int> priority;  // user priority of sdy (0 strongest); absent means 0

  friend bool operator==(const DimSharding&, const DimSharding&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const DimSharding& d) {
    return H::combine(std::move(h), d.axes, d.open);
  }
};

// Sharding of one array (a tuple has one per leaf, kept beside it as a vector). A value; axes of one sharding never
// overlap.
//
// Every axis of the mesh is in exactly one state for the array: splitting a dimension (dims), explicitly replicated
// (replicated: propagation keeps off), holding partial results (unreduced, combined by `reduction`), manual (the
// program handles it itself: shapes are already local along it), or unmentioned (replicated, free for propagation to
// use on open dimensions).
struct Sharding {
  MeshRef mesh;
  std::vector<DimSharding> dims;
  AxisList replicated;
  AxisList unreduced;
  Reduction reduction = Reduction::kSum;
  AxisList manual;

  static Sharding Replicated(MeshRef mesh, int64_t rank);
  static Sharding Open(MeshRef mesh, int64_t rank);  // all dimensions open, nothing decided
  static Sharding Maximal(int64_t device, int64_t rank);

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  bool IsMaximal() const { return mesh->IsMaximal(); }
  // No dimension split and nothing unreduced (manual axes are ignored).
  bool IsReplicated() const;
  bool IsSplit(int64_t dim) const { return !dims[dim].axes.empty(); }
  int64_t ShardCount(int64_t dim) const { return ProductOf(dims[dim].axes); }
  AxisList DimAxes() const;   // all axes that split dimensions
  AxisList UsedAxes() const;  // dimensions, replicated, unreduced and manual

  // The same without openness, priorities and explicit replication: equal values place the data equally (up to naming).
  Sharding Closed() const;

  std::string ToString() const;  // {mesh['x'=2,'y'=2], [{'x', ?}, {}], replicated={'y'}, unreduced={...}, manual={...}}
  friend bool operator==(const Sharding& a, const Sharding& b);
  template <typename H>
  friend H AbslHashValue(H h, const Sharding& s) {
    return H::combine(std::move(h), s.dims, s.replicated, s.unreduced, static_cast<int>(s.reduction), s.manual);
  }
};

using Shardings = std::vector<Sharding>;  // one per leaf of a shape, depth first

// Rank and axes fit the shape and the mesh, axes do not overlap.
absl::Status ValidateSharding(const Sharding& sharding, const Shape& shape);

// Every device holds the same bytes under both.
bool SamePlacement(const Sharding& a, const Sharding& b, const Shape& shape);

}  // namespace gangway

// SdyShardings: the meshes of a program, and sdy attributes read as our shardings.
//
// Borrows the artifact. Meshes that are equal are one MeshRef, so that JAX's copies of a mesh under several symbols do
// not look like different meshes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/mesh/hlo_sharding.h"
#include "gangway/mesh/sharding.h"
#include "gangway/stablehlo/op_view.h"

namespace gangway::stablehlo {

class SdyShardings {
 public:
  explicit SdyShardings(const bytecode::Entries& entries) : entries_(entries) {}

  // An sdy.mesh operation.
  absl::Status AddMesh(const OpView& op);
  // Meshes in textual form, from the round-trip form's module attribute xla.sdy.meshes.
  absl::Status AddMeshes(const MeshTable& meshes);

  // In order of the program; the placeholder mesh without axes is left out.
  const std::vector<std::pair<std::string, MeshRef>>& meshes() const { return meshes_; }
  MeshTable Table() const;
  absl::StatusOr<MeshRef> Find(absl::string_view symbol) const;

  // nullopt for a sharding over the placeholder mesh, which says nothing.
  absl::StatusOr<std::optional<Sharding>> Read(bytecode::AttributeId sharding, int64_t rank) const;
  // One for each of `ranks`.
  absl::StatusOr<std::vector<std::optional<Sharding>>> ReadPerValue(bytecode::AttributeId shardings,
                                                                    const std::vector<int64_t>& ranks) const;
  absl::StatusOr<AxisList> ReadManualAxes(bytecode::AttributeId axes, const Mesh& mesh) const;
  // A vhlo array of axis references.
  absl::StatusOr<AxisList> ReadAxisArray(bytecode::AttributeId axes, const Mesh& mesh) const;
  // A symbol, string or mesh attribute.
  absl::StatusOr<MeshRef> ReadMesh(bytecode::AttributeId mesh) const;

 private:
  absl::StatusOr<Mesh> MeshOf(bytecode::AttributeId mesh) const;
  absl::StatusOr<AxisRef> ReadAxis(bytecode::AttributeId axis, const Mesh& mesh) const;
  absl::StatusOr<AxisList> ReadAxes(const std::vector<bytecode::AttributeId>& axes, const Mesh& mesh) const;
  MeshRef Shared(Mesh mesh) const;

  const bytecode::Entries& entries_;
  std::vector<std::pair<std::string, MeshRef>> meshes_;
  MeshTable symbols_;  // also the placeholder
};

// "#sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4}>", the form of the frontend attribute xla.sdy.sharding_rule.
absl::StatusOr<std::string> PrintShardingRule(const bytecode::Entries& entries, bytecode::AttributeId rule);

}  // namespace gangway::stablehlo

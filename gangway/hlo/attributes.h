// What an instruction says beyond its operands and shape: one struct per family of operations, all plain values.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "gangway/mesh/mesh.h"
#include "gangway/tensor/literal.h"
#include "gangway/tensor/shape.h"

namespace gangway::hlo {

// broadcast (operand dim i is result dim dims[i]), transpose (permutation), reduce, reverse, map, concatenate, iota
// (one), sort is apart.
struct DimensionsAttr {
  DimVector dims;
  friend bool operator==(const DimensionsAttr&, const DimensionsAttr&) = default;
};

struct ParameterAttr {
  int64_t number = 0;
  friend bool operator==(const ParameterAttr&, const ParameterAttr&) = default;
};

struct ConstantAttr {
  // Shared because clones and folds of large constants must not copy them; immutable.
  std::shared_ptr<const Literal> literal;
  bool elided = false;  // the text had {...}: zeros stand for values nobody knows
  friend bool operator==(const ConstantAttr& a, const ConstantAttr& b) {
    return a.elided == b.elided && SameLiteral(a, b);
  }
  static bool SameLiteral(const ConstantAttr& a, const ConstantAttr& b) {
    return a.literal == b.literal || (a.literal && b.literal && *a.literal == *b.literal);
  }
};

struct TupleIndexAttr {
  int64_t index = 0;
  friend bool operator==(const TupleIndexAttr&, const TupleIndexAttr&) = default;
};

struct SliceAttr {
  DimVector starts, limits, strides;
  friend bool operator==(const SliceAttr&, const SliceAttr&) = default;
};

// dynamic-slice only; dynamic-update-slice has none.
struct DynamicSliceAttr {
  DimVector sizes;
  friend bool operator==(const DynamicSliceAttr&, const DynamicSliceAttr&) = default;
};

struct PadDim {
  int64_t low = 0, high = 0, interior = 0;  // low and high may be negative: elements cut away
  friend bool operator==(const PadDim&, const PadDim&) = default;
};
struct PadAttr {
  std::vector<PadDim> dims;
  friend bool operator==(const PadAttr&, const PadAttr&) = default;
};

enum class Precision : uint8_t { kDefault, kHigh, kHighest, kPackedNibble };
struct PrecisionConfig {
  std::vector<Precision> operands{};  // empty means all default
  int algorithm = 0;                  // xla.PrecisionConfig.Algorithm
  friend bool operator==(const PrecisionConfig&, const PrecisionConfig&) = default;
};

// Result dimensions: batch, then free of lhs, then free of rhs.
struct DotAttr {
  DimVector lhs_batch{}, rhs_batch{}, lhs_contracting{}, rhs_contracting{};
  PrecisionConfig precision{};
  friend bool operator==(const DotAttr&, const DotAttr&) = default;
};

struct WindowDim {
  int64_t size = 1, stride = 1, pad_low = 0, pad_high = 0, window_dilation = 1, base_dilation = 1;
  bool reversal = false;
  friend bool operator==(const WindowDim&, const WindowDim&) = default;
};
using Window = std::vector<WindowDim>;

// reduce-window, select-and-scatter: one entry per dimension of the operand.
struct WindowAttr {
  Window window;
  friend bool operator==(const WindowAttr&, const WindowAttr&) = default;
};

struct ConvolutionAttr {
  Window window;  // spatial dimensions only
  int64_t input_batch = 0, input_feature = 0, kernel_input_feature = 0, kernel_output_feature = 0, output_batch = 0,
          output_feature = 0;
  DimVector input_spatial, kernel_spatial, output_spatial;
  int64_t feature_groups = 1, batch_groups = 1;
  PrecisionConfig precision;
  friend bool operator==(const ConvolutionAttr&, const ConvolutionAttr&) = default;
};

struct GatherAttr {
  DimVector offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims, start_indices_batching_dims;
  int64_t index_vector_dim = 0;
  DimVector slice_sizes;
  bool indices_are_sorted = false;
  friend bool operator==(const GatherAttr&, const GatherAttr&) = default;
};

struct ScatterAttr {
  DimVector update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, input_batching_dims,
      scatter_indices_batching_dims;
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false, unique_indices = false;
  friend bool operator==(const ScatterAttr&, const ScatterAttr&) = default;
};

enum class ComparisonDirection : uint8_t { kEq, kNe, kGe, kGt, kLe, kLt };
enum class ComparisonType : uint8_t { kDefault, kFloat, kTotalOrder, kSigned, kUnsigned };  // default: by element type
struct CompareAttr {
  ComparisonDirection direction = ComparisonDirection::kEq;
  ComparisonType type = ComparisonType::kDefault;
  bool order_total = false;  // newer XLA's way to say kTotalOrder; ask IsTotalOrder
  bool IsTotalOrder() const { return order_total || type == ComparisonType::kTotalOrder; }
  friend bool operator==(const CompareAttr&, const CompareAttr&) = default;
};

struct SortAttr {
  int64_t dimension = 0;
  bool is_stable = false;
  friend bool operator==(const SortAttr&, const SortAttr&) = default;
};

struct TopKAttr {
  int64_t k = 0;
  bool largest = true;
  friend bool operator==(const TopKAttr&, const TopKAttr&) = default;
};

// Which devices take part together. Groups are flattened ids (device numbers of the program's assignment) when
// use_global_device_ids or a channel is set.
struct ReplicaGroupList {
  enum class Form : uint8_t { kExplicit, kIota, kMeshAxes };
  Form form = Form::kExplicit;
  std::vector<std::vector<int64_t>> groups;  // kExplicit; empty: all devices in one group
  // kIota: [num_groups, group_size] <= [reshape] T(perm)
  int64_t num_groups = 0, group_size = 0;
  std::vector<int64_t> iota_reshape;
  std::vector<int> iota_transpose;
  // kMeshAxes: mesh['x'=4,'y'=2] {'x':(2)2}
  MeshRef mesh;
  AxisList axes;

  std::vector<std::vector<int64_t>> Expand(int64_t num_devices) const;
  std::string ToString() const;  // {{0,1},{2,3}}, [2,4]<=[4,2]T(1,0) or mesh['x'=4] {'x'}
  friend bool operator==(const ReplicaGroupList& a, const ReplicaGroupList& b);
};

// The iota form covers its devices exactly, at most 2^24 of them.
absl::Status ValidateReplicaGroups(const ReplicaGroupList& list);

// all-gather (dimension), all-reduce, all-to-all (dimension, or none for the tuple form), reduce-scatter (dimension),
// collective-permute (pairs), collective-broadcast and their -start forms.
struct CollectiveAttr {
  ReplicaGroupList groups;
  std::vector<std::pair<int64_t, int64_t>> source_target_pairs;
  std::optional<int64_t> dimension;
  std::optional<int64_t> channel_id;
  bool use_global_device_ids = false;
  bool constrain_layout = false;
  friend bool operator==(const CollectiveAttr&, const CollectiveAttr&) = default;
};

enum class CustomCallApi : uint8_t { kUnspecified, kOriginal, kStatusReturning, kStatusReturningUnified, kTypedFfi };
struct OutputAlias {
  DimVector output_index;  // path in the result tuple
  int64_t operand = 0;
  DimVector operand_index;
  friend bool operator==(const OutputAlias&, const OutputAlias&) = default;
};
struct CustomCallAttr {
  std::string target;
  std::string backend_config;  // opaque, or the text of an attribute dictionary for kTypedFfi
  CustomCallApi api = CustomCallApi::kOriginal;
  bool has_side_effect = false;
  std::vector<OutputAlias> aliases;
  std::optional<std::vector<Shape>> operand_shapes_with_layout;  // operand_layout_constraints
  friend bool operator==(const CustomCallAttr&, const CustomCallAttr&) = default;
};

enum class RngDistribution : uint8_t { kInvalid, kUniform, kNormal };
struct RngAttr {
  RngDistribution distribution = RngDistribution::kUniform;
  friend bool operator==(const RngAttr&, const RngAttr&) = default;
};
enum class RngAlgorithm : uint8_t { kDefault, kThreeFry, kPhilox };
struct RngBitGeneratorAttr {
  RngAlgorithm algorithm = RngAlgorithm::kDefault;
  friend bool operator==(const RngBitGeneratorAttr&, const RngBitGeneratorAttr&) = default;
};
struct RngStateAttr {
  int64_t delta = 0;
  friend bool operator==(const RngStateAttr&, const RngStateAttr&) = default;
};

enum class FftType : uint8_t { kFft, kIfft, kRfft, kIrfft };
struct FftAttr {
  FftType type = FftType::kFft;
  DimVector lengths;
  friend bool operator==(const FftAttr&, const FftAttr&) = default;
};

enum class Transposition : uint8_t { kInvalid, kNone, kTranspose, kAdjoint };
struct TriangularSolveAttr {
  bool left_side = false, lower = false, unit_diagonal = false;
  Transposition transpose_a = Transposition::kNone;
  friend bool operator==(const TriangularSolveAttr&, const TriangularSolveAttr&) = default;
};
struct CholeskyAttr {
  bool lower = false;
  friend bool operator==(const CholeskyAttr&, const CholeskyAttr&) = default;
};

struct BatchNormAttr {
  float epsilon = 0;
  int64_t feature = 0;
  friend bool operator==(const BatchNormAttr&, const BatchNormAttr&) = default;
};

struct ReducePrecisionAttr {
  int exponent_bits = 0, mantissa_bits = 0;
  friend bool operator==(const ReducePrecisionAttr&, const ReducePrecisionAttr&) = default;
};

// get-dimension-size, set-dimension-size.
struct DimensionAttr {
  int64_t dimension = 0;
  friend bool operator==(const DimensionAttr&, const DimensionAttr&) = default;
};

struct FusionAttr {
  std::string kind;  // kLoop, kInput, kOutput, kCustom
  friend bool operator==(const FusionAttr&, const FusionAttr&) = default;
};

// send, recv and their done halves; infeed and outfeed carry only a config.
struct ChannelAttr {
  int64_t channel_id = 0;
  bool is_host_transfer = false;
  friend bool operator==(const ChannelAttr&, const ChannelAttr&) = default;
};
struct FeedAttr {
  std::string config;
  Shape outfeed_shape;
  friend bool operator==(const FeedAttr&, const FeedAttr&) = default;
};

using Attributes = std::variant<std::monostate, DimensionsAttr, ParameterAttr, ConstantAttr, TupleIndexAttr, SliceAttr,
                                DynamicSliceAttr, PadAttr, DotAttr, WindowAttr, ConvolutionAttr, GatherAttr,
                                ScatterAttr, CompareAttr, SortAttr, TopKAttr, CollectiveAttr, CustomCallAttr, RngAttr,
                                RngBitGeneratorAttr, RngStateAttr, FftAttr, TriangularSolveAttr, CholeskyAttr,
                                BatchNormAttr, ReducePrecisionAttr, DimensionAttr, FusionAttr, ChannelAttr, FeedAttr>;

}  // namespace gangway::hlo

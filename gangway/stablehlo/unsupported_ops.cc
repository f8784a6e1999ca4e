// Operations of the dialects that are refused, each with the reason.
#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {
namespace {

absl::Status Quantized(OpContext&) { return absl::UnimplementedError("quantized types are not supported"); }
absl::Status DynamicSize(OpContext&) { return absl::UnimplementedError("dynamic shapes are not supported"); }
absl::Status CollectiveReduce(OpContext&) {
  return absl::UnimplementedError("HLO has no collective that reduces to one device");
}
absl::Status Misplaced(OpContext&) { return OpContext::Error("has no place inside a function"); }

}  // namespace

void AddUnsupportedOps(OpTable& table) {
  for (const OpRow& row : {
           OpRow{"builtin.module", kAny, kAny, kAny, Misplaced},
           OpRow{"sdy.mesh", kAny, kAny, kAny, Misplaced},
           // Terminators, which ConvertBlock reads.
           OpRow{"sdy.return", kAny, kAny, kAny, Misplaced},
           OpRow{"vhlo.return_v1", kAny, kAny, kAny, Misplaced},
           OpRow{"vhlo.func_v1", kAny, kAny, kAny, Misplaced},
           OpRow{"vhlo.collective_reduce_v1", kAny, kAny, kAny, CollectiveReduce},
           OpRow{"vhlo.set_dimension_size_v1", kAny, kAny, kAny, DynamicSize},
           OpRow{"vhlo.uniform_dequantize_v1", kAny, kAny, kAny, Quantized},
           OpRow{"vhlo.uniform_quantize_v1", kAny, kAny, kAny, Quantized},
       }) {
    table.emplace(row.name, row);
  }
}

}  // namespace gangway::stablehlo

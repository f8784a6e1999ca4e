// The op table: how each operation of the dialects vhlo, sdy and builtin becomes HLO.
//
// One row per op version; one file per family adds its rows. Adding an op: a schema row (schema.cc) and a table row.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gangway/stablehlo/op_context.h"

namespace gangway::stablehlo {

inline constexpr int kAny = -1;

struct OpRow {
  absl::string_view name;  // "vhlo.pad_v1"
  int operands;            // kAny: the converter checks
  int results;
  int regions;
  absl::Status (*convert)(OpContext& context);
};

using OpTable = absl::flat_hash_map<absl::string_view, OpRow>;

const OpRow* FindRow(absl::string_view name);  // null when unknown
const OpTable& AllRows();

// The op's result as `x` broadcast: dimension i of `x` is dimension dims[i] of the result, stretched where it has
// extent 1.
absl::Status FinishBroadcastInDim(OpContext& context, hlo::Instruction* x, DimVector dims);

// Rows of the families.
void AddElementwiseOps(OpTable& table);
void AddDotOps(OpTable& table);
void AddWindowOps(OpTable& table);
void AddDataMovementOps(OpTable& table);
void AddIndexingOps(OpTable& table);  // gather, scatter, dynamic slices
void AddReduceOps(OpTable& table);
void AddControlFlowOps(OpTable& table);
void AddCollectiveOps(OpTable& table);
void AddCustomCallOps(OpTable& table);
void AddNumericOps(OpTable& table);  // random numbers, fft, linear algebra, batch normalisation
void AddEffectOps(OpTable& table);   // tokens, send, receive, infeed, outfeed
void AddSdyOps(OpTable& table);
void AddDynamicShapeOps(OpTable& table);
void AddUnsupportedOps(OpTable& table);

}  // namespace gangway::stablehlo

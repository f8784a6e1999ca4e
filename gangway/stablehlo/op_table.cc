#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {

const OpTable& AllRows() {
  static const OpTable& table = *[] {
    auto* rows = new OpTable;
    AddElementwiseOps(*rows);
    AddDotOps(*rows);
    AddWindowOps(*rows);
    AddDataMovementOps(*rows);
    AddIndexingOps(*rows);
    AddReduceOps(*rows);
    AddControlFlowOps(*rows);
    AddCollectiveOps(*rows);
    AddCustomCallOps(*rows);
    AddNumericOps(*rows);
    AddEffectOps(*rows);
    AddSdyOps(*rows);
    AddDynamicShapeOps(*rows);
    AddUnsupportedOps(*rows);
    return rows;
  }();
  return table;
}

const OpRow* FindRow(absl::string_view name) {
  auto it = AllRows().find(name);
  return it == AllRows().end() ? nullptr : &it->second;
}

}  // namespace gangway::stablehlo

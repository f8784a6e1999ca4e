// The tables are complete: every operation with a schema has a row and the other way round.
#include "gangway/stablehlo/op_table.h"

#include "gangway/stablehlo/schema.h"
#include "gtest/gtest.h"

namespace gangway::stablehlo {
namespace {

TEST(OpTableTest, EverySchemaHasARow) {
  for (const OpSchema& schema : AllSchemas()) EXPECT_NE(FindRow(schema.name), nullptr) << schema.name;
}

TEST(OpTableTest, EveryRowHasASchema) {
  for (const auto& [name, row] : AllRows()) EXPECT_NE(FindSchema(name), nullptr) << name;
  EXPECT_EQ(AllRows().size(), AllSchemas().size());
}

}  // namespace
}  // namespace gangway::stablehlo

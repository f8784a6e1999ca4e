#include "gangway/controller/tenants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gangway::controller {
namespace {

using ::testing::HasSubstr;

TEST(Tenants, WithoutAnyTheClusterIsOpen) { EXPECT_TRUE(TenantTable().open()); }

TEST(Tenants, AreFoundByTheirToken) {
  auto table = TenantTable::Make({{.name = "red", .token = "r3d"}, {.name = "blue", .token = "blu", .weight = 3}});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_FALSE(table->open());
  EXPECT_EQ(table->Find("blu")->name, "blue");
  EXPECT_EQ(table->Find("r3e"), nullptr);
  EXPECT_EQ(table->Find(""), nullptr);
}

TEST(Tenants, MustBeWellFormed) {
  auto message = [](std::vector<Tenant> tenants) { return std::string(TenantTable::Make(tenants).status().message()); };
  EXPECT_THAT(message({{.name = "", .token = "a"}}), HasSubstr("needs a name"));
  EXPECT_THAT(message({{.name = "red"}}), HasSubstr("tenant 'red': no token"));
  EXPECT_THAT(message({{.name = "red", .token = "a"}, {.name = "red", .token = "b"}}), HasSubstr("is there twice"));
  EXPECT_THAT(message({{.name = "red", .token = "a"}, {.name = "blue", .token = "a"}}), HasSubstr("token of another"));
  EXPECT_THAT(message({{.name = "red", .token = "a", .weight = 0}}), HasSubstr("not positive"));
  EXPECT_THAT(message({{.name = "red", .token = "a", .max_bytes = -1}}), HasSubstr("quota is negative"));
}

}  // namespace
}  // namespace gangway::controller

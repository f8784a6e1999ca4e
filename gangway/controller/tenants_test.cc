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

TEST(Tenants, FoldersAreNamesOfTheirOwn) {
  auto folder = [](const std::string& name) { return FolderOf({.name = name}); };
  EXPECT_EQ(folder("team-a_2.x"), "team-a_2.x");
  EXPECT_EQ(folder(".."), "%2E.");
  EXPECT_EQ(folder("../blue"), "%2E.%2Fblue");
  EXPECT_EQ(folder("a b"), "a%20b");
  EXPECT_EQ(folder("a%20b"), "a%2520b");
  EXPECT_EQ(folder(std::string("\0", 1)), "%00");
}

}  // namespace
}  // namespace gangway::controller

#include "gangway/cli/tenants_file.h"

#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "nlohmann/json.hpp"

namespace gangway::cli {
namespace {

using nlohmann::json;

absl::StatusOr<controller::Tenant> ReadTenant(const json& entry) {
  controller::Tenant tenant;
  if (!entry.is_object()) return absl::InvalidArgumentError("an entry is no object");
  for (const auto& [key, value] : entry.items()) {
    const bool is_text = value.is_string(), is_number = value.is_number();
    if (key == "name" && is_text) {
      tenant.name = value;
    } else if (key == "token" && is_text) {
      tenant.token = value;
    } else if (key == "weight" && is_number) {
      tenant.weight = value;
    } else if (key == "max_priority" && value.is_number_integer()) {
      tenant.max_priority = value;
    } else if (key == "max_sessions" && value.is_number_integer()) {
      tenant.max_sessions = value;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("'", key, "' is not known or not of its type"));
    }
  }
  return tenant;
}

}  // namespace

absl::StatusOr<controller::TenantTable> ReadTenants(const std::string& path) {
  if (path.empty()) return controller::TenantTable();
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  const json list = json::parse(file, nullptr, /*allow_exceptions=*/false);
  // An empty list would open the cluster, which nobody means who writes the file.
  if (!list.is_array() || list.empty())
    return absl::InvalidArgumentError(absl::StrCat(path, " holds no list of tenants"));
  std::vector<controller::Tenant> tenants;
  for (const json& entry : list) {
    GW_ASSIGN_OR_RETURN_WITH(controller::Tenant tenant, ReadTenant(entry), path);
    tenants.push_back(std::move(tenant));
  }
  GW_ASSIGN_OR_RETURN_WITH(controller::TenantTable table, controller::TenantTable::Make(std::move(tenants)), path);
  return table;
}

}  // namespace gangway::cli

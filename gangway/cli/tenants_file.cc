#include "gangway/cli/tenants_file.h"

#include <fstream>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "nlohmann/json.hpp"

namespace gangway::cli {
namespace {

using nlohmann::json;

// 4096, or "4GiB" as options have it; nothing for what is no size.
std::optional<int64_t> SizeOf(const json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_string()) return std::nullopt;
  std::string text = value;
  int64_t bytes = 0;
  try {
    if (CLI::AsSizeValue(/*kb_is_1000=*/false)(text).empty() && absl::SimpleAtoi(text, &bytes)) return bytes;
  } catch (const CLI::ValidationError&) {  // a unit that there is not
  }
  return std::nullopt;
}

absl::StatusOr<controller::Tenant> ReadTenant(const json& entry) {
  controller::Tenant tenant;
  const std::map<absl::string_view, int*> whole = {{"max_priority", &tenant.max_priority},
                                                   {"max_sessions", &tenant.max_sessions},
                                                   {"max_devices", &tenant.max_devices}};
  const std::map<absl::string_view, int64_t*> counts = {
      {"max_queued", &tenant.max_queued}, {"max_arrays", &tenant.max_arrays}, {"max_programs", &tenant.max_programs}};
  const std::map<absl::string_view, int64_t*> sizes = {{"max_bytes", &tenant.max_bytes},
                                                       {"max_host_bytes", &tenant.max_host_bytes}};
  if (!entry.is_object()) return absl::InvalidArgumentError("an entry is no object");
  for (const auto& [key, value] : entry.items()) {
    const bool is_text = value.is_string(), is_number = value.is_number();
    if (key == "name" && is_text) {
      tenant.name = value;
    } else if (key == "token" && is_text) {
      tenant.token = value;
    } else if (key == "weight" && is_number) {
      tenant.weight = value;
    } else if (auto number = whole.find(key); number != whole.end() && value.is_number_integer()) {
      *number->second = value;
    } else if (auto count = counts.find(key); count != counts.end() && value.is_number_integer()) {
      *count->second = value;
    } else if (auto size = sizes.find(key); size != sizes.end() && SizeOf(value).has_value()) {
      *size->second = *SizeOf(value);
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

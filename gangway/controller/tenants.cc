#include "gangway/controller/tenants.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gangway::controller {
namespace {

// Does not end at the first difference: how long it takes tells nothing about the token.
bool SameToken(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace

std::string FolderOf(const Tenant& tenant) {
  std::string folder;
  for (const char c : tenant.name) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
    if (plain || (c == '.' && !folder.empty())) {
      folder.push_back(c);
    } else {
      absl::StrAppendFormat(&folder, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return folder;
}

absl::StatusOr<TenantTable> TenantTable::Make(std::vector<Tenant> tenants) {
  std::set<std::string> names, tokens;
  for (const Tenant& tenant : tenants) {
    auto wrong = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("tenant '", tenant.name, "': ", what));
    };
    if (tenant.name.empty()) return wrong("a tenant needs a name");
    if (tenant.token.empty()) return wrong("no token");
    if (!names.insert(tenant.name).second) return wrong("is there twice");
    if (!tokens.insert(tenant.token).second) return wrong("has the token of another");
    if (!(tenant.weight > 0)) return wrong("the weight is not positive");
    const int64_t least =
        std::min<int64_t>({tenant.max_sessions, tenant.max_devices, tenant.max_bytes, tenant.max_queued,
                           tenant.max_arrays, tenant.max_host_bytes, tenant.max_programs});
    if (least < 0) return wrong("a quota is negative");
  }
  TenantTable table;
  table.tenants_ = std::move(tenants);
  return table;
}

const Tenant* TenantTable::Find(absl::string_view token) const {
  const Tenant* found = nullptr;
  for (const Tenant& tenant : tenants_) {
    if (SameToken(tenant.token, token)) found = &tenant;
  }
  return found;
}

}  // namespace gangway::controller

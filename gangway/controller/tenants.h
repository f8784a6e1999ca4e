// Who may use a cluster, and how much of it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gangway::controller {

struct Tenant {
  std::string name;
  std::string token = "";  // whoever knows it is the tenant
  double weight = 1;       // of its share, over all of its sessions
  int max_priority = 0;    // no session of it has a higher one
  int max_sessions = 0;    // at the same time; 0: any number
};

// Immutable. Without tenants a cluster is open: everyone may use it as whom he likes.
class TenantTable {
 public:
  TenantTable() = default;
  // INVALID_ARGUMENT naming the tenant: no name, no token, a name or token twice, a weight that is not positive.
  static absl::StatusOr<TenantTable> Make(std::vector<Tenant> tenants);

  bool open() const { return tenants_.empty(); }
  // The tenant with that token; null: none. Takes the same time for every token of a length.
  const Tenant* Find(absl::string_view token) const;

 private:
  std::vector<Tenant> tenants_;
};

}  // namespace gangway::controller

// Who may use a cluster, and how much of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gangway/controller/byte_account.h"
#include "gangway/resource/memory_book.h"

namespace gangway::controller {

struct Tenant {
  std::string name;
  std::string token = "";  // whoever knows it is the tenant
  double weight = 1;       // of its share, over all of its sessions
  int max_priority = 0;    // no session of it has a higher one
  // Quotas, of all of its sessions together; 0: none.
  int max_sessions = 0;
  int max_devices = 0;         // that its programs and slices are on
  int64_t max_bytes = 0;       // that its arrays take on all devices together
  int64_t max_queued = 0;      // launches that are not over
  int64_t max_arrays = 0;      // that its clients keep, deleted ones until they are let go
  int64_t max_host_bytes = 0;  // of theirs, on the way between them and arrays
  int64_t max_programs = 0;    // that they keep compiled, or have compiled
};

// A name for the tenant's folder among others': its name, but for characters that mean something in paths, %XX. No two
// tenants have the same.
std::string FolderOf(const Tenant& tenant);

// What the sessions of a tenant have together. Belongs to the controller's loop.
struct TenantUse {
  const Tenant tenant;
  int64_t launches = 0;  // that are not over
  int64_t arrays = 0;
  int64_t programs = 0;
  const std::shared_ptr<ByteAccount> host_bytes =
      std::make_shared<ByteAccount>("tenant " + tenant.name, "max_host_bytes", tenant.max_host_bytes);
  const std::shared_ptr<resource::MemoryBook::Account> memory = std::make_shared<resource::MemoryBook::Account>();
  absl::Time refused = absl::InfinitePast();  // when the log last said so
};

// Immutable. Without tenants a cluster is open: everyone may use it as whom he likes.
class TenantTable {
 public:
  TenantTable() = default;
  // INVALID_ARGUMENT naming the tenant: no name, no token, a name or token twice, a weight that is not positive, a
  // negative quota.
  static absl::StatusOr<TenantTable> Make(std::vector<Tenant> tenants);

  bool open() const { return tenants_.empty(); }
  const std::vector<Tenant>& tenants() const { return tenants_; }
  // The tenant with that token; null: none. Takes the same time for every token of a length.
  const Tenant* Find(absl::string_view token) const;

 private:
  std::vector<Tenant> tenants_;
};

}  // namespace gangway::controller

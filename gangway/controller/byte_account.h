// Bytes of the controller's own memory that several count in together.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace gangway::controller {

// Thread-safe: calls of clients come on threads of their own.
class ByteAccount {
 public:
  // `limit` 0: none. Errors begin with the owner and name the quota.
  ByteAccount(std::string owner, std::string quota, int64_t limit)
      : owner_(std::move(owner)), quota_(std::move(quota)), limit_(limit) {}

  // RESOURCE_EXHAUSTED, and nothing is counted, when it would be more than the limit.
  absl::Status Add(int64_t bytes);
  // Whatever there is already.
  void AddAnyway(int64_t bytes) { bytes_ += bytes; }
  void Remove(int64_t bytes) { bytes_ -= bytes; }
  // What Add would say.
  absl::Status Check(int64_t bytes) const;
  int64_t bytes() const { return bytes_; }

 private:
  absl::Status Beyond(int64_t taken, int64_t bytes) const;

  const std::string owner_, quota_;
  const int64_t limit_;
  std::atomic<int64_t> bytes_ = 0;
};

}  // namespace gangway::controller

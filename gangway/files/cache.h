// Bytes that took long to make, kept in a folder for the next process that needs them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gangway::files {

// One file an entry, with the key in it. Processes may share the folder. Thread-safe: it keeps no state.
class Cache {
 public:
  // `limit`: bytes of all entries; those that were not used for longest go first.
  Cache(std::string folder, int64_t limit) : folder_(std::move(folder)), limit_(limit) {}

  // What was kept under exactly this key; nullopt also when the entry is damaged.
  std::optional<std::string> Find(absl::string_view key) const;
  // Errors name the file; nothing is kept then.
  absl::Status Keep(absl::string_view key, absl::string_view value) const;

 private:
  std::string PathOf(absl::string_view key) const;
  void DropOldest() const;

  const std::string folder_;
  const int64_t limit_;
};

}  // namespace gangway::files

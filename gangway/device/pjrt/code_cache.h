// Machine code of programs, kept beyond the process (PjrtOptions::cache).
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "gangway/device/pjrt/plugin.h"
#include "gangway/files/cache.h"

namespace gangway::device::pjrt {

// Of one plugin on one host. Thread-safe.
class CodeCache {
 public:
  // `version`: the plugin's platform version. Threads of the process are counted when this is made.
  CodeCache(std::string folder, const Plugin& plugin, absl::string_view version);

  // The serialized executable of the program with these compile options.
  std::optional<std::string> Find(absl::string_view hlo, absl::string_view options) const;
  // What cannot be kept is compiled again by the next process.
  void Keep(absl::string_view hlo, absl::string_view options, absl::string_view serialized) const;

 private:
  std::string KeyOf(absl::string_view hlo, absl::string_view options) const;

  const files::Cache cache_;
  std::string maker_;  // the plugin's file and version, the host's instruction set, the threads that code is made for
};

}  // namespace gangway::device::pjrt

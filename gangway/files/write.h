// Files that are written in pieces and become valid at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gangway::files {

// `bytes` from `offset` on; makes the file and the folders above it. What the file holds there already is not written
// again, so that a save which was interrupted goes on where it stood. Paths are resolved ones (folder.h).
absl::Status WriteAt(const std::string& path, int64_t offset, absl::string_view bytes);

// The first `size` bytes of `partial` are put on the disk and get the name `final`, whose file they replace; then
// `obsolete` files go, if they are there. After a crash there is the old file or the new one, never a part. DATA_LOSS
// when there are fewer bytes.
absl::Status Commit(const std::string& partial, int64_t size, const std::string& final,
                    const std::vector<std::string>& obsolete);

}  // namespace gangway::files

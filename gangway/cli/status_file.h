// Live counts of a controller in a file, for tests and operators.
#pragma once

#include <string>

#include "gangway/controller/controller.h"

namespace gangway::cli {

// One JSON object: sessions, arrays, programs, pending_launches, store_bytes, devices. Replaces the file in one step,
// so that readers never see half of it.
void WriteStatusFile(const std::string& path, const controller::Statistics& stats, size_t devices);

}  // namespace gangway::cli

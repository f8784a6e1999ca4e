#include "gangway/cli/status_file.h"

#include <cstdio>
#include <fstream>

#include "nlohmann/json.hpp"

namespace gangway::cli {

void WriteStatusFile(const std::string& path, const controller::Statistics& stats, size_t devices) {
  nlohmann::json json = {{"sessions", stats.sessions},       {"arrays", stats.arrays},
                         {"programs", stats.programs},       {"pending_launches", stats.pending_launches},
                         {"store_bytes", stats.store_bytes}, {"devices", devices}};
  std::string temporary = path + ".new";
  {
    std::ofstream out(temporary);
    out << json.dump() << "\n";
  }
  std::rename(temporary.c_str(), path.c_str());
}

}  // namespace gangway::cli

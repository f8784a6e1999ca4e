// How many devices a program in a file is to be partitioned for.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "gangway/hlo/module.h"

namespace gangway::cli {

// As asked (`devices` above 0, `mesh` such as "data=4,model=2"), else as the program's meshes say, else its header. A
// mesh that is asked for becomes the program's where it has none.
absl::StatusOr<int64_t> DeviceCount(int64_t devices, const std::string& mesh, hlo::Module* module);

}  // namespace gangway::cli

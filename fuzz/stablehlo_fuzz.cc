// libFuzzer target of the reader of StableHLO artifacts: any bytes give a module or an error.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "gangway/stablehlo/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)gangway::stablehlo::ReadPortableArtifact(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}

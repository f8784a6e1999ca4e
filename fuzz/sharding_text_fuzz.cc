// libFuzzer target of the parsers of sharding texts (HLO and sdy), which arrive inside programs and messages.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "gangway/mesh/hlo_sharding.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const int64_t ranks[] = {2};
  auto shardings = gangway::ParseHloShardings(text, ranks, 8, nullptr);
  if (shardings.ok()) (void)gangway::PrintHloShardings(*shardings, false);
  auto meshes = gangway::ParseSdyMeshes(text);
  (void)gangway::ParseSdySharding(text, meshes.ok() ? *meshes : gangway::MeshTable());
  (void)gangway::ParseSdyShardingPerValue(text, gangway::MeshTable());
  return 0;
}

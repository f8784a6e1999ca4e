// libFuzzer target of the HloModuleProto reader: any bytes give a module or an error; what verifies is written again.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "gangway/hlo/proto.h"
#include "gangway/hlo/text.h"
#include "gangway/hlo/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto module = gangway::hlo::DeserializeModule(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!module.ok()) return 0;
  (void)gangway::hlo::PrintModule(**module);
  if (gangway::hlo::Verify(**module).ok()) (void)gangway::hlo::SerializeModule(**module);
  return 0;
}

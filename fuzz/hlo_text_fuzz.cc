// libFuzzer target of the HLO text parser: any text gives a module or an error, and what was read prints.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "gangway/hlo/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto module = gangway::hlo::ParseModule(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (module.ok()) (void)gangway::hlo::PrintModule(**module);
  return 0;
}

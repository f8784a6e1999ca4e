// libFuzzer target of the HLO text parser: any text gives a module or an error; what verifies is printed and
// serialized.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "gangway/hlo/proto.h"
#include "gangway/hlo/text.h"
#include "gangway/hlo/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto module = gangway::hlo::ParseModule(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!module.ok()) return 0;
  const std::string text = gangway::hlo::PrintModule(**module);
  if (!gangway::hlo::Verify(**module).ok()) return 0;
  if (!gangway::hlo::ParseModule(text).ok()) __builtin_trap();
  (void)gangway::hlo::SerializeModule(**module);
  return 0;
}

#include "gangway/device/pjrt/compile_options.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/device/pjrt/module_attribute.h"

namespace gangway::device::pjrt {
namespace {

// A handful of fields does not justify a generated proto here. Numbers: xla/pjrt/proto/compile_options.proto.
constexpr int kExecutableBuildOptions = 3, kCompilePortableExecutable = 4, kEnvOptionOverrides = 7;
constexpr int kDeviceOrdinal = 1, kNumReplicas = 4, kNumPartitions = 5;
constexpr int kMapKey = 1, kMapValue = 2, kOverrideString = 1, kOverrideBool = 2;

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void AppendInt(std::string& out, int field, int64_t value) {
  AppendVarint(out, static_cast<uint64_t>(field) << 3);
  AppendVarint(out, static_cast<uint64_t>(value));
}

void AppendBytes(std::string& out, int field, absl::string_view value) {
  AppendVarint(out, static_cast<uint64_t>(field) << 3 | 2);
  AppendVarint(out, value.size());
  absl::StrAppend(&out, value);
}

using Flag = CompileFlag;
// A fast maximum loses NaN. XNNPACK packs the weights anew on every call: Eigen's kernels take 0.7 of its time on one
// thread, and devices of a CPU have one or few. What is folded of constants that lie in another order (transposed,
// gathered along a later dimension) comes out in a wrong one; small constants we fold ourselves.
constexpr Flag kCpuFlags[] = {{"xla_cpu_enable_fast_min_max", false},
                              {"xla_cpu_use_xnnpack", false},
                              {"xla_disable_hlo_passes", absl::string_view("constant_folding")}};
// The operations of a device run on one thread: there is no gain in an order that has many of them ready at once.
constexpr Flag kDepthFirst = {"xla_cpu_enable_concurrency_optimized_scheduler", false};
constexpr Flag kDeterministicGpuFlags[] = {{"xla_gpu_deterministic_ops", true}};

std::vector<Flag> CpuFlags(absl::string_view hlo) {
  std::vector<Flag> flags(std::begin(kCpuFlags), std::end(kCpuFlags));
  if (ModuleAttribute(hlo, "gangway.order") == "depth-first") flags.push_back(kDepthFirst);
  return flags;
}

}  // namespace

std::string CompileOptionsFor(absl::string_view platform, bool deterministic, absl::string_view hlo) {
  if (platform == "cpu") return PortableCompileOptions(CpuFlags(hlo));
  const bool is_gpu = platform == "cuda" || platform == "rocm";
  return is_gpu && deterministic ? PortableCompileOptions(kDeterministicGpuFlags) : PortableCompileOptions({});
}

std::string PortableCompileOptions(absl::Span<const CompileFlag> flags) {
  std::string build;
  AppendInt(build, kDeviceOrdinal, -1);
  AppendInt(build, kNumReplicas, 1);
  AppendInt(build, kNumPartitions, 1);
  std::string options;
  AppendBytes(options, kExecutableBuildOptions, build);
  AppendInt(options, kCompilePortableExecutable, 1);
  for (const auto& [name, value] : flags) {
    std::string override_value, entry;
    if (const auto* text = std::get_if<absl::string_view>(&value)) AppendBytes(override_value, kOverrideString, *text);
    if (const auto* on = std::get_if<bool>(&value)) AppendInt(override_value, kOverrideBool, *on ? 1 : 0);
    AppendBytes(entry, kMapKey, name);
    AppendBytes(entry, kMapValue, override_value);
    AppendBytes(options, kEnvOptionOverrides, entry);
  }
  return options;
}

}  // namespace gangway::device::pjrt

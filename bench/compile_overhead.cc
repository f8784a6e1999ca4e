// What our way to a compiled program adds to the plugin's compilation of it.
//
//   compile_overhead [--rounds N] FILE.mlirbc...
//
// Each file, a StableHLO portable artifact with its sharding annotations, is read, completed, partitioned and lowered
// as the controller does, and what comes out is compiled by the CPU plugin, in turn; the fastest of N rounds counts (of
// the plugin the first is among them: it keeps nothing). One JSON line a program, then the sums.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gangway/compile/compile.h"
#include "gangway/device/pjrt/client.h"
#include "gangway/stablehlo/reader.h"
#include "nlohmann/json.hpp"

namespace gangway {
namespace {

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

double Since(absl::Time start) { return absl::ToDoubleSeconds(absl::Now() - start); }

struct Times {
  double ours = 1e30, plugins = 1e30;
};

absl::StatusOr<Times> Measure(const std::string& artifact, device::Client& client, int rounds) {
  Times times;
  for (int round = 0; round < rounds; ++round) {
    const absl::Time start = absl::Now();
    auto module = stablehlo::ReadPortableArtifact(artifact);
    if (!module.ok()) return module.status();
    compile::CompileOptions options;
    options.num_partitions = (*module)->config().num_partitions;
    auto program = compile::CompileModule(*std::move(module), options);
    if (!program.ok()) return program.status();
    times.ours = std::min(times.ours, Since(start));
    const absl::Time handed_on = absl::Now();
    auto executable = client.Compile({program->name, program->executable});
    if (!executable.ok()) return executable.status();
    times.plugins = std::min(times.plugins, Since(handed_on));
  }
  return times;
}

int Run(int rounds, const std::vector<std::string>& files) {
  device::PjrtOptions options;
  options.plugin_path = GANGWAY_CPU_PLUGIN;
  auto client = device::MakePjrtClient(options);
  if (!client.ok()) return std::fprintf(stderr, "%s\n", client.status().ToString().c_str()), 1;
  Times sum{0, 0};
  double worst = 0;
  for (const std::string& file : files) {
    auto times = Measure(Content(file), **client, rounds);
    if (!times.ok()) return std::fprintf(stderr, "%s: %s\n", file.c_str(), times.status().ToString().c_str()), 1;
    const double ratio = times->ours / times->plugins;
    worst = std::max(worst, ratio);
    sum.ours += times->ours;
    sum.plugins += times->plugins;
    const nlohmann::ordered_json line = {{"program", file.substr(file.rfind('/') + 1)},
                                         {"ours_s", times->ours},
                                         {"plugin_s", times->plugins},
                                         {"ratio", ratio}};
    std::printf("%s\n", line.dump().c_str());
  }
  const nlohmann::ordered_json total = {
      {"ours_s", sum.ours}, {"plugin_s", sum.plugins}, {"ratio", sum.ours / sum.plugins}, {"worst_ratio", worst}};
  std::printf("%s\n", total.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace gangway

int main(int argc, char** argv) {
  std::vector<std::string> files(argv + 1, argv + argc);
  int rounds = 3;
  if (files.size() > 1 && files[0] == "--rounds" && absl::SimpleAtoi(files[1], &rounds)) {
    files.erase(files.begin(), files.begin() + 2);
  }
  if (files.empty() || rounds < 1 || absl::StartsWith(files[0], "-")) {
    std::fprintf(stderr, "usage: compile_overhead [--rounds N] FILE.mlirbc...\n");
    return 2;
  }
  return gangway::Run(rounds, files);
}

#include "gangway/device/cts/testing.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gangway/device/cts/evaluated_program.h"
#include "gangway/device/pjrt/client.h"
#include "gangway/device/sim/sim_client.h"
#include "gangway/hlo/proto.h"
#include "gangway/hlo/text.h"

namespace gangway::device {

namespace {

Backend PjrtBackend(std::string name, std::string plugin) {
  return {std::move(name), [plugin = std::move(plugin)](int devices) {
            auto client = MakePjrtClient({plugin, {{"cpu_device_count", int64_t{devices}}}});
            EXPECT_TRUE(client.ok()) << client.status();
            return *std::move(client);
          }};
}

}  // namespace

std::vector<Backend> Backends() {
  std::vector<Backend> backends = {{"sim",
                                    [](int devices) {
                                      return MakeSimClient({devices, EvaluatedProgram});
                                    }},
                                   PjrtBackend("pjrt", GANGWAY_CPU_PLUGIN)};
  if (const char* plugin = std::getenv("GANGWAY_TEST_PLUGIN")) backends.push_back(PjrtBackend("other", plugin));
  return backends;
}

std::string Hlo(absl::string_view text) {
  auto module = hlo::ParseModule(text);
  EXPECT_TRUE(module.ok()) << module.status() << "\n" << text;
  if (!module.ok()) return "";
  auto bytes = hlo::SerializeModule(**module);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : "";
}

std::string HostedCall(absl::string_view target, absl::string_view result, absl::string_view operand_layout,
                       absl::string_view operands, absl::string_view attributes) {
  std::string quoted;
  for (char c : attributes) absl::StrAppend(&quoted, c == '"' ? "\\" : "", absl::string_view(&c, 1));
  return absl::StrCat(result, " custom-call(", operands, "), custom_call_target=\"gangway.", target,
                      "\", custom_call_has_side_effect=true, operand_layout_constraints={", operand_layout,
                      "}, api_version=API_VERSION_TYPED_FFI, backend_config=\"{", quoted, "}\"");
}

std::string OneGroup(int members) {
  std::string list;
  for (int m = 0; m < members; ++m) absl::StrAppend(&list, m > 0 ? ", " : "", m);
  return absl::StrCat("groups = array<i64: ", list, ">, group_size = ", members, " : i64");
}

absl::Status Outcome(const Future<Unit>& future) {
  return future.Await(absl::Now() + kDeadline, "the device under test").status();
}

std::shared_ptr<Executable> ConformanceTest::Compile(absl::string_view text, int partitions) {
  auto executable = client_->Compile({"program_under_test", Hlo(text), partitions});
  EXPECT_TRUE(executable.ok()) << executable.status();
  return executable.ok() ? *executable : nullptr;
}

std::shared_ptr<collective::Gang> ConformanceTest::MakeGang(int participants) {
  collective::Launch launch{next_launch_++, "program_under_test", {}, {}};
  for (int p = 0; p < participants; ++p) launch.participants.push_back(absl::StrCat("device ", p));
  return keeper_.MakeGang(std::move(launch));
}

ExecuteOptions ConformanceTest::OptionsFor(const std::shared_ptr<collective::Gang>& gang, int partition) {
  ExecuteOptions options;
  options.launch = {gang->launch().id, partition, static_cast<int>(gang->launch().participants.size()), gang, nullptr};
  return options;
}

std::vector<Execution> ConformanceTest::LaunchAll(Executable& executable,
                                                  const std::vector<std::vector<BufferRef>>& inputs) {
  auto gang = MakeGang(static_cast<int>(inputs.size()));
  std::vector<Execution> executions;
  for (size_t d = 0; d < inputs.size(); ++d) {
    executions.push_back(
        executable.Execute(device(static_cast<int>(d)), inputs[d], OptionsFor(gang, static_cast<int>(d))));
  }
  return executions;
}

}  // namespace gangway::device

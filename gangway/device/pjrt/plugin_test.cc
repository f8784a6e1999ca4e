#include "gangway/device/pjrt/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "gangway/device/pjrt/client.h"
#include "gangway/device/pjrt/compile_options.h"
#include "gangway/device/pjrt/loaded_copy.h"
#include "gangway/device/pjrt/module_attribute.h"

namespace gangway::device::pjrt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Message(const std::string& path, absl::StatusCode code) {
  const absl::Status status = MakePjrtClient({path, {}}).status();
  EXPECT_EQ(status.code(), code) << status;
  return std::string(status.message());
}

TEST(Plugin, AMissingFileIsNamed) {
  EXPECT_THAT(Message("/no/such/plugin.so", absl::StatusCode::kNotFound),
              AllOf(HasSubstr("/no/such/plugin.so"), HasSubstr("no such file")));
}

TEST(Plugin, AFileThatIsNoLibraryIsNamed) {
  const std::string path = ::testing::TempDir() + "/text.so";
  std::ofstream(path) << "hello";
  EXPECT_THAT(Message(path, absl::StatusCode::kInvalidArgument), AllOf(HasSubstr(path), HasSubstr("shared library")));
  std::remove(path.c_str());
}

TEST(Plugin, ALibraryThatIsNoPluginIsNamed) {
  EXPECT_THAT(Message(GANGWAY_FAKE_PLUGINS "/libfake_empty.so", absl::StatusCode::kInvalidArgument),
              HasSubstr("no function GetPjrtApi"));
}

TEST(Plugin, AnotherMajorVersionIsRefused) {
  EXPECT_THAT(Message(GANGWAY_FAKE_PLUGINS "/libfake_version.so", absl::StatusCode::kUnimplemented),
              AllOf(HasSubstr("API version 7.3"), HasSubstr("speaks 0.")));
}

TEST(Plugin, MissingEntryPointsAreNamed) {
  EXPECT_THAT(Message(GANGWAY_FAKE_PLUGINS "/libfake_short.so", absl::StatusCode::kUnimplemented),
              AllOf(HasSubstr("lacks"), HasSubstr("PJRT_Client_Create"), HasSubstr("PJRT_LoadedExecutable_Execute")));
}

TEST(Plugin, ATableTooShortForItsVersionIsRefused) {
  EXPECT_THAT(Message(GANGWAY_FAKE_PLUGINS "/libfake_tiny.so", absl::StatusCode::kInvalidArgument),
              HasSubstr("too short"));
}

TEST(Plugin, TheCpuPluginServesAsManyDevicesAsAsked) {
  auto client = MakePjrtClient({GANGWAY_CPU_PLUGIN, {{"cpu_device_count", int64_t{3}}}});
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->platform(), "cpu");
  ASSERT_EQ((*client)->devices().size(), 3u);
  EXPECT_EQ((*client)->devices()[2]->id(), 2);
  // A second client of the same plugin.
  EXPECT_TRUE(MakePjrtClient({GANGWAY_CPU_PLUGIN, {}}).ok());
}

// A copy that counts how often it was loaded and unloaded.
struct CountedCopy {
  int loads = 0, unloads = 0;
  LoadedCopy copy{[this]() -> absl::StatusOr<PJRT_LoadedExecutable*> {
                    ++loads;
                    return reinterpret_cast<PJRT_LoadedExecutable*>(this);
                  },
                  [this](PJRT_LoadedExecutable*) { ++unloads; }};
};

TEST(LoadedCopy, TheOldestThatNobodyUsesGoAndComeBack) {
  CountedCopy used, old, fresh, freshest;
  const auto use = used.copy.Get();
  ASSERT_TRUE(use.ok());
  for (CountedCopy* counted : {&old, &fresh, &freshest}) ASSERT_TRUE(counted->copy.Get().ok());
  EXPECT_EQ(DropOldCopies(), 1);
  EXPECT_EQ(used.unloads, 0);
  EXPECT_EQ(old.unloads, 1);
  EXPECT_EQ(fresh.unloads, 0);
  ASSERT_TRUE(old.copy.Get().ok());
  EXPECT_EQ(old.loads, 2);
  EXPECT_EQ(DropOldCopies(), 1);  // of the one in use and the next older
  EXPECT_EQ(fresh.unloads, 1);
}

TEST(CompileOptions, AreTheWireFormOfTheProto) {
  const std::string options = PortableCompileOptions({});
  // executable_build_options{device_ordinal: -1, num_replicas: 1, num_partitions: 1}, compile_portable_executable.
  EXPECT_EQ(options, std::string("\x1a\x0f\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x01\x28\x01\x20\x01"));
}

TEST(CompileOptions, FlagsOverrideDefaults) {
  const std::string plain = PortableCompileOptions({}), with = PortableCompileOptions({{{"a", true}, {"b", "xyz"}}});
  // env_option_overrides{key: "a", value{bool_field: true}}, {key: "b", value{string_field: "xyz"}}.
  EXPECT_EQ(with, plain +
                      std::string("\x3a\x07\x0a\x01"
                                  "a\x12\x02\x10\x01") +
                      std::string("\x3a\x0a\x0a\x01"
                                  "b\x12\x05\x0a\x03xyz"));
}

TEST(CompileOptions, DeterminismIsAskedForWhereItIsNotGiven) {
  EXPECT_EQ(CompileOptionsFor("cpu", true, ""), CompileOptionsFor("cpu", false, ""));
  EXPECT_NE(CompileOptionsFor("cuda", true, "").find("xla_gpu_deterministic_ops"), std::string::npos);
  EXPECT_EQ(CompileOptionsFor("cuda", false, ""), PortableCompileOptions({}));
}

TEST(CompileOptions, AreWhatTheModuleAsksFor) {
  // id: 7, a field of 8 bytes, one of 4, frontend_attributes{map{"a": "b"} map{"gangway.order": "depth-first"}}.
  const std::string eight(8, 'x'), four(4, 'x'), entry = "\n\rgangway.order\x12\vdepth-first";
  const std::string map =
      "\n\x06\n\x01"
      "a\x12\x01"
      "b\n" +
      std::string(1, static_cast<char>(entry.size())) + entry;
  const std::string module =
      "\x28\x07\x31" + eight + "\x3d" + four + "\x9a\x01" + std::string(1, static_cast<char>(map.size())) + map;
  EXPECT_EQ(ModuleAttribute(module, "gangway.order"), "depth-first");
  EXPECT_EQ(ModuleAttribute(module, "a"), "b");
  EXPECT_EQ(ModuleAttribute(module, "c"), std::nullopt);
  for (size_t size = 0; size < module.size(); ++size) {
    EXPECT_NE(ModuleAttribute(absl::string_view(module).substr(0, size), "gangway.order"), "depth-first");
  }
  const std::string flag = "xla_cpu_enable_concurrency_optimized_scheduler";
  EXPECT_NE(CompileOptionsFor("cpu", false, module).find(flag), std::string::npos);
  EXPECT_EQ(CompileOptionsFor("cpu", false, "").find(flag), std::string::npos);
  EXPECT_EQ(CompileOptionsFor("cuda", false, module).find(flag), std::string::npos);
}

}  // namespace
}  // namespace gangway::device::pjrt

#include "gangway/ifrt_proxy/plugin_program.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla/python/pjrt_ifrt/xla_sharding.pb.h"

namespace gangway::ifrt_proxy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Order(const std::string& sharding) {
  return absl::StrCat(R"({"reshardRequest": {"donateInput": true, "inSharding": [], "outSharding": [)", sharding,
                      "]}}");
}

TEST(PluginProgramTest, ReshardSaysWhereTo) {
  xla::OpSharding replicated;
  replicated.set_type(xla::OpSharding::REPLICATED);
  auto order = ParsePluginProgram(
      Order(absl::StrCat(R"({"devices": {"device_ids": [3, 1]}, "memory_kind": "device", "xla_hlo_sharding": ")",
                         absl::Base64Escape(replicated.SerializeAsString()), R"("})")));
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_TRUE(order->donate);
  ASSERT_EQ(order->to.size(), 1);
  xla::ifrt::HloShardingProto to;
  EXPECT_EQ(order->to[0].serialized_sharding().type_name(), "xla::ifrt::HloSharding");
  ASSERT_TRUE(to.ParseFromString(order->to[0].serialized_sharding().data()));
  EXPECT_THAT(to.devices().device_ids(), ElementsAre(3, 1));
  EXPECT_EQ(to.memory_kind(), "device");
  EXPECT_EQ(to.xla_op_sharding().type(), xla::OpSharding::REPLICATED);
}

TEST(PluginProgramTest, OtherOrdersAreRefusedByName) {
  EXPECT_EQ(ParsePluginProgram(R"({"profileRequest": {}})").status().message(),
            "gangway does not serve the plugin program profileRequest: use jax.profiler.trace or gangway trace");
  EXPECT_EQ(ParsePluginProgram(R"(__serialized_plugin_program {"a": {}})").status().message(),
            "gangway does not serve the plugin program a");
  EXPECT_THAT(ParsePluginProgram(R"({"bulk_persistence_write_request": {}})").status().message(),
              HasSubstr("gangway.checkpoint"));
}

TEST(PluginProgramTest, MalformedOnesAreErrors) {
  for (const char* text : {"", "[]", "{", R"({"a": 1, "b": 2})", R"({"reshardRequest": 3})"}) {
    EXPECT_EQ(ParsePluginProgram(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  for (const char* sharding :
       {"7", "{}", R"({"devices": {"device_ids": ["a"]}})", R"({"devices": {"device_ids": [1]}})",
        R"({"devices": {"device_ids": [1]}, "xla_hlo_sharding": "%%"})"}) {
    EXPECT_EQ(ParsePluginProgram(Order(sharding)).status().code(), absl::StatusCode::kInvalidArgument) << sharding;
  }
}

}  // namespace
}  // namespace gangway::ifrt_proxy

#include "gangway/ifrt_proxy/plugin_program.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gangway/base/status.h"
#include "nlohmann/json.hpp"
#include "xla/python/pjrt_ifrt/xla_sharding.pb.h"

namespace gangway::ifrt_proxy {
namespace {

using nlohmann::json;

// What jaxlib's serializer of plugin programs puts before the text.
constexpr absl::string_view kSerialized = "__serialized_plugin_program ";

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("plugin program: ", what));
}

// The member of an object; null where there is none.
const json& Member(const json& object, const char* name) {
  static const json kNothing;
  auto it = object.is_object() ? object.find(name) : object.end();
  return it != object.end() ? *it : kNothing;
}

absl::StatusOr<xla::ifrt::ShardingProto> ShardingFrom(const json& text) {
  xla::ifrt::HloShardingProto proto;
  const json& ids = Member(Member(text, "devices"), "device_ids");
  if (!ids.is_array()) return Malformed("a sharding without device_ids");
  for (const json& id : ids) {
    if (!id.is_number_integer()) return Malformed("device ids are integers");
    proto.mutable_devices()->add_device_ids(id.get<int32_t>());
  }
  std::string bytes;
  const json& encoded = Member(text, "xla_hlo_sharding");
  if (!encoded.is_string() || !absl::Base64Unescape(encoded.get<std::string>(), &bytes) ||
      !proto.mutable_xla_op_sharding()->ParseFromString(bytes)) {
    return Malformed("xla_hlo_sharding is an OpSharding in base 64");
  }
  if (const json& kind = Member(text, "memory_kind"); kind.is_string()) proto.set_memory_kind(kind.get<std::string>());
  xla::ifrt::ShardingProto sharding;
  sharding.mutable_serialized_sharding()->set_type_name("xla::ifrt::HloSharding");
  sharding.mutable_serialized_sharding()->set_data(proto.SerializeAsString());
  return sharding;
}

// What does here what a Pathways server does for that order.
absl::string_view InsteadOf(absl::string_view order) {
  if (order == "profileRequest") return ": use jax.profiler.trace or gangway trace";
  if (absl::StrContains(order, "ersistence")) return ": use orbax's own handlers or gangway.checkpoint";
  return "";
}

}  // namespace

absl::StatusOr<ReshardOrder> ParsePluginProgram(absl::string_view text) {
  absl::ConsumePrefix(&text, kSerialized);
  const json program = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!program.is_object() || program.size() != 1) return Malformed("expected a JSON object that holds one order");
  const std::string name = program.begin().key();
  if (name != "reshardRequest") {
    return absl::UnimplementedError(absl::StrCat("gangway does not serve the plugin program ", name, InsteadOf(name)));
  }
  const json& request = program.begin().value();
  const json& to = Member(request, "outSharding");
  if (!to.is_array()) return Malformed("reshardRequest without outSharding");
  ReshardOrder order;
  const json& donate = Member(request, "donateInput");
  order.donate = donate.is_boolean() && donate.get<bool>();
  for (const json& sharding : to) {
    GW_ASSIGN_OR_RETURN(order.to.emplace_back(), ShardingFrom(sharding));
  }
  return order;
}

}  // namespace gangway::ifrt_proxy

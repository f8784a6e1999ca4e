// What the conformance tests share: backends to run against, programs as HLO text, launches over several devices.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gangway/collective/gang_keeper.h"
#include "gangway/device/device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::device {

struct Backend {
  std::string name;
  std::function<std::unique_ptr<Client>(int devices)> make;
};

// device/sim with the evaluator, device/pjrt with the CPU plugin, and with the CPU plugin that GANGWAY_TEST_PLUGIN
// names.
std::vector<Backend> Backends();

// Serialized HloModuleProto of HLO text.
std::string Hlo(absl::string_view text);

// Text of a hosted call, e.g. HostedCall("all_reduce", "f32[8]{0}", "f32[8]{0}", "x", "key = 1 : i64, ...").
std::string HostedCall(absl::string_view target, absl::string_view result, absl::string_view operand_layout,
                       absl::string_view operands, absl::string_view attributes);
// `groups = array<i64: 0, 1, ...>, group_size = n : i64` of one group of all.
std::string OneGroup(int members);

// Every wait of the suite.
constexpr absl::Duration kDeadline = absl::Seconds(60);
absl::Status Outcome(const Future<Unit>& future);

class ConformanceTest : public ::testing::TestWithParam<Backend> {
 protected:
  // Before anything else, once.
  void Start(int devices) {
    client_ = GetParam().make(devices);
    ASSERT_EQ(static_cast<int>(client_->devices().size()), devices);
  }
  Device& device(int i) { return *client_->devices()[i]; }

  std::shared_ptr<Executable> Compile(absl::string_view text, int partitions = 1);
  template <typename T>
  BufferRef Put(int device_index, DType dtype, std::vector<int64_t> dims, const std::vector<T>& values) {
    auto buffer = client_->FromHost(device(device_index), {{dtype, std::move(dims)}, values.data(), {}, nullptr});
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    return buffer.ok() ? *buffer : nullptr;
  }
  template <typename T>
  std::vector<T> Get(const BufferRef& buffer) {
    std::vector<T> values(buffer->size_bytes() / sizeof(T));
    EXPECT_EQ(Outcome(buffer->ToHost(values.data())), absl::OkStatus());
    return values;
  }

  // One launch of `executable` on the first `inputs.size()` devices, in order.
  std::vector<Execution> LaunchAll(Executable& executable, const std::vector<std::vector<BufferRef>>& inputs);
  std::shared_ptr<collective::Gang> MakeGang(int participants);
  ExecuteOptions OptionsFor(const std::shared_ptr<collective::Gang>& gang, int partition);

  collective::GangKeeper keeper_;
  std::unique_ptr<Client> client_;
  int64_t next_launch_ = 1;
};

inline std::string BackendName(const ::testing::TestParamInfo<Backend>& info) { return info.param.name; }

}  // namespace gangway::device

// One client of gangway.v1: its numbers and what they mean.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "gangway/controller/controller.h"
#include "gangway/program_api/graph.h"
#include "gangway/v1/program_service.pb.h"

namespace gangway::program_api {

// Belongs to the controller's loop, the constructor apart. Requests take effect in the order of Handle.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // Called on the loop, in any order of the requests; must not block.
  using Send = std::function<void(v1::Response)>;

  Session(controller::Controller& controller, std::string peer, Send send)
      : controller_(controller), peer_(std::move(peer)), send_(std::move(send)) {}

  void Handle(const v1::Request& request);
  // Frees everything; what is still under way answers nobody.
  void Close();

 private:
  absl::Status Open(uint64_t id, const v1::Open& open);
  absl::Status Slice(uint64_t id, const v1::MakeSlice& request);
  absl::Status Compile(uint64_t id, const v1::Compile& request);
  absl::Status Put(uint64_t id, const v1::Put& request);
  absl::Status MakeArray(const v1::Put& request);
  absl::Status Define(uint64_t id, const v1::Define& request);
  absl::Status Run(uint64_t id, const v1::Run& request);
  absl::Status Call(uint64_t id, const v1::Run& request, std::vector<controller::ArrayId> arguments);
  absl::Status Wait(uint64_t id, const v1::Wait& request);
  absl::Status Fetch(uint64_t id, const v1::Fetch& request);
  absl::Status Release(uint64_t id, const v1::Release& request);
  absl::Status ReadMemory(uint64_t id);

  // True when the request uses what a run is still to name; it is handled after that.
  bool MustWait(const v1::Request& request);
  void RunOver(uint64_t id, const v1::Run& request, absl::StatusOr<std::vector<controller::ArrayId>> results);
  // Its results mean something now: handles the requests that wait for them.
  void Named(const v1::Run& request);
  absl::StatusOr<controller::ArrayId> Array(uint64_t number) const;
  absl::StatusOr<FunctionRef> FindFunction(uint64_t number) const;
  void Name(uint64_t number, controller::ArrayId array);
  void Forget(uint64_t number);
  // The results of a request that failed: every use fails with the error.
  void Poison(const v1::Run& request, const absl::Status& error);
  void Answer(uint64_t id, const absl::Status& status);

  controller::Controller& controller_;
  const std::string peer_;
  const Send send_;
  bool open_ = false;
  const std::shared_ptr<bool> closed_ =
      std::make_shared<bool>(false);  // shared with its functions, which runs may hold
  controller::SessionId session_;
  absl::flat_hash_map<uint64_t, controller::ArrayId> arrays_;
  // Results of runs that wait for a device value, and the requests that wait for those, in order.
  absl::flat_hash_map<uint64_t, std::vector<v1::Request>> unnamed_;
  size_t waiting_ = 0;  // of the requests
  // Arguments of such runs: how many use them; released ones go when none does.
  absl::flat_hash_map<uint64_t, int> in_use_;
  absl::flat_hash_set<uint64_t> to_release_;
  absl::flat_hash_map<uint64_t, FunctionRef> functions_;
  absl::flat_hash_map<uint64_t, GraphRef> programs_;
};

}  // namespace gangway::program_api

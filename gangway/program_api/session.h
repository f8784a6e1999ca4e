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

// What one session may have of each: far more than one does that means well.
struct SessionBounds {
  int64_t unanswered = 1 << 16;                 // requests
  int64_t unanswered_bytes = int64_t{8} << 30;  // of these, and of what they answer with
  int64_t program_bytes = int64_t{1} << 30;     // of programs, as BytesOf counts
};

// Requests that are not answered yet. Belongs to the controller's loop.
class Unanswered {
 public:
  explicit Unanswered(const SessionBounds& bounds) : bounds_(bounds) {}

  // One of them, until it goes.
  class Place {
   public:
    Place(std::shared_ptr<Unanswered> all, int64_t bytes);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    const std::shared_ptr<Unanswered> all_;  // shared: it may outlive the session
    const int64_t bytes_;
  };
  // Copied with what answers it.
  using PlaceRef = std::shared_ptr<const Place>;
  // RESOURCE_EXHAUSTED when there are so many, or they take so much, already.
  static absl::StatusOr<PlaceRef> Enter(const std::shared_ptr<Unanswered>& all, int64_t bytes);

 private:
  const SessionBounds bounds_;
  int64_t count_ = 0;
  int64_t bytes_ = 0;
};

// Belongs to the controller's loop, the constructor apart. Requests take effect in the order of Handle.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // Called on the loop, in any order of the requests; must not block.
  using Send = std::function<void(v1::Response)>;

  Session(controller::Controller& controller, std::string peer, Send send, const SessionBounds& bounds = {})
      : controller_(controller),
        peer_(std::move(peer)),
        send_(std::move(send)),
        bounds_(bounds),
        unanswered_(std::make_shared<Unanswered>(bounds)) {}

  void Handle(const v1::Request& request);
  // Whether the controller has let it in. Until then it can do nothing.
  bool is_open() const { return open_; }
  // Frees everything; what is still under way answers nobody.
  void Close();

 private:
  absl::Status Open(uint64_t id, const v1::Open& open);
  absl::Status Slice(uint64_t id, const v1::MakeSlice& request);
  absl::Status FreeSlice(uint64_t id, const v1::FreeSlice& request);
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
  void ForgetProgram(uint64_t number);
  void Name(uint64_t number, controller::ArrayId array);
  void Forget(uint64_t number);
  // Every use of that array fails with the error.
  void Poison(uint64_t number, const absl::Status& error);
  // The results of a request that failed.
  void Poison(const v1::Run& request, const absl::Status& error);
  void Answer(uint64_t id, const absl::Status& status);

  controller::Controller& controller_;
  const std::string peer_;
  const Send send_;
  const SessionBounds bounds_;
  const std::shared_ptr<Unanswered> unanswered_;  // shared with the places
  bool open_ = false;
  const std::shared_ptr<bool> closed_ =
      std::make_shared<bool>(false);  // shared with its functions, which runs may hold
  controller::SessionId session_;
  absl::flat_hash_map<uint64_t, controller::ArrayId> arrays_;
  // Why the last number that was to name an error names nothing: there was no room for more of them.
  absl::Status unnamed_error_;
  // Results of runs that wait for a device value, and the requests that wait for those, in order.
  struct Waiting {
    v1::Request request;
    Unanswered::PlaceRef place;
  };
  absl::flat_hash_map<uint64_t, std::vector<Waiting>> unnamed_;
  // Arguments of such runs: how many use them; released ones go when none does.
  absl::flat_hash_map<uint64_t, int> in_use_;
  absl::flat_hash_set<uint64_t> to_release_;
  absl::flat_hash_map<uint64_t, FunctionRef> functions_;
  struct Program {
    GraphRef graph;
    int64_t bytes = 0;
  };
  absl::flat_hash_map<uint64_t, Program> programs_;
  int64_t program_bytes_ = 0;  // of all
};

}  // namespace gangway::program_api

#include "gangway/program_api/session.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/base/amounts.h"
#include "gangway/base/check.h"
#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/program_api/brought.h"
#include "gangway/program_api/dense.h"
#include "gangway/program_api/graph_run.h"
#include "spdlog/spdlog.h"

namespace gangway::program_api {
namespace {

using controller::ArrayId;
using controller::DeviceId;

// Of a value in a message, less what is around it: gRPC's streams abort on one that protobuf does not write.
constexpr int64_t kMostBytes = INT32_MAX - (64 << 10);

v1::Response ResponseTo(uint64_t id) {
  v1::Response response;
  response.set_id(id);
  return response;
}

void Fill(const compile::ValueInfo& value, bool donated, v1::Compiled::Type* type) {
  type->set_dtype(static_cast<int>(value.shape.dtype()));
  for (int64_t dim : value.shape.dims()) type->add_dims(dim);
  const Shape shard = ShardShape(value.shape, value.sharding);
  for (int64_t dim : shard.dims()) type->add_shard_dims(dim);
  type->set_donated(donated);
}

void Fill(const controller::Program& program, v1::Compiled* compiled) {
  compiled->set_name(program.compiled.name);
  for (size_t i = 0; i < program.compiled.parameters.size(); ++i) {
    const bool donated =
        i < program.compiled.donation.size() && program.compiled.donation[i] != compile::Donation::kNone;
    Fill(program.compiled.parameters[i], donated, compiled->add_parameters());
  }
  for (const auto& output : program.compiled.outputs) Fill(output, false, compiled->add_outputs());
}

}  // namespace

Unanswered::Place::Place(std::shared_ptr<Unanswered> all, int64_t bytes) : all_(std::move(all)), bytes_(bytes) {
  ++all_->count_;
  all_->bytes_ += bytes_;
}

Unanswered::Place::~Place() {
  --all_->count_;
  all_->bytes_ -= bytes_;
}

absl::StatusOr<Unanswered::PlaceRef> Unanswered::Enter(const std::shared_ptr<Unanswered>& all, int64_t bytes) {
  if (all->count_ < all->bounds_.unanswered && bytes <= all->bounds_.unanswered_bytes - all->bytes_) {
    return std::make_shared<const Place>(all, bytes);
  }
  return absl::ResourceExhaustedError(absl::StrCat("already ", all->count_, " requests with ", BytesText(all->bytes_),
                                                   " of this session are not answered yet"));
}

void Session::Handle(const v1::Request& request) {
  GW_CHECK(controller_.loop().InLoop());
  if (*closed_) return;
  if (MustWait(request)) return;
  const uint64_t id = request.id();
  auto handle = [&]() -> absl::Status {
    if (!open_ && !request.has_open()) return absl::FailedPreconditionError("the first request must open the session");
    switch (request.kind_case()) {
      case v1::Request::kOpen:
        return Open(id, request.open());
      case v1::Request::kMakeSlice:
        return Slice(id, request.make_slice());
      case v1::Request::kFreeSlice:
        return FreeSlice(id, request.free_slice());
      case v1::Request::kCompile:
        return Compile(id, request.compile());
      case v1::Request::kPut:
        return Put(id, request.put());
      case v1::Request::kDefine:
        return Define(id, request.define());
      case v1::Request::kRun:
        return Run(id, request.run());
      case v1::Request::kWait:
        return Wait(id, request.wait());
      case v1::Request::kFetch:
        return Fetch(id, request.fetch());
      case v1::Request::kRelease:
        return Release(id, request.release());
      case v1::Request::kReadMemory:
        return ReadMemory(id);
      case v1::Request::KIND_NOT_SET:
        break;
    }
    return absl::UnimplementedError("a request of a kind this server does not know");
  };
  if (absl::Status status = handle(); !status.ok()) Answer(id, status);
}

bool Session::MustWait(const v1::Request& request) {
  if (unnamed_.empty()) return false;
  auto wait_for = [&](uint64_t number) {
    auto it = unnamed_.find(number);
    if (it == unnamed_.end()) return false;
    auto place = Unanswered::Enter(unanswered_, static_cast<int64_t>(request.ByteSizeLong()));
    if (!place.ok()) {
      Poison(request.run(), place.status());
      Answer(request.id(), place.status());
      return true;
    }
    it->second.push_back({request, *std::move(place)});
    // What it makes is unnamed for as long.
    for (uint64_t result : request.run().results()) unnamed_.try_emplace(result);
    return true;
  };
  if (request.has_fetch()) return wait_for(request.fetch().array());
  const auto& used = request.has_run()    ? request.run().arguments()
                     : request.has_wait() ? request.wait().arrays()
                                          : request.release().arrays();
  for (uint64_t number : used) {
    if (wait_for(number)) return true;
  }
  return false;
}

void Session::Close() {
  if (std::exchange(*closed_, true)) return;
  programs_.clear();
  functions_.clear();
  arrays_.clear();
  if (open_) controller_.CloseSession(session_);
}

void Session::Answer(uint64_t id, const absl::Status& status) {
  if (*closed_) return;
  v1::Response response = ResponseTo(id);
  response.set_code(static_cast<int>(status.code()));
  response.set_message(std::string(status.message()));
  send_(std::move(response));
}

absl::Status Session::Open(uint64_t id, const v1::Open& open) {
  if (open_) return absl::FailedPreconditionError("the session is open already");
  controller::SessionInfo info;
  info.name = open.name().empty() ? peer_ : open.name();
  info.tenant = open.tenant();
  if (open.weight() > 0) info.weight = open.weight();
  info.priority = open.priority();
  info.token = open.token();
  if (absl::Status refused = controller_.Admit(&info); !refused.ok()) {
    spdlog::warn("{}", std::string(refused.message()));
    return refused;
  }
  session_ = controller_.OpenSession(std::move(info));
  open_ = true;
  v1::Response response = ResponseTo(id);
  for (const controller::DeviceInfo& device : controller_.devices()) {
    auto* to = response.mutable_open()->add_devices();
    to->set_id(device.id.value());
    to->set_kind(device.kind);
    to->set_worker(device.worker);
    to->set_island(device.island);
    for (int coord : device.coords) to->add_coords(coord);
  }
  response.mutable_open();
  send_(std::move(response));
  return absl::OkStatus();
}

absl::Status Session::Slice(uint64_t id, const v1::MakeSlice& request) {
  resource::SliceRequest slice;
  slice.devices = request.devices();
  if (request.has_island()) slice.island = request.island();
  slice.policy = request.policy();
  GW_ASSIGN_OR_RETURN(std::vector<DeviceId> devices, controller_.MakeSlice(session_, slice));
  v1::Response response = ResponseTo(id);
  for (DeviceId device : devices) response.mutable_make_slice()->add_devices(device.value());
  send_(std::move(response));
  return absl::OkStatus();
}

absl::Status Session::FreeSlice(uint64_t id, const v1::FreeSlice& request) {
  std::vector<DeviceId> devices;
  for (int32_t device : request.devices()) devices.push_back(DeviceId(device));
  GW_RETURN_IF_ERROR(controller_.FreeSlice(session_, devices));
  Answer(id, absl::OkStatus());
  return absl::OkStatus();
}

absl::Status Session::Compile(uint64_t id, const v1::Compile& request) {
  controller::CompileRequest compile;
  compile.artifact = request.artifact();
  for (int32_t device : request.devices()) compile.devices.push_back(DeviceId(device));
  compile.options.num_partitions = static_cast<int64_t>(compile.devices.size());
  GW_ASSIGN_OR_RETURN(auto place, Unanswered::Enter(unanswered_, static_cast<int64_t>(request.artifact().size())));
  auto [program_id, ready] = controller_.Compile(session_, std::move(compile));
  ready.OnReady([weak = weak_from_this(), id, program_id = program_id, function = request.function(),
                 place = std::move(place)](const absl::StatusOr<std::shared_ptr<const controller::Program>>& program) {
    std::shared_ptr<Session> self = weak.lock();
    if (self == nullptr || *self->closed_) return;
    if (!program.ok()) {
      self->controller_.ReleaseProgram(self->session_, program_id);
      return self->Answer(id, program.status());
    }
    self->functions_[function] =
        std::make_shared<const Function>(self->controller_, self->session_, *program, self->closed_);
    v1::Response response = ResponseTo(id);
    Fill(**program, response.mutable_compile());
    self->send_(std::move(response));
  });
  return absl::OkStatus();
}

absl::StatusOr<FunctionRef> Session::FindFunction(uint64_t number) const {
  auto it = functions_.find(number);
  if (it == functions_.end()) return absl::NotFoundError(absl::StrCat("no function ", number));
  return it->second;
}

absl::StatusOr<ArrayId> Session::Array(uint64_t number) const {
  auto it = arrays_.find(number);
  if (it != arrays_.end()) return it->second;
  const std::string unknown = absl::StrCat("no array ", number);
  if (unnamed_error_.ok()) return absl::NotFoundError(unknown);
  return Annotate(unnamed_error_, absl::StrCat(unknown, "; not every array could be made"));
}

void Session::Name(uint64_t number, ArrayId array) {
  auto [it, is_new] = arrays_.try_emplace(number, array);
  if (is_new) return;
  controller_.Release(it->second);
  it->second = array;
}

absl::Status Session::Put(uint64_t id, const v1::Put& request) {
  absl::Status status = MakeArray(request);
  if (!status.ok()) Poison(request.array(), status);
  if (status.ok()) Answer(id, status);
  return status;
}

absl::Status Session::MakeArray(const v1::Put& request) {
  GW_ASSIGN_OR_RETURN(FunctionRef function, FindFunction(request.function()));
  const auto& parameters = function->program->compiled.parameters;
  if (request.parameter() < 0 || request.parameter() >= static_cast<int>(parameters.size())) {
    return absl::InvalidArgumentError(absl::StrCat("no parameter ", request.parameter()));
  }
  const compile::ValueInfo& value = parameters[request.parameter()];
  GW_ASSIGN_OR_RETURN(auto shards,
                      ShardsOf(value.shape, value.sharding, std::make_shared<const std::string>(request.value())));
  GW_ASSIGN_OR_RETURN(ArrayId array,
                      controller_.MakeArray(session_, SpecOf(*function->program, value), std::move(shards)));
  Name(request.array(), array);
  return absl::OkStatus();
}

absl::Status Session::Define(uint64_t id, const v1::Define& request) {
  GW_ASSIGN_OR_RETURN(GraphRef graph,
                      MakeGraph(request.graph(), [this](uint64_t number) { return FindFunction(number); }));
  const int64_t bytes = BytesOf(*graph);
  ForgetProgram(request.program());
  if (bytes > bounds_.program_bytes - program_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("the session's programs take ", BytesText(program_bytes_),
                                                     ", and ", BytesText(bytes), " more are beyond the ",
                                                     BytesText(bounds_.program_bytes), " of a session"));
  }
  programs_[request.program()] = {std::move(graph), bytes};
  program_bytes_ += bytes;
  Answer(id, absl::OkStatus());
  return absl::OkStatus();
}

void Session::ForgetProgram(uint64_t number) {
  auto it = programs_.find(number);
  if (it == programs_.end()) return;
  program_bytes_ -= it->second.bytes;
  programs_.erase(it);
}

void Session::Poison(uint64_t number, const absl::Status& error) {
  auto array = controller_.MakeErrorArray(session_, {}, error);
  if (array.ok()) return Name(number, *array);
  Forget(number);
  unnamed_error_ = array.status();
}

void Session::Poison(const v1::Run& request, const absl::Status& error) {
  for (uint64_t number : request.results()) Poison(number, error);
}

absl::Status Session::Run(uint64_t id, const v1::Run& request) {
  auto run = [&]() -> absl::Status {
    std::vector<ArrayId> arguments;
    for (uint64_t number : request.arguments()) {
      GW_ASSIGN_OR_RETURN(ArrayId array, Array(number));
      arguments.push_back(array);
    }
    if (request.has_function()) return Call(id, request, std::move(arguments));
    auto it = programs_.find(request.program());
    if (it == programs_.end()) return absl::NotFoundError(absl::StrCat("no program ", request.program()));
    const auto& [graph, bytes] = it->second;
    if (request.results_size() != static_cast<int>(graph->results.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("the program has ", graph->results.size(), " results, ", request.results_size(), " are named"));
    }
    GW_ASSIGN_OR_RETURN(auto place,
                        Unanswered::Enter(unanswered_, static_cast<int64_t>(request.ByteSizeLong()) + bytes));
    const RunContext context{&controller_, session_, request.dispatch() == v1::Run::SEQUENTIAL};
    for (uint64_t number : request.arguments()) ++in_use_[number];
    for (uint64_t number : request.results()) unnamed_.try_emplace(number);
    RunGraph(
        context, graph, std::move(arguments),
        [weak = weak_from_this(), id, request, place = std::move(place)](absl::StatusOr<std::vector<ArrayId>> results) {
          std::shared_ptr<Session> self = weak.lock();
          if (self == nullptr || *self->closed_) return;  // closing has freed the results
          self->RunOver(id, request, std::move(results));
        });
    return absl::OkStatus();
  };
  absl::Status status = run();
  if (!status.ok()) {
    Poison(request, status);
    Named(request);
  }
  return status;
}

void Session::RunOver(uint64_t id, const v1::Run& request, absl::StatusOr<std::vector<ArrayId>> results) {
  if (!results.ok()) Poison(request, results.status());
  for (size_t i = 0; results.ok() && i < results->size(); ++i) {
    Name(request.results(static_cast<int>(i)), (*results)[i]);
  }
  for (uint64_t number : request.arguments()) {
    auto it = in_use_.find(number);
    if (it == in_use_.end() || --it->second > 0) continue;
    in_use_.erase(it);
    if (to_release_.erase(number) > 0) Forget(number);
  }
  Answer(id, results.status());
  Named(request);
}

void Session::Named(const v1::Run& request) {
  std::vector<Waiting> waited;
  for (uint64_t number : request.results()) {
    auto it = unnamed_.find(number);
    if (it == unnamed_.end()) continue;
    std::move(it->second.begin(), it->second.end(), std::back_inserter(waited));
    unnamed_.erase(it);
  }
  for (Waiting& next : waited) {
    next.place.reset();  // it may have to take another
    Handle(next.request);
  }
}

void Session::Forget(uint64_t number) {
  auto it = arrays_.find(number);
  if (it == arrays_.end()) return;
  controller_.Release(it->second);
  arrays_.erase(it);
}

absl::Status Session::Call(uint64_t id, const v1::Run& request, std::vector<ArrayId> arguments) {
  GW_ASSIGN_OR_RETURN(FunctionRef function, FindFunction(request.function()));
  if (request.results_size() != static_cast<int>(function->program->compiled.outputs.size())) {
    return absl::InvalidArgumentError(absl::StrCat("the function has ", function->program->compiled.outputs.size(),
                                                   " results, ", request.results_size(), " are named"));
  }
  const controller::Program& program = *function->program;
  controller::ExecuteOptions options;
  options.notify = false;
  for (int index : request.keep()) options.non_donatable.insert(index);
  GW_ASSIGN_OR_RETURN(const Brought brought, Brought::To(controller_, session_, program, arguments));
  GW_ASSIGN_OR_RETURN(controller::ExecuteResult result,
                      controller_.Execute(session_, program.id, brought.arguments(), options));
  for (size_t i = 0; i < program.compiled.donation.size(); ++i) {
    const bool donated = program.compiled.donation[i] != compile::Donation::kNone;
    if (!donated || !brought.IsNew(i) || options.non_donatable.contains(static_cast<int>(i))) continue;
    GW_RETURN_IF_ERROR(controller_.Donate(arguments[i]));
  }
  for (size_t i = 0; i < result.outputs.size(); ++i) Name(request.results(static_cast<int>(i)), result.outputs[i]);
  Answer(id, absl::OkStatus());
  Named(request);
  return absl::OkStatus();
}

absl::Status Session::Wait(uint64_t id, const v1::Wait& request) {
  struct Pending {
    int left = 0;
    absl::Status status;
    Unanswered::PlaceRef place;
  };
  auto pending = std::make_shared<Pending>();
  GW_ASSIGN_OR_RETURN(pending->place, Unanswered::Enter(unanswered_, static_cast<int64_t>(request.ByteSizeLong())));
  std::vector<Future<Unit>> futures;
  for (uint64_t number : request.arrays()) {
    GW_ASSIGN_OR_RETURN(ArrayId array, Array(number));
    futures.push_back(controller_.Ready(array));
  }
  pending->left = static_cast<int>(futures.size());
  if (futures.empty()) Answer(id, absl::OkStatus());
  for (const auto& future : futures) {
    future.OnReady([weak = weak_from_this(), pending, id](const absl::StatusOr<Unit>& outcome) {
      pending->status.Update(outcome.status());
      if (--pending->left > 0) return;
      if (auto self = weak.lock()) self->Answer(id, pending->status);
    });
  }
  return absl::OkStatus();
}

absl::Status Session::Fetch(uint64_t id, const v1::Fetch& request) {
  GW_ASSIGN_OR_RETURN(ArrayId array, Array(request.array()));
  GW_ASSIGN_OR_RETURN(const controller::ArraySpec* found, controller_.Spec(array));
  struct Gathering {
    controller::ArraySpec spec;
    v1::Response response;
    size_t left = 0;
    absl::Status status;
    Unanswered::PlaceRef place;
  };
  auto gathering = std::make_shared<Gathering>();
  gathering->spec = *found;
  gathering->response = ResponseTo(id);
  v1::Fetched* fetched = gathering->response.mutable_fetch();
  fetched->set_dtype(static_cast<int>(found->dtype));
  int64_t bytes = ByteWidth(found->dtype);
  for (int64_t dim : found->dims) {
    fetched->add_dims(dim);
    if (__builtin_mul_overflow(bytes, dim, &bytes)) bytes = INT64_MAX;
  }
  if (bytes > kMostBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "array ", request.array(), " has ", BytesText(static_cast<double>(bytes)), ": no message holds so much"));
  }
  GW_ASSIGN_OR_RETURN(gathering->place, Unanswered::Enter(unanswered_, bytes));
  const std::vector<int> positions = PositionsToFetch(gathering->spec);
  gathering->left = positions.size();
  for (int position : positions) {
    controller_.Fetch(array, position)
        .OnReady([weak = weak_from_this(), gathering, position, id, bytes](const absl::StatusOr<SharedBytes>& shard) {
          gathering->status.Update(shard.status());
          if (shard.ok()) {
            std::string* value = gathering->response.mutable_fetch()->mutable_value();
            value->resize(static_cast<size_t>(bytes));  // not before: what failed may be of any size
            PlaceShard(gathering->spec, position, **shard, value);
          }
          if (--gathering->left > 0) return;
          auto self = weak.lock();
          if (self == nullptr || *self->closed_) return;
          if (!gathering->status.ok()) return self->Answer(id, gathering->status);
          self->send_(std::move(gathering->response));
        });
  }
  return absl::OkStatus();
}

absl::Status Session::Release(uint64_t id, const v1::Release& request) {
  for (uint64_t number : request.arrays()) {
    in_use_.contains(number) ? (void)to_release_.insert(number) : Forget(number);
  }
  for (uint64_t number : request.functions()) functions_.erase(number);
  for (uint64_t number : request.programs()) ForgetProgram(number);
  Answer(id, absl::OkStatus());
  return absl::OkStatus();
}

absl::Status Session::ReadMemory(uint64_t id) {
  v1::Response response = ResponseTo(id);
  v1::Memory* memory = response.mutable_read_memory();
  for (const controller::DeviceMemory& device : controller_.Memory()) {
    auto* to = memory->add_devices();
    to->set_id(device.device.value());
    to->set_bytes_in_use(device.in_use);
    to->set_bytes_reserved(device.reserved);
    to->set_bytes_limit(device.limit);
  }
  send_(std::move(response));
  return absl::OkStatus();
}

}  // namespace gangway::program_api

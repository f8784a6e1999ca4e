#include "gangway/client/client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/client/connection.h"

namespace gangway::client {
namespace {

std::vector<Type> TypesOf(const google::protobuf::RepeatedPtrField<v1::Compiled::Type>& types) {
  std::vector<Type> result;
  for (const v1::Compiled::Type& type : types) {
    const auto dtype = static_cast<DType>(type.dtype());
    result.push_back({Shape(dtype, DimVector(type.dims().begin(), type.dims().end())),
                      Shape(dtype, DimVector(type.shard_dims().begin(), type.shard_dims().end())), type.donated()});
  }
  return result;
}

absl::Status WantArguments(size_t wanted, size_t given) {
  if (wanted == given) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("takes ", wanted, " arguments, got ", given));
}

}  // namespace

Array::Array(std::shared_ptr<Connection> connection) {
  const uint64_t number = connection->NewNumber();
  handle_ = std::make_shared<const Handle>(std::move(connection), number);
}

Array::Handle::~Handle() { connection->Discard(number); }

Future<Unit> Array::Ready() const {
  v1::Request request;
  request.mutable_wait()->add_arrays(number());
  Promise<Unit> ready;
  handle_->connection->Send(std::move(request)).OnReady([ready](const absl::StatusOr<v1::Response>& answer) {
    ready.Set(answer.ok() ? absl::StatusOr<Unit>(Unit{}) : absl::StatusOr<Unit>(answer.status()));
  });
  return ready.future();
}

Future<Literal> Array::Fetch() const {
  v1::Request request;
  request.mutable_fetch()->set_array(number());
  Promise<Literal> value;
  handle_->connection->Send(std::move(request)).OnReady([value](const absl::StatusOr<v1::Response>& answer) {
    if (!answer.ok()) return value.Set(answer.status());
    const v1::Fetched& fetched = answer->fetch();
    Shape shape(static_cast<DType>(fetched.dtype()), DimVector(fetched.dims().begin(), fetched.dims().end()));
    value.Set(Literal(std::move(shape), std::vector<char>(fetched.value().begin(), fetched.value().end())));
  });
  return value.future();
}

absl::StatusOr<Array> Function::Put(const Literal& value, int parameter) const {
  if (parameter < 0 || parameter >= static_cast<int>(parameters_.size())) {
    return absl::InvalidArgumentError(absl::StrCat(name_, " has no parameter ", parameter));
  }
  const Shape& wanted = parameters_[parameter].shape;
  if (value.shape().dtype() != wanted.dtype() || value.shape().dims() != wanted.dims()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": parameter ", parameter, " is ", wanted.ToString(), ", got ", value.shape().ToString()));
  }
  Array array(connection_);
  v1::Request request;
  v1::Put* put = request.mutable_put();
  put->set_array(array.number());
  put->set_function(number_);
  put->set_parameter(parameter);
  put->set_value(value.data(), value.bytes().size());
  connection_->Send(std::move(request));
  return array;
}

absl::StatusOr<std::vector<Array>> Function::Call(absl::Span<const Array> arguments) const {
  GW_RETURN_IF_ERROR_WITH(WantArguments(parameters_.size(), arguments.size()), name_);
  v1::Request request;
  v1::Run* run = request.mutable_run();
  run->set_function(number_);
  for (const Array& argument : arguments) run->add_arguments(argument.number());
  std::vector<Array> results;
  for (size_t i = 0; i < results_.size(); ++i) {
    results.push_back(Array(connection_));
    run->add_results(results.back().number());
  }
  connection_->Send(std::move(request));
  return results;
}

absl::StatusOr<std::vector<Array>> Program::Run(absl::Span<const Array> arguments, Dispatch dispatch) const {
  GW_RETURN_IF_ERROR_WITH(WantArguments(inputs_, arguments.size()), "the program");
  v1::Request request;
  v1::Run* run = request.mutable_run();
  run->set_program(number_);
  run->set_dispatch(dispatch == Dispatch::kSequential ? v1::Run::SEQUENTIAL : v1::Run::PARALLEL);
  for (const Array& argument : arguments) run->add_arguments(argument.number());
  std::vector<Array> results;
  for (int i = 0; i < results_; ++i) {
    results.push_back(Array(connection_));
    run->add_results(results.back().number());
  }
  connection_->Send(std::move(request));
  return results;
}

absl::StatusOr<Client> Client::Connect(const ConnectOptions& options) {
  Client client;
  GW_ASSIGN_OR_RETURN(client.connection_, Connection::Open(options.address, options.timeout));
  v1::Request request;
  v1::Open* open = request.mutable_open();
  open->set_name(options.name);
  open->set_tenant(options.tenant);
  open->set_token(options.token);
  open->set_weight(options.weight);
  open->set_priority(options.priority);
  GW_ASSIGN_OR_RETURN(v1::Response opened, client.connection_->Ask(std::move(request), "the session to open"));
  client.num_devices_ = opened.open().devices_size();
  return client;
}

absl::StatusOr<Slice> Client::MakeSlice(const SliceRequest& wanted) {
  v1::Request request;
  v1::MakeSlice* make = request.mutable_make_slice();
  make->set_devices(wanted.devices);
  if (wanted.island.has_value()) make->set_island(*wanted.island);
  make->set_policy(wanted.policy);
  GW_ASSIGN_OR_RETURN(v1::Response made, connection_->Ask(std::move(request), "a slice"));
  return Slice{{made.make_slice().devices().begin(), made.make_slice().devices().end()}};
}

absl::Status Client::FreeSlice(const Slice& slice) {
  v1::Request request;
  v1::FreeSlice* free = request.mutable_free_slice();
  for (int device : slice.devices) free->add_devices(device);
  return connection_->Ask(std::move(request), "a slice's end").status();
}

absl::StatusOr<Function> Client::Compile(std::string artifact, const Slice& slice) {
  Function function;
  function.connection_ = connection_;
  function.number_ = connection_->NewNumber();
  function.slice_ = slice;
  v1::Request request;
  v1::Compile* compile = request.mutable_compile();
  compile->set_function(function.number_);
  compile->set_artifact(std::move(artifact));
  for (int device : slice.devices) compile->add_devices(device);
  GW_ASSIGN_OR_RETURN(v1::Response answer, connection_->Ask(std::move(request), "a compilation"));
  function.name_ = answer.compile().name();
  function.parameters_ = TypesOf(answer.compile().parameters());
  function.results_ = TypesOf(answer.compile().outputs());
  return function;
}

absl::StatusOr<Program> Client::Define(const ProgramBuilder& builder) {
  Program program;
  program.connection_ = connection_;
  program.number_ = connection_->NewNumber();
  program.inputs_ = builder.graph_->inputs();
  program.results_ = builder.graph_->results_size();
  v1::Request request;
  request.mutable_define()->set_program(program.number_);
  *request.mutable_define()->mutable_graph() = *builder.graph_;
  GW_RETURN_IF_ERROR(connection_->Ask(std::move(request), "a program's definition").status());
  return program;
}

}  // namespace gangway::client

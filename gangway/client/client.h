// The program API in C++ (gangway.v1): artifacts compiled for slices of a cluster, run one by one or chained into whole
// dataflow programs. examples/chain.cc uses all of it.
//
// Values stay on the cluster; an Array is a handle. What takes long there ends in a Future; Connect, MakeSlice, Compile
// and Define wait for the server's answer, ConnectOptions::timeout at most. Errors carry the server's text, which names
// the program, function, device or worker. Everything is thread-safe, the ProgramBuilder apart.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gangway/base/future.h"
#include "gangway/tensor/literal.h"
#include "gangway/tensor/shape.h"

namespace gangway::v1 {
class Graph;
}

namespace gangway::client {

class Connection;

struct ConnectOptions {
  std::string address;  // host:port of a server, where JAX's clients connect too
  std::string name;     // for the server's logs and errors
  std::string tenant;
  std::string token;  // the tenant's, where the cluster asks for one
  double weight = 1;  // of its share of the devices
  int priority = 0;   // a launch of a higher one goes before all waiting ones of lower
  absl::Duration timeout = absl::Seconds(60);
};

struct SliceRequest {
  int devices = 1;
  std::optional<int> island;  // any when absent
  std::string policy;         // "spread" (default), "first_fit" (to this client alone) or "pack"
};

// Devices of one island, by their numbers in the cluster.
struct Slice {
  std::vector<int> devices;
  friend bool operator==(const Slice&, const Slice&) = default;
};

// What a function takes or gives, and what each device holds of it.
struct Type {
  Shape shape;
  Shape shard;
  bool donated = false;
};

// A value on the cluster, perhaps still to come. Copies are the same value; it is freed when the last one goes.
class Array {
 public:
  uint64_t number() const { return handle_->number; }
  // Carries the error of whatever should have made it.
  Future<Unit> Ready() const;
  // The whole value.
  Future<Literal> Fetch() const;

 private:
  friend class Function;
  friend class Program;
  struct Handle {
    Handle(std::shared_ptr<Connection> connection, uint64_t number)
        : connection(std::move(connection)), number(number) {}
    ~Handle();
    const std::shared_ptr<Connection> connection;  // shared by all that was made with it
    const uint64_t number;
  };
  explicit Array(std::shared_ptr<Connection> connection);
  std::shared_ptr<const Handle> handle_;  // shared by the copies
};

// A compiled function on the devices of a slice.
class Function {
 public:
  const std::string& name() const { return name_; }
  const std::vector<Type>& parameters() const { return parameters_; }
  const std::vector<Type>& results() const { return results_; }
  const Slice& slice() const { return slice_; }

  // The value as a parameter wants it, spread over the slice. INVALID_ARGUMENT when it has another shape.
  absl::StatusOr<Array> Put(const Literal& value, int parameter) const;
  // Runs it; returns at once. Arguments may lie anywhere. INVALID_ARGUMENT when their number is wrong; any other error
  // is the results'.
  absl::StatusOr<std::vector<Array>> Call(absl::Span<const Array> arguments) const;

 private:
  friend class Client;
  friend class ProgramBuilder;
  std::shared_ptr<Connection> connection_;
  uint64_t number_ = 0;
  std::string name_;
  std::vector<Type> parameters_, results_;
  Slice slice_;
};

// A value inside a program that is being built: its number there.
struct Value {
  int index = 0;
};

// A dataflow program under construction: calls in the order made, each of values made before. Arguments that are on
// other devices than the function that uses them, or split otherwise, are brought there by the program.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(int inputs);
  ProgramBuilder(ProgramBuilder&&) noexcept;
  ~ProgramBuilder();
  // One for a branch or a loop's body, over the same values: its inputs are where these are.
  ProgramBuilder Inner(absl::Span<const Value> values) const;

  Value input(int i) const { return {i}; }
  absl::StatusOr<std::vector<Value>> Call(const Function& function, absl::Span<const Value> arguments);
  // `then` runs over the operands where the scalar is not 0, else `otherwise`.
  absl::StatusOr<std::vector<Value>> Cond(Value predicate, const ProgramBuilder& then, const ProgramBuilder& otherwise,
                                          absl::Span<const Value> operands);
  // `body` runs over the state while the only result of `condition` over it is not 0.
  absl::StatusOr<std::vector<Value>> While(const ProgramBuilder& condition, const ProgramBuilder& body,
                                           absl::Span<const Value> state);
  void Return(absl::Span<const Value> results);

 private:
  friend class Client;
  absl::Status Check(absl::Span<const Value> values) const;
  // The values the last node makes, on these devices.
  std::vector<Value> Results(size_t count, const std::optional<Slice>& on);
  // The value on the function's devices, copied there once for all functions of that slice.
  Value CopyFor(Value value, const Function& function, int parameter);
  // Where the first result of a branch or body is.
  static std::optional<Slice> DevicesOf(const ProgramBuilder& inner);

  std::unique_ptr<v1::Graph> graph_;
  std::vector<std::optional<Slice>> devices_;                 // by value; absent: an input nobody has used
  std::map<std::pair<int, std::vector<int>>, Value> copies_;  // by value and devices
};

enum class Dispatch {
  kParallel,    // all nodes at once, in one message for each worker
  kSequential,  // each when the workers have queued the one before it
};

// A program the server knows: one message runs it.
class Program {
 public:
  // Returns at once. INVALID_ARGUMENT when the number of arguments is wrong; any other error is the results'.
  absl::StatusOr<std::vector<Array>> Run(absl::Span<const Array> arguments,
                                         Dispatch dispatch = Dispatch::kParallel) const;

 private:
  friend class Client;
  std::shared_ptr<Connection> connection_;
  uint64_t number_ = 0;
  int inputs_ = 0, results_ = 0;
};

// A session. What it made lives until the last of it, arrays, functions and programs, is dropped, or until Close.
class Client {
 public:
  static absl::StatusOr<Client> Connect(const ConnectOptions& options);

  // Devices of the cluster when the session was opened.
  int num_devices() const { return num_devices_; }
  absl::StatusOr<Slice> MakeSlice(const SliceRequest& request);
  // Gives a slice's devices back before the session's end; what was compiled for them goes on.
  absl::Status FreeSlice(const Slice& slice);
  // A StableHLO portable artifact, as jax.export or gangway.lowering makes it.
  absl::StatusOr<Function> Compile(std::string artifact, const Slice& slice);
  absl::StatusOr<Program> Define(const ProgramBuilder& program);

 private:
  std::shared_ptr<Connection> connection_;  // shared by all that was made with it
  int num_devices_ = 0;
};

}  // namespace gangway::client

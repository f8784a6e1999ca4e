// The program API in C++: compiles an artifact for a slice, runs it, then chains three calls of it into one program.
//
//   chain ADDRESS ARTIFACT [devices]
//
// The artifact is a StableHLO portable artifact of a function of one f32 scalar that gives another, for that many
// devices; in Python gangway.lowering.lower(function, (1.0,)).artifact makes it. Prints the value after one call and
// after the chain.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "absl/time/clock.h"
#include "gangway/base/status.h"
#include "gangway/client/client.h"

namespace gangway::client {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

absl::StatusOr<std::string> ReadFile(const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

absl::StatusOr<float> ReadScalar(const Array& array) {
  GW_ASSIGN_OR_RETURN(Literal value, array.Fetch().Await(absl::Now() + kPatience, "the result"));
  if (value.shape() != Shape::Scalar(DType::kF32)) {
    return absl::InvalidArgumentError(absl::StrCat("the result is ", value.shape().ToString(), ", not f32[]"));
  }
  return value.values<float>()[0];
}

absl::Status Run(const char* address, const char* path, int devices) {
  GW_ASSIGN_OR_RETURN(std::string artifact, ReadFile(path));
  ConnectOptions options;
  options.address = address;
  options.name = "chain";
  GW_ASSIGN_OR_RETURN(Client client, Client::Connect(options));
  GW_ASSIGN_OR_RETURN(Slice slice, client.MakeSlice({.devices = devices, .island = {}, .policy = ""}));
  GW_ASSIGN_OR_RETURN(Function step, client.Compile(std::move(artifact), slice));

  GW_ASSIGN_OR_RETURN(Array x, step.Put(Literal::Scalar(DType::kF32, 1.0f), 0));
  GW_ASSIGN_OR_RETURN(std::vector<Array> once, step.Call({x}));
  GW_ASSIGN_OR_RETURN(float value, ReadScalar(once[0]));
  std::printf("%s: %g\n", step.name().c_str(), value);

  ProgramBuilder builder(1);
  Value last = builder.input(0);
  for (int i = 0; i < 3; ++i) {
    GW_ASSIGN_OR_RETURN(std::vector<Value> results, builder.Call(step, {last}));
    last = results[0];
  }
  builder.Return({last});
  GW_ASSIGN_OR_RETURN(Program chain, client.Define(builder));
  GW_ASSIGN_OR_RETURN(std::vector<Array> results, chain.Run({x}));
  GW_ASSIGN_OR_RETURN(value, ReadScalar(results[0]));
  std::printf("three times: %g\n", value);
  return absl::OkStatus();
}

}  // namespace
}  // namespace gangway::client

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s ADDRESS ARTIFACT [devices]\n", argv[0]);
    return 2;
  }
  const absl::Status status = gangway::client::Run(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 4);
  if (status.ok()) return 0;
  std::fprintf(stderr, "chain: %s\n", std::string(status.message()).c_str());
  return 1;
}

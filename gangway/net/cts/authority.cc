#include "gangway/net/cts/authority.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace gangway::net {
namespace {

constexpr char kNewKey[] = " -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";

std::string ReadFile(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

Authority::Authority(const std::string& name)
    : folder_(std::filesystem::temp_directory_path() / absl::StrCat("gangway_authority_", getpid(), "_", name)) {
  std::filesystem::create_directories(folder_);
  Run(absl::StrCat("req -x509", kNewKey, " -days 2 -subj /CN=authority -keyout ca.key -out ca.pem"));
}

Authority::~Authority() { std::filesystem::remove_all(folder_); }

Tls Authority::Certificate(const std::string& name) {
  Run(absl::StrCat("req", kNewKey, " -subj /CN=", name, " -keyout ", name, ".key -out ", name, ".csr"));
  Run(absl::StrCat("x509 -req -in ", name, ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out ", name,
                   ".pem"));
  return {ReadFile(folder_ / "ca.pem"), ReadFile(folder_ / (name + ".pem")), ReadFile(folder_ / (name + ".key"))};
}

void Authority::Run(const std::string& arguments) {
  const std::string command = absl::StrCat("cd '", folder_.string(), "' && openssl ", arguments, " 2> /dev/null");
  if (std::system(command.c_str()) != 0) std::fprintf(stderr, "failed: %s\n", command.c_str());
}

}  // namespace gangway::net

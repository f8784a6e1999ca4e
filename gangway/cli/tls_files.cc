#include "gangway/cli/tls_files.h"

#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"

namespace gangway::cli {

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file.good()) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  if (!absl::StrContains(text.str(), "-----BEGIN ")) {
    return absl::InvalidArgumentError(absl::StrCat(path, " holds no PEM text"));
  }
  return text.str();
}

void AddTlsOptions(CLI::App& command, TlsFiles* files) {
  CLI::Option* authorities =
      command.add_option("--tls-ca", files->authorities,
                         "PEM file of the authorities that sign the certificates of controller and workers");
  CLI::Option* certificate =
      command.add_option("--tls-cert", files->certificate, "PEM file of this process's certificate");
  CLI::Option* key = command.add_option("--tls-key", files->key, "PEM file of its private key");
  for (CLI::Option* option : {authorities, certificate, key}) {
    for (CLI::Option* other : {authorities, certificate, key}) {
      if (other != option) option->needs(other);
    }
  }
}

absl::StatusOr<net::Tls> ReadTls(const TlsFiles& files) {
  net::Tls tls;
  if (files.certificate.empty()) return tls;
  GW_ASSIGN_OR_RETURN(tls.authorities, ReadPem(files.authorities));
  GW_ASSIGN_OR_RETURN(tls.certificate, ReadPem(files.certificate));
  GW_ASSIGN_OR_RETURN(tls.key, ReadPem(files.key));
  return tls;
}

}  // namespace gangway::cli

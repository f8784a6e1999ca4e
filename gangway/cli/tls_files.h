// Certificates in files, as options name them.
#pragma once

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "gangway/net/tls.h"

namespace gangway::cli {

struct TlsFiles {
  std::string authorities, certificate, key;  // paths of PEM files; all three or none
};

// --tls-ca, --tls-cert and --tls-key; one needs the others.
void AddTlsOptions(CLI::App& command, TlsFiles* files);
// NOT_FOUND naming a file that cannot be read, INVALID_ARGUMENT one that holds no PEM.
absl::StatusOr<std::string> ReadPem(const std::string& path);
// The three of them; the same errors.
absl::StatusOr<net::Tls> ReadTls(const TlsFiles& files);

}  // namespace gangway::cli

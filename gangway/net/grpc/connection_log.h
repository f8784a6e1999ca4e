// What gRPC knows of connections that never became calls.
#pragma once

#include <functional>
#include <string>

namespace gangway::net {

// Calls `log` with a line for a TLS handshake that failed, at most one a second; the line says how many there were. On
// threads of gRPC's. Once a process, before its first server.
void LogFailedHandshakes(std::function<void(const std::string&)> log);

}  // namespace gangway::net

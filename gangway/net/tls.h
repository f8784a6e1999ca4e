// Who a process is, and whom it believes.
#pragma once

#include <string>

namespace gangway::net {

// PEM texts; all three or none. Both ends of a connection show a certificate that an authority of the other signed.
struct Tls {
  std::string authorities;  // certificates of those whose signature counts
  std::string certificate;  // this process's, with those between it and an authority
  std::string key;          // its private key

  bool empty() const { return authorities.empty() && certificate.empty() && key.empty(); }
};

}  // namespace gangway::net

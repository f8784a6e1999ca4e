// An authority and certificates of it, made by openssl in a folder of their own, for tests and benchmarks.
#pragma once

#include <filesystem>
#include <string>

#include "gangway/net/tls.h"

namespace gangway::net {

class Authority {
 public:
  explicit Authority(const std::string& name);
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  // What a process shows that is called so; empty texts where there is no openssl.
  Tls Certificate(const std::string& name);

 private:
  void Run(const std::string& arguments);
  const std::filesystem::path folder_;
};

}  // namespace gangway::net

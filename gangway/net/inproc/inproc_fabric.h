// Fabrics whose ends are in one process: for tests, and in simulated time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gangway/net/fabric.h"

namespace gangway::net {

// Makes fabrics that reach each other. They may outlive it.
class InprocFabrics {
 public:
  // A parcel on its way between two ends, by their addresses.
  struct Freight {
    const std::string& from;
    const std::string& to;
    size_t bytes = 0;
  };
  // Runs a delivery, now or later; what runs later must run before the fabrics' users are gone.
  using Carry = std::function<void(const Freight& freight, std::function<void()> deliver)>;

  // Without `carry` a parcel arrives on the sender's thread before Send returns.
  explicit InprocFabrics(Carry carry = nullptr);

  std::shared_ptr<Fabric> Make();
  // The end at `address` is cut off: nothing reaches it or comes from it any more.
  void Cut(const std::string& address);

 private:
  class End;
  struct Hub;
  const std::shared_ptr<Hub> hub_;  // shared with the fabrics
};

}  // namespace gangway::net

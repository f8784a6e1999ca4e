// Which processes may share memory.
#pragma once

#include <string>

namespace gangway::net {

// The same text for processes of one start of one host that see each other, the same shared memory and the same
// network; another for all others. Where the system does not tell, nobody else has it.
std::string HostCard();

}  // namespace gangway::net

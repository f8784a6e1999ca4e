// One message of every kind with every field set, for tests of channels and wire forms.
#pragma once

#include <vector>

#include "gangway/net/message.h"

namespace gangway::net {

std::vector<Message> SampleMessages();

}  // namespace gangway::net

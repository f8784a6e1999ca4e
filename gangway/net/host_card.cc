#include "gangway/net/host_card.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"

namespace gangway::net {

std::string HostCard() {
  std::string card;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> card;
  bool told = !card.empty();
  for (const char* what : {"/proc/self/ns/pid", "/proc/self/ns/ipc", "/proc/self/ns/net", "/dev/shm"}) {
    struct stat of = {};
    told = told && stat(what, &of) == 0;
    absl::StrAppend(&card, "/", of.st_dev, ":", of.st_ino);
  }
  absl::StrAppend(&card, "/", geteuid());
  if (told) return card;
  std::random_device device;
  return absl::StrCat(device(), "-", device(), "-", device(), "-", device());
}

}  // namespace gangway::net

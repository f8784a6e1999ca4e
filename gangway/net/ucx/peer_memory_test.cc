#include "gangway/net/ucx/peer_memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::net {
namespace {

// Runs `child` in a process of its own, which ends when the test has closed its pipe; `told` is what it wrote first.
class Child {
 public:
  template <typename Told>
  explicit Child(Told told) {
    int out[2], in[2];
    if (pipe(out) != 0 || pipe(in) != 0) return;
    process_ = fork();
    if (process_ == 0) {
      const std::string words = told();
      (void)!write(out[1], words.data(), words.size());
      close(out[1]);
      close(in[1]);
      char end;
      (void)!read(in[0], &end, 1);
      _exit(0);
    }
    close(out[1]);
    close(in[0]);
    char buffer[4096];
    for (ssize_t n; (n = read(out[0], buffer, sizeof buffer)) > 0;) words_.append(buffer, n);
    close(out[0]);
    stop_ = in[1];
  }
  ~Child() {
    close(stop_);
    waitpid(process_, nullptr, 0);
  }
  const std::string& words() const { return words_; }

 private:
  pid_t process_ = -1;
  int stop_ = -1;
  std::string words_;
};

// A child's card, then where its data and its guard are, and the guard.
struct Offer {
  uint64_t address, guard_address, guard;
};

std::string OfferOf(const std::vector<char>& data, const MemoryGuard& guard) {
  const Offer offer{reinterpret_cast<uint64_t>(data.data()), guard.address(), guard.word()};
  return MemoryCard() + std::string(reinterpret_cast<const char*>(&offer), sizeof offer);
}

TEST(PeerMemory, ReadsWhatAnotherProcessOffers) {
  std::vector<char> data(3 << 20, 'x');
  MemoryGuard guard;
  Child child([&] {
    std::fill(data.begin(), data.end(), 'y');  // the child's copy
    return OfferOf(data, guard);
  });
  ASSERT_EQ(child.words().size(), kMemoryCardBytes + sizeof(Offer));
  const auto memory = PeerMemory::Of(child.words().substr(0, kMemoryCardBytes));
  ASSERT_TRUE(memory.has_value());
  Offer offer;
  std::memcpy(&offer, child.words().data() + kMemoryCardBytes, sizeof offer);
  std::vector<char> read(data.size());
  ASSERT_TRUE(memory->Read(offer.address, read.data(), read.size(), offer.guard_address, offer.guard).ok());
  EXPECT_THAT(read, testing::Each('y'));
  EXPECT_EQ(memory->Read(offer.address, read.data(), read.size(), offer.guard_address, offer.guard + 1).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(memory->Read(8, read.data(), 8, offer.guard_address, offer.guard).code(), absl::StatusCode::kUnavailable);
}

TEST(PeerMemory, NothingIsReadUnderAGuardThatWasWithdrawn) {
  const auto memory = PeerMemory::Of(MemoryCard());
  ASSERT_TRUE(memory.has_value());
  MemoryGuard guard;
  const uint64_t word = guard.word();
  char from = 'a', to = 0;
  const auto address = reinterpret_cast<uint64_t>(&from);
  EXPECT_TRUE(memory->Read(address, &to, 1, guard.address(), word).ok());
  EXPECT_EQ(to, 'a');
  guard.Withdraw();
  EXPECT_EQ(memory->Read(address, &to, 1, guard.address(), word).code(), absl::StatusCode::kUnavailable);
}

TEST(PeerMemory, KnowsOnlyProcessesOfThisHost) {
  std::string card = MemoryCard();
  EXPECT_TRUE(PeerMemory::Of(card).has_value());
  EXPECT_FALSE(PeerMemory::Of(card.substr(1)).has_value());
  std::string elsewhere = card;
  elsewhere[0] = static_cast<char>(elsewhere[0] ^ 1);
  EXPECT_FALSE(PeerMemory::Of(elsewhere).has_value());
  std::string gone = card;  // another process has the number, or none: its memory says something else
  const int64_t process = 0x7ffffff0;
  std::memcpy(gone.data() + 24, &process, sizeof process);
  EXPECT_FALSE(PeerMemory::Of(gone).has_value());
}

}  // namespace
}  // namespace gangway::net

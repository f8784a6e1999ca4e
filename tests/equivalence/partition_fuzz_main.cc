// partition_fuzz: random programs, whole against partitioned, as many as asked for. What fails is made smaller and
// kept.
//
//   build/partition_fuzz [--first=SEED] [--count=N] [--keep=FOLDER] [FILE...]
//
// Files are programs kept earlier; they are run instead of random ones. Each program runs in a process of its own, so
// that an abort is a failure like any other. Exits with 1 when something failed.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gangway/hlo/text.h"
#include "tests/equivalence/crasher.h"
#include "tests/equivalence/minimize.h"
#include "tests/equivalence/random_module.h"

namespace gangway::equivalence {
namespace {

constexpr int64_t kBatch = 64;        // programs a process runs; alone again where one of them fails
constexpr unsigned kMaxSeconds = 60;  // of one process

// What a process that ran `work` ended with: "" when all was well.
std::string InProcess(const std::function<absl::Status()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(kMaxSeconds);
    const absl::Status status = work();
    const std::string message = status.ok() ? "" : status.ToString();
    const ssize_t written = write(ends[1], message.data(), std::min<size_t>(message.size(), 60000));
    _exit(status.ok() && written >= 0 ? 0 : 1);
  }
  close(ends[1]);
  std::string message;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) message.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int state = 0;
  waitpid(child, &state, 0);
  if (WIFSIGNALED(state)) return absl::StrCat("killed by signal ", WTERMSIG(state));
  return message;
}

// The kind of a failure, its error and stage: a smaller program must fail there too, not for another reason.
std::string KindOf(const std::string& failure) {
  const size_t error = failure.find(':');
  return failure.substr(0, error == std::string::npos ? error : failure.find_first_of(":%0123456789\n", error + 1));
}

std::string Failure(const hlo::Module& module, const CrasherOptions& options) {
  return InProcess([&] { return RunCrasher(module, options); });
}

struct Settings {
  int64_t first = 1, count = 2000;
  std::string keep;
  std::vector<std::string> files;
};

void Keep(const hlo::Module& module, const CrasherOptions& options, const std::string& failure,
          const Settings& settings) {
  const std::string kind = KindOf(failure);
  const std::unique_ptr<hlo::Module> small =
      Minimize(module, [&](const hlo::Module& candidate) { return KindOf(Failure(candidate, options)) == kind; });
  const std::string text = CrasherText(*small, options, kind);
  std::printf("%s\n", text.c_str());
  if (settings.keep.empty()) return;
  std::ofstream(absl::StrCat(settings.keep, "/", module.name(), options.propagate ? "_completed" : "_sharded", ".hlo"))
      << text;
}

int64_t RunSeeds(const Settings& settings) {
  int64_t failed = 0;
  for (const bool completed : {false, true}) {
    RandomOptions random;
    random.shard_everything = !completed;
    const auto run = [&](int64_t seed) {
      return RunCrasher(*RandomModule(static_cast<uint64_t>(seed), random), {static_cast<uint64_t>(seed), completed});
    };
    for (int64_t begin = settings.first; begin < settings.first + settings.count; begin += kBatch) {
      const int64_t end = std::min(begin + kBatch, settings.first + settings.count);
      const std::string any = InProcess([&] {
        for (int64_t seed = begin; seed < end; ++seed) {
          if (absl::Status status = run(seed); !status.ok()) return status;
        }
        return absl::OkStatus();
      });
      if (any.empty()) continue;
      for (int64_t seed = begin; seed < end; ++seed) {
        const std::string failure = InProcess([&] { return run(seed); });
        if (failure.empty()) continue;
        ++failed;
        std::printf("seed %ld, %s: %s\n", static_cast<long>(seed), completed ? "completed" : "everything sharded",
                    failure.substr(0, 300).c_str());
        std::fflush(stdout);
        Keep(*RandomModule(static_cast<uint64_t>(seed), random), {static_cast<uint64_t>(seed), completed}, failure,
             settings);
      }
    }
  }
  return failed;
}

int64_t RunFiles(const Settings& settings) {
  int64_t failed = 0;
  for (const std::string& file : settings.files) {
    const std::string failure = InProcess([&] { return RunCrasherFile(file); });
    if (failure.empty()) continue;
    ++failed;
    std::printf("%s: %s\n", file.c_str(), failure.c_str());
  }
  return failed;
}

int Main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--first=")) {
      if (!absl::SimpleAtoi(argument, &settings.first)) return 2;
    } else if (absl::ConsumePrefix(&argument, "--count=")) {
      if (!absl::SimpleAtoi(argument, &settings.count)) return 2;
    } else if (absl::ConsumePrefix(&argument, "--keep=")) {
      settings.keep = std::string(argument);
    } else if (absl::StartsWith(argument, "-")) {
      std::fprintf(stderr, "usage: partition_fuzz [--first=SEED] [--count=N] [--keep=FOLDER] [FILE...]\n");
      return 2;
    } else {
      settings.files.emplace_back(argument);
    }
  }
  const int64_t failed = settings.files.empty() ? RunSeeds(settings) : RunFiles(settings);
  std::printf("%ld failed\n", static_cast<long>(failed));
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace gangway::equivalence

int main(int argc, char** argv) { return gangway::equivalence::Main(argc, argv); }

#include "tests/runtime/scenario.h"

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gangway/base/status.h"
#include "tests/runtime/sim_cluster.h"

namespace gangway {
namespace {

using controller::ArrayId;
using controller::DeviceId;
using controller::RuntimeController;
using controller::SessionId;

using Words = std::vector<std::string>;

absl::StatusOr<std::vector<DeviceId>> ParseDevices(const std::string& text) {
  std::vector<DeviceId> devices;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    std::pair<std::string, std::string> range = absl::StrSplit(part, absl::MaxSplits('-', 1));
    int first = 0, last = 0;
    if (!absl::SimpleAtoi(range.first, &first)) return absl::InvalidArgumentError(absl::StrCat("devices ", text));
    last = first;
    if (!range.second.empty() && !absl::SimpleAtoi(range.second, &last)) {
      return absl::InvalidArgumentError(absl::StrCat("devices ", text));
    }
    for (int i = first; i <= last; ++i) devices.push_back(DeviceId(i));
  }
  return devices;
}

// The value of "key=value" among the words, or `otherwise`.
double Number(const Words& words, absl::string_view key, double otherwise) {
  for (absl::string_view word : words) {
    double value = 0;
    if (absl::ConsumePrefix(&word, key) && absl::ConsumePrefix(&word, "=") && absl::SimpleAtod(word, &value)) {
      return value;
    }
  }
  return otherwise;
}

class Scenario {
 public:
  Scenario(uint64_t seed, sched::SchedulerOptions scheduler) : cluster_({.seed = seed, .scheduler = scheduler}) {}

  // A command takes effect at its time; words[0] is its name.
  absl::Status Schedule(absl::Duration when, Words words) {
    const std::string& name = words[0];
    std::function<void()> action;
    if (name == "worker" && words.size() >= 2) {
      action = [this, words] {
        cluster_.AddWorker(words[1], {.devices = static_cast<int>(Number(words, "devices", 1))});
      };
    } else if (name == "lose" && words.size() == 2) {
      action = [this, words] { cluster_.Kill(words[1]); };
    } else if (name == "silence" && words.size() == 2) {
      action = [this, words] { cluster_.network().Silence(words[1]); };
    } else if (name == "break" && words.size() == 3) {
      action = [this, words] { cluster_.BreakDevice(words[1], std::atoi(words[2].c_str()), true); };
    } else if (name == "client" && words.size() >= 2) {
      action = [this, words] { OpenClient(words[1], Number(words, "weight", 1)); };
    } else if (name == "close" && words.size() == 2) {
      action = [this, words] { Close(words[1]); };
    } else if (name == "stats" && words.size() == 1) {
      action = [this] { Stats(); };
    } else if (name == "program" && words.size() >= 4) {
      GW_RETURN_IF_ERROR(ScheduleProgram(when, words));
      return absl::OkStatus();
    } else if (absl::EndsWith(name, ":") && words.size() >= 2) {
      GW_ASSIGN_OR_RETURN(action, ClientAction(name.substr(0, name.size() - 1), Words(words.begin() + 1, words.end())));
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unknown command ", absl::StrJoin(words, " ")));
    }
    cluster_.timeline().After(when, std::move(action));
    return absl::OkStatus();
  }

  std::vector<std::string> Run(absl::Duration span) {
    cluster_.RunFor(span);
    return trace_;
  }

 private:
  struct Client {
    SessionId session;
    std::map<std::string, ArrayId> arrays;
  };

  void Note(const std::string& event) {
    trace_.push_back(absl::StrCat(absl::FormatDuration(cluster_.timeline().elapsed()), " ", event));
  }

  void OpenClient(const std::string& name, double weight) {
    cluster_.Post([this, name, weight](RuntimeController& c) {
      clients_[name].session = c.OpenSession({name, "", weight});
    });
  }
  void Close(const std::string& name) {
    cluster_.Post([this, name](RuntimeController& c) {
      c.CloseSession(clients_[name].session);
      Note(absl::StrCat(name, " closed"));
    });
  }
  void Stats() {
    cluster_.Post([this](RuntimeController& c) {
      const auto stats = c.Stats();
      Note(absl::StrCat("stats: ", stats.sessions, " sessions, ", stats.arrays, " arrays, ", stats.programs,
                        " programs, ", stats.pending_launches, " pending, ", cluster_.StoreBuffers(), " buffers"));
    });
  }

  // program NAME DEVICES CLIENT word...: compiled for the client, the words are the modelled program and |options.
  absl::Status ScheduleProgram(absl::Duration when, const Words& words) {
    GW_ASSIGN_OR_RETURN(std::vector<DeviceId> devices, ParseDevices(words[2]));
    const std::string name = words[1], client = words[3];
    std::string text = absl::StrJoin(Words(words.begin() + 4, words.end()), " ");
    absl::StrAppend(&text, "|name=", name);
    cluster_.timeline().After(when, [this, devices, name, client, text] {
      cluster_.Post([this, devices, name, client, text](RuntimeController& c) {
        controller::CompileRequest request;
        request.artifact = text;
        request.devices = devices;
        request.options.num_partitions = static_cast<int64_t>(devices.size());
        auto [id, ready] = c.Compile(clients_[client].session, request);
        programs_[name] = id;
        ready.OnReady([this, name](const auto& program) {
          Note(program.ok() ? absl::StrCat(name, " compiled")
                            : absl::StrCat(name, " refused: ", program.status().message()));
        });
      });
    });
    return absl::OkStatus();
  }

  // "x = array 0-7 3" | "y = f x ..." | "y = copy x 2-3" | "await y" | "fetch y 0" | "free y"
  absl::StatusOr<std::function<void()>> ClientAction(const std::string& client, Words words) {
    std::function<void(RuntimeController&, Client&)> act;
    if (words.size() >= 4 && words[1] == "=" && words[2] == "array") {
      GW_ASSIGN_OR_RETURN(auto devices, ParseDevices(words[3]));
      const int32_t value = words.size() > 4 ? std::atoi(words[4].c_str()) : 0;
      act = [this, client, words, devices, value](RuntimeController& c, Client& own) {
        Keep(client, own, words[0], MakeScalar(c, own.session, devices, value));
      };
    } else if (words.size() == 5 && words[1] == "=" && words[2] == "copy") {
      GW_ASSIGN_OR_RETURN(auto devices, ParseDevices(words[4]));
      act = [this, client, words, devices](RuntimeController& c, Client& own) {
        Keep(client, own, words[0],
             c.Copy(own.session, own.arrays[words[3]], devices, {}, controller::CopySemantics::kCopy));
      };
    } else if (words.size() >= 3 && words[1] == "=") {
      act = [this, client, words](RuntimeController& c, Client& own) { Launch(c, client, own, words); };
    } else if (words.size() == 2 && words[0] == "await") {
      act = [this, client, words](RuntimeController& c, Client& own) {
        c.Ready(own.arrays[words[1]]).OnReady([this, client, words](const absl::StatusOr<Unit>& outcome) {
          Note(outcome.ok() ? absl::StrCat(client, ": ", words[1], " ready")
                            : absl::StrCat(client, ": ", words[1], " failed: ", outcome.status().message()));
        });
      };
    } else if (words.size() == 3 && words[0] == "fetch") {
      act = [this, client, words](RuntimeController& c, Client& own) { Fetch(c, client, own, words); };
    } else if (words.size() == 2 && words[0] == "free") {
      act = [words](RuntimeController& c, Client& own) { c.Release(own.arrays[words[1]]); };
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unknown action ", absl::StrJoin(words, " ")));
    }
    return std::function<void()>([this, client, act] {
      cluster_.Post([this, client, act](RuntimeController& c) { act(c, clients_[client]); });
    });
  }

  static absl::StatusOr<ArrayId> MakeScalar(RuntimeController& c, SessionId session,
                                            const std::vector<DeviceId>& devices, int32_t value) {
    controller::ArraySpec spec;
    spec.dtype = DType::kS32;
    spec.devices = devices;
    spec.shard_dims = {DimVector{}};
    std::vector<int> all;
    for (size_t i = 0; i < devices.size(); ++i) all.push_back(static_cast<int>(i));
    auto bytes = std::make_shared<const std::string>(reinterpret_cast<const char*>(&value), sizeof(value));
    return c.MakeArray(session, std::move(spec), {{bytes, all}});
  }

  void Keep(const std::string& client, Client& own, const std::string& name, absl::StatusOr<ArrayId> array) {
    if (array.ok()) {
      own.arrays[name] = *array;
    } else {
      Note(absl::StrCat(client, ": ", name, " refused: ", array.status().message()));
    }
  }

  void Launch(RuntimeController& c, const std::string& client, Client& own, const Words& words) {
    std::vector<ArrayId> arguments;
    for (size_t i = 3; i < words.size(); ++i) arguments.push_back(own.arrays[words[i]]);
    auto result = c.Execute(own.session, programs_[words[2]], arguments, {});
    if (!result.ok()) {
      return Note(absl::StrCat(client, ": ", words[2], " refused: ", result.status().message()));
    }
    own.arrays[words[0]] = result->outputs.at(0);
    result->done.OnReady([this, client, words](const absl::StatusOr<Unit>& outcome) {
      Note(outcome.ok() ? absl::StrCat(client, ": ", words[2], " done")
                        : absl::StrCat(client, ": ", words[2], " failed: ", outcome.status().message()));
    });
  }

  void Fetch(RuntimeController& c, const std::string& client, Client& own, const Words& words) {
    c.Fetch(own.arrays[words[1]], std::atoi(words[2].c_str()))
        .OnReady([this, client, words](const absl::StatusOr<std::shared_ptr<const std::string>>& bytes) {
          if (!bytes.ok()) {
            return Note(absl::StrCat(client, ": fetch ", words[1], " failed: ", bytes.status().message()));
          }
          int32_t value = 0;
          std::memcpy(&value, (*bytes)->data(), sizeof(value));
          Note(absl::StrCat(client, ": ", words[1], "[", words[2], "] = ", value));
        });
  }

  SimCluster cluster_;
  std::map<std::string, Client> clients_;
  std::map<std::string, controller::ProgramId> programs_;
  std::vector<std::string> trace_;
};

// The commands of a text: without comments and empty lines, "at TIME" taken off.
struct Line {
  int number = 0;
  absl::Duration when;
  Words words;
};

absl::StatusOr<std::vector<Line>> ParseLines(const std::string& text) {
  std::vector<Line> lines;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    Words words = absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.empty()) continue;
    Line parsed{number, absl::ZeroDuration(), words};
    if (words[0] == "at") {
      if (words.size() < 3 || !absl::ParseDuration(words[1], &parsed.when)) {
        return absl::InvalidArgumentError(absl::StrCat("line ", number, ": at TIME command"));
      }
      parsed.words.erase(parsed.words.begin(), parsed.words.begin() + 2);
    }
    lines.push_back(std::move(parsed));
  }
  return lines;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> RunScenario(const std::string& text, uint64_t seed) {
  GW_ASSIGN_OR_RETURN(std::vector<Line> lines, ParseLines(text));
  sched::SchedulerOptions scheduler;
  absl::Duration span = absl::Seconds(30);
  for (const Line& line : lines) {
    if (line.words[0] == "lookahead") scheduler.lookahead = std::atoi(line.words.at(1).c_str());
  }
  Scenario scenario(seed, scheduler);
  for (const Line& line : lines) {
    if (line.words[0] == "lookahead") continue;
    absl::Status status = scenario.Schedule(line.when, line.words);
    if (!status.ok()) return Annotate(status, absl::StrCat("line ", line.number));
  }
  return scenario.Run(span);
}

std::string CheckTrace(const std::string& scenario, const std::vector<std::string>& trace) {
  size_t next = 0;
  for (absl::string_view line : absl::StrSplit(scenario, '\n')) {
    size_t at = line.find("CHECK: ");
    if (at != absl::string_view::npos) {
      const absl::string_view wanted = line.substr(at + 7);
      while (next < trace.size() && !absl::StrContains(trace[next], wanted)) ++next;
      if (next++ >= trace.size()) return absl::StrCat("missing, or too early: ", wanted);
    }
    at = line.find("CHECK-NOT: ");
    if (at == absl::string_view::npos) continue;
    for (const std::string& event : trace) {
      if (absl::StrContains(event, line.substr(at + 11))) return absl::StrCat("must not be: ", event);
    }
  }
  return "";
}

}  // namespace gangway

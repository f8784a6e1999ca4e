#include "gangway/status/server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gangway/base/status.h"
#include "gangway/net/address.h"
#include "gangway/status/client.h"
#include "gangway/status/json.h"
#include "gangway/status/metrics.h"
#include "gangway/status/recording.h"
#include "gangway/status/trace.h"
#include "httplib.h"
#include "status_page.h"

namespace gangway::status {
namespace {

constexpr absl::Duration kLoopDeadline = absl::Seconds(5);
// One may be explaining and some recording, for long; the others are for those who only look.
constexpr int kThreads = 8;
constexpr absl::Duration kLongestRecording = absl::Hours(1);
constexpr char kJson[] = "application/json";
constexpr size_t kLongestRequest = 1 << 16;
constexpr std::chrono::seconds kIdle{5};
// The page asks nobody but its own server.
constexpr char kPolicy[] =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:";

// A number of the query, from 0 to 1e15; 0 where there is none.
double NumberOf(const httplib::Request& request, const char* name) {
  double number = 0;
  return absl::SimpleAtod(request.get_param_value(name), &number) && number > 0 ? std::min(number, 1e15) : 0;
}

class ServerImpl final : public Server {
 public:
  ServerImpl(controller::Controller& controller, ExplainFunction explain)
      : controller_(controller), explain_(std::move(explain)) {
    http_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    http_.set_socket_options([](socket_t socket) {
      const int yes = 1;  // not SO_REUSEPORT, the library's default: a port in use is an error
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    http_.set_payload_max_length(kLongestRequest);
    // A connection that waits for its next request would keep a thread.
    http_.set_keep_alive_max_count(1);
    http_.set_keep_alive_timeout(kIdle.count());
    http_.set_read_timeout(kIdle);
    http_.set_write_timeout(kIdle);
    http_.set_default_headers(
        {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}, {"Content-Security-Policy", kPolicy}});
    http_.Get("/", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(kStatusPage, "text/html; charset=utf-8");
    });
    http_.Get("/status.json",
              [this](const httplib::Request& request, httplib::Response& response) { Status(request, response); });
    http_.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) { Metrics(response); });
    http_.Get("/trace.json", [this](const httplib::Request& request, httplib::Response& response) {
      request.has_param("record") ? RecordTrace(request, response) : PastTrace(request, response);
    });
    if (explain_ != nullptr) {
      http_.Get("/explain",
                [this](const httplib::Request& request, httplib::Response& response) { Explain(request, response); });
    }
  }

  ~ServerImpl() override {
    stopping_.Notify();
    // Recordings come to their end by that; the library would break them off.
    const absl::Time deadline = absl::Now() + kLoopDeadline;
    while (recordings_ > 0 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    http_.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Listen(const std::string& host, int port) {
    const bool bound = port == 0 ? (port = http_.bind_to_any_port(host)) > 0 : http_.bind_to_port(host, port);
    if (!bound) return absl::UnavailableError(absl::StrCat("status page: cannot listen at ", host, ":", port));
    address_ = absl::StrCat(host, ":", port);
    thread_ = std::thread([this] { http_.listen_after_bind(); });
    // Told to stop before it runs, it would never stop.
    while (!http_.is_running()) absl::SleepFor(absl::Milliseconds(1));
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }

 private:
  void Status(const httplib::Request& request, httplib::Response& response) {
    struct Seen {
      controller::Observation now;
      std::vector<controller::ProgramState> programs;
      controller::LaunchList recent;
    };
    const auto after = static_cast<uint64_t>(NumberOf(request, "after"));
    auto seen = AskLoop<Seen>([after](controller::Controller& controller) {
      return Seen{controller.Observe(), controller.Programs(), controller.LaunchesAfter(after)};
    });
    if (!seen.ok()) return Unanswered(seen.status(), response);
    response.set_content(StatusJson(seen->now, seen->programs, seen->recent), kJson);
  }

  void Metrics(httplib::Response& response) {
    auto seen =
        AskLoop<controller::Observation>([](controller::Controller& controller) { return controller.Observe(); });
    if (!seen.ok()) return Unanswered(seen.status(), response);
    response.set_content(MetricsText(*seen), "text/plain; version=0.0.4");
  }

  void PastTrace(const httplib::Request& request, httplib::Response& response) {
    auto seen = AskLoop<History>([](controller::Controller& controller) { return HistoryAfter(controller, 0, 0); });
    if (!seen.ok()) return Unanswered(seen.status(), response);
    const double seconds = NumberOf(request, "seconds");
    Trace trace;
    AddTo(trace, *seen, seconds > 0 ? seen->when - absl::Seconds(seconds) : absl::InfinitePast());
    response.set_content(trace.Finish(), kJson);
  }

  // Told as it happens, on this thread.
  void RecordTrace(const httplib::Request& request, httplib::Response& response) {
    const absl::Duration length = std::min(absl::Seconds(NumberOf(request, "record")), kLongestRecording);
    auto begin = AskLoop<History>([](controller::Controller& controller) { return HistoryAfter(controller, 0, 0); });
    if (!begin.ok()) return Unanswered(begin.status(), response);
    auto recording = std::make_shared<Recording>(recordings_, *begin, length);  // the function is copied
    if (!recording->admitted()) {
      return Unanswered(absl::UnavailableError("others are recording: ask again"), response);
    }
    response.set_chunked_content_provider(kJson, [this, recording](size_t, httplib::DataSink& sink) {
      stopping_.WaitForNotificationWithTimeout(recording->UntilNextTurn(absl::Now()));
      const auto [launch, transfer] = recording->seen();
      auto seen = AskLoop<History>([launch = launch, transfer = transfer](controller::Controller& controller) {
        return HistoryAfter(controller, launch, transfer);
      });
      if (!seen.ok()) return false;  // which breaks the answer off
      const std::string text = recording->Add(*seen, stopping_.HasBeenNotified());
      if (!sink.write(text.data(), text.size())) return false;
      if (recording->over()) sink.done();
      return true;
    });
  }

  static void Unanswered(const absl::Status& why, httplib::Response& response) {
    response.status = absl::IsNotFound(why) ? 404 : absl::IsInvalidArgument(why) ? 400 : 503;
    response.set_content(absl::StrCat(why.message(), "\n"), "text/plain");
  }

  void Explain(const httplib::Request& request, httplib::Response& response) {
    // It compiles: the other thread stays free for those who only look.
    const std::unique_lock<std::mutex> alone(explaining_, std::try_to_lock);
    absl::StatusOr<Explained> explained = absl::UnavailableError("another program is being explained: ask again");
    if (alone.owns_lock()) explained = ExplainAlone(request);
    if (!explained.ok()) return Unanswered(explained.status(), response);
    if (!explained->complaint.empty()) response.set_header(kComplaint, explained->complaint);
    response.set_content(std::move(explained->text), explained->content_type);
  }

  absl::StatusOr<Explained> ExplainAlone(const httplib::Request& request) {
    const std::string program = request.get_param_value("program");
    using Source = std::shared_ptr<const controller::CompileRequest>;
    GW_ASSIGN_OR_RETURN(const Source source, AskLoop<Source>([program](controller::Controller& controller) {
                          return controller.Source(program);
                        }));
    Parameters query(request.params.begin(), request.params.end());
    std::erase_if(query, [](const auto& parameter) { return parameter.first == "program"; });
    return explain_(*source, query);
  }

  template <typename T>
  absl::StatusOr<T> AskLoop(std::function<absl::StatusOr<T>(controller::Controller&)> question) {
    // Shared: the loop may answer after the deadline.
    auto asked = std::make_shared<Promise<T>>();
    controller_.loop().Post([&controller = controller_, asked, question] { asked->Set(question(controller)); });
    return asked->future().Await(absl::Now() + kLoopDeadline, "the controller's loop");
  }

  controller::Controller& controller_;
  const ExplainFunction explain_;
  std::mutex explaining_;
  std::atomic<int> recordings_ = 0;
  absl::Notification stopping_;
  httplib::Server http_;
  std::string address_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Serve(controller::Controller& controller, const std::string& address,
                                              ExplainFunction explain) {
  GW_ASSIGN_OR_RETURN_WITH(const net::Address where, net::ParseAddress(address), "status page");
  if (!net::IsLoopback(address)) {
    return absl::InvalidArgumentError(absl::StrCat("status page: only this machine is served, not '", where.host,
                                                   "': put a proxy with access control before 127.0.0.1"));
  }
  auto server = std::make_unique<ServerImpl>(controller, std::move(explain));
  GW_RETURN_IF_ERROR(server->Listen(where.host, where.port));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace gangway::status

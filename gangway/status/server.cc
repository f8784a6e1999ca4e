#include "gangway/status/server.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gangway/base/status.h"
#include "gangway/net/address.h"
#include "gangway/status/client.h"
#include "gangway/status/json.h"
#include "gangway/status/metrics.h"
#include "gangway/status/trace.h"
#include "httplib.h"
#include "status_page.h"

namespace gangway::status {
namespace {

constexpr absl::Duration kLoopDeadline = absl::Seconds(5);
constexpr int kThreads = 2;
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
    http_.set_keep_alive_timeout(kIdle.count());
    http_.set_read_timeout(kIdle);
    http_.set_write_timeout(kIdle);
    http_.set_default_headers(
        {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}, {"Content-Security-Policy", kPolicy}});
    http_.Get("/", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(kStatusPage, "text/html; charset=utf-8");
    });
    Document("/status.json", "application/json",
             [](const httplib::Request&, const controller::Observation& seen) { return StatusJson(seen); });
    http_.Get("/trace.json", [this](const httplib::Request& request, httplib::Response& response) {
      auto seen = AskLoop<Seen>([](controller::Controller& c) { return Seen{c.Observe(0), c.Transfers()}; });
      if (!seen.ok()) return Unanswered(seen.status(), response);
      const double seconds = NumberOf(request, "seconds");
      const absl::Time from = seconds > 0 ? seen->first.when - absl::Seconds(seconds) : absl::InfinitePast();
      response.set_content(TraceJson(seen->first.recent, seen->second, from), "application/json");
    });
    Document(
        "/metrics", "text/plain; version=0.0.4",
        [](const httplib::Request&, const controller::Observation& seen) { return MetricsText(seen); },
        /*launches=*/false);
    if (explain_ != nullptr) {
      http_.Get("/explain",
                [this](const httplib::Request& request, httplib::Response& response) { Explain(request, response); });
    }
  }

  ~ServerImpl() override {
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
  using Seen = std::pair<controller::Observation, std::vector<controller::TransferSample>>;
  using Writer = std::function<std::string(const httplib::Request&, const controller::Observation&)>;

  // `launches`: those that are over are part of it, after the number asked for.
  void Document(const char* path, const char* type, Writer write, bool launches = true) {
    http_.Get(path, [this, type, launches, write = std::move(write)](const httplib::Request& request,
                                                                     httplib::Response& response) {
      const uint64_t after =
          launches ? static_cast<uint64_t>(NumberOf(request, "after")) : std::numeric_limits<uint64_t>::max();
      auto seen = Ask(after);
      if (!seen.ok()) return Unanswered(seen.status(), response);
      response.set_content(write(request, *seen), type);
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

  absl::StatusOr<controller::Observation> Ask(uint64_t after) {
    return AskLoop<controller::Observation>(
        [after](controller::Controller& controller) { return controller.Observe(after); });
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

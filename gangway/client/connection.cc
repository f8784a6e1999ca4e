#include "gangway/client/connection.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace gangway::client {

absl::StatusOr<std::shared_ptr<Connection>> Connection::Open(const std::string& address, absl::Duration timeout) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(absl::ToChronoTime(absl::Now() + timeout))) {
    return absl::UnavailableError(absl::StrCat("no Gangway server answers at ", address));
  }
  std::shared_ptr<Connection> connection(new Connection(v1::Gangway::NewStub(channel), timeout));
  connection->receiver_ = std::thread([raw = connection.get()] { raw->Receive(); });
  return connection;
}

Connection::Connection(std::unique_ptr<v1::Gangway::Stub> stub, absl::Duration timeout)
    : stub_(std::move(stub)), timeout_(timeout), stream_(stub_->Session(&context_)) {}

Connection::~Connection() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = absl::CancelledError("the client closed the connection");
    stream_->WritesDone();
    // A server that is gone, or hangs, does not end it.
    if (!mutex_.AwaitWithTimeout(absl::Condition(&ended_), timeout_)) context_.TryCancel();
  }
  receiver_.join();
}

Future<v1::Response> Connection::Send(v1::Request request) {
  absl::MutexLock lock(&mutex_);
  if (!closed_.ok()) return Future<v1::Response>(closed_);
  if (!discarded_.empty()) {
    v1::Request release;
    for (uint64_t array : std::exchange(discarded_, {})) release.mutable_release()->add_arrays(array);
    Write(std::move(release), nullptr);
  }
  Promise<v1::Response> answer;
  Write(std::move(request), &answer);
  return answer.future();
}

void Connection::Write(v1::Request request, const Promise<v1::Response>* answer) {
  request.set_id(next_request_++);
  if (answer != nullptr) waiting_.emplace(request.id(), *answer);
  stream_->Write(request);  // where it fails, so does the stream, and with it all that wait
}

absl::StatusOr<v1::Response> Connection::Ask(v1::Request request, absl::string_view what) {
  return Send(std::move(request)).Await(absl::Now() + timeout_, what);
}

void Connection::Discard(uint64_t array) {
  absl::MutexLock lock(&mutex_);
  discarded_.push_back(array);
}

void Connection::Receive() {
  v1::Response response;
  while (stream_->Read(&response)) {
    Promise<v1::Response> answer;
    {
      absl::MutexLock lock(&mutex_);
      auto it = waiting_.find(response.id());
      if (it == waiting_.end()) continue;
      answer = it->second;
      waiting_.erase(it);
    }
    if (response.code() == 0) {
      answer.Set(std::move(response));
    } else {
      answer.Set(absl::Status(static_cast<absl::StatusCode>(response.code()), response.message()));
    }
    response.Clear();
  }
  const grpc::Status ended = stream_->Finish();
  absl::flat_hash_map<uint64_t, Promise<v1::Response>> waiting;
  absl::Status why;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_.ok()) {
      closed_ = absl::UnavailableError(absl::StrCat("the connection to the server broke: ", ended.error_message()));
    }
    why = closed_;
    ended_ = true;
    waiting.swap(waiting_);
  }
  for (auto& [id, answer] : waiting) answer.Set(why);
}

}  // namespace gangway::client

#include "gangway/ifrt_proxy/session_stream.h"

#include <utility>

#include "gangway/ifrt_proxy/protocol.h"
#include "spdlog/spdlog.h"

namespace gangway::ifrt_proxy {
namespace {

// That wait for the loop, or behind a host buffer.
constexpr size_t kMostRequests = 4096;
constexpr size_t kMostRequestBytes = size_t{1} << 30;
constexpr size_t kMostResponses = 64;  // that nobody waits for
// For a client that does not read them.
constexpr size_t kMostResponseBytes = size_t{4} << 30;
constexpr absl::Duration kAMoment = absl::Milliseconds(2);

gpr_timespec DeadlineOf(absl::Time time) {
  if (time == absl::InfiniteFuture()) return gpr_inf_future(GPR_CLOCK_REALTIME);
  const timespec at = absl::ToTimespec(time);
  return {at.tv_sec, static_cast<int32_t>(at.tv_nsec), GPR_CLOCK_REALTIME};
}

}  // namespace

SessionStream::~SessionStream() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) continue;
}

void SessionStream::Serve() {
  thread_ = std::this_thread::get_id();
  auto session = hooks_.begin(context_, [weak = weak_from_this()](IfrtResponse response, bool urgent) {
    if (std::shared_ptr<SessionStream> self = weak.lock()) self->Send(std::move(response), urgent);
  });
  if (session.ok()) {
    session_ = *std::move(session);
    session_->OnGoingOn([weak = weak_from_this()] {
      if (std::shared_ptr<SessionStream> self = weak.lock()) self->GoOn();
    });
    spdlog::info("session {}: opened by {}", session_->session_id(), context_.peer());
    loop_.Post([session = session_] { session->Open(); });
    Read();
  } else {
    absl::MutexLock lock(&mutex_);
    Finish(ToGrpc(session.status()));
  }
  while (NextEvent()) continue;
  if (session_ == nullptr) return;
  spdlog::info("session {}: {}", session_->session_id(),
               broke_off_ ? "broke off: the client is gone, or sent a message above --max-message" : "closed");
}

bool SessionStream::NextEvent() {
  void* event = nullptr;
  bool ok = false;
  switch (queue_.AsyncNext(&event, &ok, DeadlineOf(NextMoment()))) {
    case grpc::CompletionQueue::SHUTDOWN:
      return false;
    case grpc::CompletionQueue::TIMEOUT:
      OnMoment();
      return true;
    case grpc::CompletionQueue::GOT_EVENT:
      OnEvent(static_cast<Event>(reinterpret_cast<intptr_t>(event)), ok);
      return true;
  }
  return false;
}

absl::Time SessionStream::NextMoment() {
  absl::MutexLock lock(&mutex_);
  return moment_;
}

void SessionStream::OnEvent(Event event, bool ok) {
  switch (event) {
    case kRead:
      return OnRead(ok);
    case kWritten:
      return OnWritten(ok);
    case kMoment: {
      absl::MutexLock lock(&mutex_);
      alarm_set_ = false;
      return;  // the next wait is until the moment, if there still is one
    }
    case kFinished: {
      broke_off_ = !ok;
      absl::MutexLock lock(&mutex_);
      alarm_.Cancel();
      queue_.Shutdown();
    }
  }
}

void SessionStream::Read() {
  absl::MutexLock lock(&mutex_);
  if (over_) return;  // nothing may be begun any more
  request_ = std::make_unique<IfrtRequest>();
  call_.Read(request_.get(), reinterpret_cast<void*>(kRead));
}

void SessionStream::OnRead(bool ok) {
  if (!ok) return loop_.Post([self = shared_from_this()] { self->Close(); });
  bool schedule = false, pause = false;
  {
    absl::MutexLock lock(&mutex_);
    request_bytes_ += request_->ByteSizeLong();
    requests_.push_back(std::move(request_));
    schedule = !std::exchange(scheduled_, true);
    pause = paused_ = requests_.size() >= kMostRequests || request_bytes_ >= kMostRequestBytes;
  }
  if (schedule) loop_.Post([self = shared_from_this()] { self->Deliver(); });
  if (!pause) Read();
}

void SessionStream::Deliver() {
  if (!taken_.empty()) return;  // GoOn comes back to it
  bool resume = false;
  {
    absl::MutexLock lock(&mutex_);
    taken_.swap(requests_);
    request_bytes_ = 0;
    scheduled_ = false;
    resume = std::exchange(paused_, false);
  }
  HandleTaken();
  if (session_->refused()) return Close();  // it has been told why
  if (resume) Read();
}

void SessionStream::HandleTaken() {
  while (!taken_.empty() && !session_->waits()) {
    std::unique_ptr<IfrtRequest> request = std::move(taken_.front());
    taken_.pop_front();
    session_->Handle(std::move(request));
  }
}

void SessionStream::GoOn() {
  HandleTaken();
  if (session_->refused()) return Close();
  bool more = false;
  {
    absl::MutexLock lock(&mutex_);
    more = taken_.empty() && scheduled_;
  }
  if (more) Deliver();
}

void SessionStream::Close() {
  session_->Close();
  hooks_.end(*session_);
  absl::MutexLock lock(&mutex_);
  ending_ = urgent_ = true;
  if (!writing_) WriteNext();
}

void SessionStream::Send(IfrtResponse response, bool urgent) {
  absl::MutexLock lock(&mutex_);
  if (ending_ || over_) return;
  const size_t bytes = response.ByteSizeLong();
  response_bytes_ += bytes;
  if (response_bytes_ > kMostResponseBytes) return context_.TryCancel();
  responses_.emplace_back(std::move(response), bytes);
  urgent_ |= urgent || responses_.size() >= kMostResponses;
  if (!writing_) WriteNext();
}

void SessionStream::WriteNext() {
  if (responses_.empty()) {
    if (ending_ && !std::exchange(over_, true)) Finish(grpc::Status::OK);
    return;
  }
  if (bunch_ == 0) {
    if (!urgent_) return WaitAMoment();
    bunch_ = responses_.size();
    urgent_ = false;
    moment_ = absl::InfiniteFuture();
  }
  writing_ = true;
  grpc::WriteOptions options;
  if (--bunch_ > 0) options.set_buffer_hint();  // more follow: one packet for all
  const auto& [response, bytes] = responses_.front();
  call_.Write(response, options, reinterpret_cast<void*>(kWritten));
  response_bytes_ -= bytes;
  responses_.pop_front();
}

void SessionStream::WaitAMoment() {
  if (moment_ != absl::InfiniteFuture()) return;
  moment_ = absl::Now() + kAMoment;
  if (std::this_thread::get_id() == thread_) return;  // it looks before it waits again
  if (std::exchange(alarm_set_, true)) return;        // it looks when that wakes it
  alarm_.Set(&queue_, DeadlineOf(moment_), reinterpret_cast<void*>(kMoment));
}

void SessionStream::OnWritten(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok) {
    responses_.clear();
    response_bytes_ = 0;
    bunch_ = 0;
  }
  WriteNext();
}

void SessionStream::OnMoment() {
  absl::MutexLock lock(&mutex_);
  moment_ = absl::InfiniteFuture();
  urgent_ = !responses_.empty();
  if (!writing_) WriteNext();
}

void SessionStream::Finish(const grpc::Status& status) { call_.Finish(status, reinterpret_cast<void*>(kFinished)); }

}  // namespace gangway::ifrt_proxy

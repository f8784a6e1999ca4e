#include "gangway/net/grpc/parcel_reader.h"

#include <utility>

namespace gangway::net {

void ParcelReader::Introduce(PeerId from, std::string life, Handler handler) {
  from_ = from;
  life_ = std::move(life);
  handler_ = std::move(handler);
}

void ParcelReader::ReadNext() {
  absl::MutexLock lock(&mutex_);
  if (over_) return;
  reading_ = true;
  call_.Read(&message_, Tag(&ParcelReader::OnRead));
}

void ParcelReader::OnRead(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
  }
  ok ? Handle() : End();
  MaybeDone();
}

void ParcelReader::Handle() {
  switch (handler_.on_message(shared_from_this(), message_)) {
    case Next::kEnd:
      return End();
    case Next::kWait:
      return;
    case Next::kRead:
      message_.Clear();
      return ReadNext();
  }
}

void ParcelReader::Continue() {
  {
    absl::MutexLock lock(&mutex_);
    if (over_) return;
  }
  Handle();
}

void ParcelReader::End() {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(over_, true)) return;
  }
  handler_.on_end(shared_from_this());
  absl::MutexLock lock(&mutex_);
  call_.Finish(grpc::Status::OK, Tag(&ParcelReader::OnFinished));
}

void ParcelReader::OnFinished(bool) {
  {
    absl::MutexLock lock(&mutex_);
    finished_ = true;
  }
  MaybeDone();
}

void ParcelReader::MaybeDone() {
  {
    absl::MutexLock lock(&mutex_);
    if (reading_ || !finished_) return;
  }
  handler_.on_done();
}

}  // namespace gangway::net

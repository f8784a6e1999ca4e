// Parcels that are read from where they lie (peer_memory.h).
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/net/ucx/ucx_end.h"

namespace gangway::net {
namespace {

// Between so many bytes read, other parcels have their turn.
constexpr size_t kReadAtOnce = 1 << 20;

}  // namespace

absl::Status UcxFabric::SendOffer(Peer& peer, const ParcelLabel& label, const void* data, size_t size, Done& done) {
  const uint64_t number = ++last_offer_;
  GW_RETURN_IF_ERROR(SendNote(peer, kOffer,
                              Offer{{self().value(), 0, label},
                                    number,
                                    reinterpret_cast<uint64_t>(data),
                                    size,
                                    peer.guard.address(),
                                    peer.guard.word()}));
  offered_[number] = {peer.id, label, data, size, std::exchange(done, nullptr)};
  return absl::OkStatus();
}

template <typename T>
absl::Status UcxFabric::SendNote(Peer& peer, unsigned kind, const T& content) {
  static_assert(sizeof(T) <= sizeof(Note));
  GW_RETURN_IF_ERROR(Open(peer));
  auto note = std::make_unique<Note>();
  std::memcpy(note->bytes, static_cast<const void*>(&content), sizeof content);
  ucp_request_param_t parameters = {};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.send = &NotedCallback;
  parameters.user_data = note.get();
  ucs_status_ptr_t request = ucp_am_send_nbx(peer.endpoint, kind, note->bytes, sizeof content, nullptr, 0, &parameters);
  if (UCS_PTR_IS_PTR(request)) {
    (void)note.release();  // the callback's
    ucp_worker_signal(worker_);
    return absl::OkStatus();
  }
  return ToStatus(UCS_PTR_STATUS(request), absl::StrCat("sending to worker ", peer.name));
}

// A peer that is gone hears of it otherwise.
void UcxFabric::Answer(PeerId to, uint64_t offer, bool send) {
  auto it = peers_.find(to);
  if (it != peers_.end()) (void)SendNote(*it->second, kTaken, Taken{self().value(), send, offer});
}

void UcxFabric::OnOffer(const Offer& offer) {
  Held held;
  held.size = offer.size;
  held.offer = offer;
  const PeerId from(offer.header.from);
  bool dropped = false;
  std::optional<Wanted> wanted = mailbox_.Arrive(from, offer.header.label, held, &dropped);
  if (dropped) return Dispose(held);
  if (wanted.has_value()) Fill(from, offer.header.label, *std::move(wanted), held);
}

void UcxFabric::OnTaken(const Taken& taken) {
  auto it = offered_.find(taken.number);
  if (it == offered_.end() || it->second.peer != PeerId(taken.from)) return;
  Offered offered = std::move(it->second);
  offered_.erase(it);
  absl::Status status;
  if (taken.send != 0) {
    Peer& peer = *peers_.at(offered.peer);
    peer.memory.reset();  // it will not be able to read the next ones either
    status = SendData(peer, offered.label, offered.data, offered.size, offered.done);
  }
  if (offered.done != nullptr) Call(std::move(offered.done), status);
}

bool UcxFabric::ReadSome() {
  Reading reading;
  std::optional<PeerMemory> memory;
  {
    absl::MutexLock lock(&mutex_);
    if (readings_.empty() || reading_from_ != PeerId(-1)) return false;
    reading = std::move(readings_.front());
    readings_.pop_front();
    if (auto peer = peers_.find(reading.from); peer != peers_.end()) memory = peer->second->memory;
    reading_from_ = reading.from;
    reading_lost_ = absl::OkStatus();
  }
  const Offer& offer = reading.offer;
  const size_t size = std::min(kReadAtOnce, offer.size - reading.read);
  const absl::Status status = memory.has_value() ? memory->Read(offer.address + reading.read,
                                                                static_cast<char*>(reading.wanted.data) + reading.read,
                                                                size, offer.guard_address, offer.guard)
                                                 : absl::PermissionDeniedError("its memory cannot be read");
  Change([&] {
    reading_from_ = PeerId(-1);
    reading.read += size;
    if (!reading_lost_.ok()) {
      Call(std::move(reading.wanted.done), reading_lost_);
    } else if (status.ok() && reading.read < offer.size) {
      readings_.push_front(std::move(reading));
    } else {
      EndReading(std::move(reading), status);
    }
  });
  return true;
}

void UcxFabric::EndReading(Reading reading, const absl::Status& status) {
  const Header& header = reading.offer.header;
  if (!absl::IsPermissionDenied(status)) {
    Answer(reading.from, reading.offer.number, /*send=*/false);
    Call(std::move(reading.wanted.done), status);
    return;
  }
  // It is waited for again: the data will come by the usual way.
  auto early = mailbox_.Receive(reading.from, header.label, reading.wanted);
  Answer(reading.from, reading.offer.number, /*send=*/early.ok());
  if (!early.ok()) Call(std::move(reading.wanted.done), early.status());
}

ucs_status_t UcxFabric::OfferCallback(void* self, const void* header, size_t header_size, void*, size_t,
                                      const ucp_am_recv_param_t*) {
  if (auto offer = Parsed<Offer>(header, header_size)) static_cast<UcxFabric*>(self)->OnOffer(*offer);
  return UCS_OK;
}

ucs_status_t UcxFabric::TakenCallback(void* self, const void* header, size_t header_size, void*, size_t,
                                      const ucp_am_recv_param_t*) {
  if (auto taken = Parsed<Taken>(header, header_size)) static_cast<UcxFabric*>(self)->OnTaken(*taken);
  return UCS_OK;
}

void UcxFabric::NotedCallback(void* request, ucs_status_t, void* note) {
  delete static_cast<Note*>(note);
  ucp_request_free(request);
}

}  // namespace gangway::net

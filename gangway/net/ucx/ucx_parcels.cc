// Parcels that are sent and received.
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/net/ucx/ucx_end.h"

namespace gangway::net {
namespace {

// Parcels of so many bytes and more are offered to peers that can read them where they are.
constexpr size_t kOffered = 256 << 10;

}  // namespace

void UcxFabric::Send(PeerId to, const ParcelLabel& label, const void* data, size_t size, Done done) {
  CountSent(size);
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    auto it = peers_.find(to);
    status = MaySend(to, label.subject, it != peers_.end());
    if (status.ok()) {
      const bool offers = size >= kOffered && it->second->memory.has_value();
      status =
          offers ? SendOffer(*it->second, label, data, size, done) : SendData(*it->second, label, data, size, done);
    }
  }
  if (done != nullptr) done(status);
}

absl::Status UcxFabric::SendData(Peer& peer, const ParcelLabel& label, const void* data, size_t size, Done& done) {
  GW_RETURN_IF_ERROR(Open(peer));
  auto operation = std::make_unique<Operation>(Operation{this, peer.id, {self().value(), 0, label}, nullptr});
  ucp_request_param_t parameters = {};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.send = &SentCallback;
  parameters.user_data = operation.get();
  ucs_status_ptr_t request =
      ucp_am_send_nbx(peer.endpoint, kParcel, &operation->header, sizeof(Header), data, size, &parameters);
  if (!UCS_PTR_IS_PTR(request)) {
    return ToStatus(UCS_PTR_STATUS(request), absl::StrCat("sending to worker ", peer.name));
  }
  operation->done = std::exchange(done, nullptr);
  under_way_.insert(operation.release());
  ucp_worker_signal(worker_);  // there is something to move
  return absl::OkStatus();
}

void UcxFabric::Dispose(const Held& held) {
  if (held.offer.has_value()) Answer(PeerId(held.offer->header.from), held.offer->number, /*send=*/false);
  if (held.data != nullptr) ucp_am_data_release(worker_, held.data);
}

void UcxFabric::Fill(PeerId from, const ParcelLabel& label, Wanted wanted, const Held& held) {
  if (held.offer.has_value() && held.size == wanted.size) {
    readings_.push_back({from, *held.offer, std::move(wanted)});
    ucp_worker_signal(worker_);
    return;
  }
  if (!held.promise || held.size != wanted.size) {
    CopyTo(std::move(wanted), label, held.bytes(), held.size);
    return Dispose(held);
  }
  Pull(from, std::move(wanted), held.data);
}

void UcxFabric::CopyTo(Wanted wanted, const ParcelLabel& label, const void* data, size_t size) {
  absl::Status status;
  if (size != wanted.size) {
    status = absl::InvalidArgumentError(
        absl::StrCat("parcel ", label.ToString(), " has ", size, " bytes, not ", wanted.size));
  } else if (size > 0) {
    std::memcpy(wanted.data, data, size);
  }
  Call(std::move(wanted.done), status);
}

void UcxFabric::Pull(PeerId from, Wanted wanted, void* promise) {
  // Only by an endpoint of our own can it be ended before its time.
  if (auto peer = peers_.find(from); peer != peers_.end()) Open(*peer->second).IgnoreError();
  auto* operation = new Operation{this, from, {}, std::move(wanted.done)};
  under_way_.insert(operation);
  ucp_request_param_t parameters = {};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.recv_am = &ReceivedCallback;
  parameters.user_data = operation;
  ucs_status_ptr_t request = ucp_am_recv_data_nbx(worker_, promise, wanted.data, wanted.size, &parameters);
  if (UCS_PTR_IS_PTR(request)) {
    ucp_worker_signal(worker_);
  } else {
    Finish(operation, ToStatus(UCS_PTR_STATUS(request), "receiving"));
  }
}

void UcxFabric::Finish(Operation* operation, const absl::Status& status) {
  given_up_.erase(operation);
  if (under_way_.erase(operation) > 0) {
    if (!operation->lost.ok()) --lost_;
    Call(std::move(operation->done), operation->lost.ok() ? status : operation->lost);
  }
  delete operation;
}

// What UCX hands over is ours only once we have said that we keep it, by UCS_INPROGRESS: nothing of it is released
// here. UCS_OK declines a promise, which frees its sender.
ucs_status_t UcxFabric::OnParcel(const Header& header, void* data, size_t size, uint64_t attributes) {
  const bool promise = (attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  const bool keeps = promise || (attributes & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
  Held held{keeps ? data : nullptr, size, promise, {}, std::nullopt};
  if (!keeps) held.copy.assign(static_cast<const char*>(data), size);
  const PeerId from(header.from);
  bool dropped = false;
  std::optional<Wanted> wanted = mailbox_.Arrive(from, header.label, held, &dropped);
  if (dropped) return UCS_OK;
  if (!wanted.has_value()) return keeps ? UCS_INPROGRESS : UCS_OK;
  if (promise && size == wanted->size) {
    Pull(from, *std::move(wanted), data);
    return UCS_INPROGRESS;
  }
  CopyTo(*std::move(wanted), header.label, data, size);
  return UCS_OK;
}

ucs_status_t UcxFabric::ParcelCallback(void* self, const void* header, size_t header_size, void* data, size_t size,
                                       const ucp_am_recv_param_t* parameters) {
  const auto parsed = Parsed<Header>(header, header_size);
  if (!parsed.has_value()) return UCS_OK;
  return static_cast<UcxFabric*>(self)->OnParcel(*parsed, data, size, parameters->recv_attr);
}

void UcxFabric::SentCallback(void* request, ucs_status_t status, void* user) {
  auto* operation = static_cast<Operation*>(user);
  operation->fabric->Finish(operation, ToStatus(status, "sending"));
  ucp_request_free(request);
}

void UcxFabric::ReceivedCallback(void* request, ucs_status_t status, size_t, void* user) {
  auto* operation = static_cast<Operation*>(user);
  operation->fabric->Finish(operation, ToStatus(status, "receiving"));
  ucp_request_free(request);
}

}  // namespace gangway::net

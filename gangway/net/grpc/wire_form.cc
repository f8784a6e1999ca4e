#include "gangway/net/grpc/wire_form.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/worker.pb.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/proto_buffer_reader.h"

namespace gangway::net {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr size_t kChunk = 1 << 20;      // payloads above travel in pieces of this size
constexpr size_t kCopyBelow = 2048;     // smaller ones are cheaper to copy than to refer to
constexpr size_t kFrameSoft = 1 << 20;  // a frame is closed when it exceeds this
constexpr size_t kMessagesPerFrame = 1024;
constexpr size_t kMostText = 64 << 10;  // of a status: some of it is a client's
constexpr uint64_t kMaxPayload = uint64_t{1} << 36;
constexpr size_t kAlignment = 64;

enum Field : uint32_t { kMessages = 1, kPayloads = 2, kChunkTotal = 3, kChunkBytes = 4 };
constexpr uint32_t kVarint = 0, kDelimited = 2;
constexpr uint32_t Tag(Field field, uint32_t wire_type) { return field << 3 | wire_type; }

grpc::Slice Refer(const Payload& payload, size_t offset, size_t size) {
  if (size < kCopyBelow) return grpc::Slice(payload.data() + offset, size);
  auto* owner = new std::shared_ptr<const void>(payload.owner());
  return grpc::Slice(
      const_cast<char*>(payload.data()) + offset, size,
      [](void* held) { delete static_cast<std::shared_ptr<const void>*>(held); }, owner);
}

// Tag and length of a bytes field.
void AddHeader(Field field, size_t size, std::string* out) {
  uint8_t bytes[16];
  uint8_t* end = CodedOutputStream::WriteTagToArray(Tag(field, kDelimited), bytes);
  end = CodedOutputStream::WriteVarint64ToArray(size, end);
  out->append(reinterpret_cast<char*>(bytes), end - bytes);
}

void Fill(const absl::Status& from, wire::Status* to) {
  to->set_code(static_cast<int>(from.code()));
  to->set_message(std::string(from.message().substr(0, kMostText)));
}

// Builds frames from messages one by one.
class FrameWriter {
 public:
  void Add(const Message& message) {
    std::visit([this](const auto& m) { Put(m, batch_.add_messages()); }, message);
    frame_bytes_ += batch_.messages(batch_.messages_size() - 1).ByteSizeLong();
    if (frame_bytes_ > kFrameSoft || batch_.messages_size() >= static_cast<int>(kMessagesPerFrame)) Close();
  }

  std::deque<grpc::ByteBuffer> Take() {
    Close();
    return std::move(frames_);
  }

 private:
  void Close() {
    if (batch_.messages_size() == 0) return;
    std::vector<grpc::Slice> slices;
    std::string text = batch_.SerializeAsString();
    for (const Payload& payload : inline_) {
      AddHeader(kPayloads, payload.size(), &text);
      if (payload.size() < kCopyBelow) {
        text.append(payload.data() == nullptr ? "" : payload.data(), payload.size());
        continue;
      }
      slices.emplace_back(text);
      text.clear();
      slices.push_back(Refer(payload, 0, payload.size()));
    }
    if (!text.empty()) slices.emplace_back(text);
    frames_.emplace_back(slices.data(), slices.size());
    batch_.Clear();
    inline_.clear();
    frame_bytes_ = 0;
  }

  void AddPayload(const Payload& payload, wire::Bytes* bytes) {
    if (payload.size() <= kChunk) {
      inline_.push_back(payload);
      frame_bytes_ += payload.size();
      return;
    }
    bytes->set_chunked(true);
    for (size_t offset = 0; offset < payload.size(); offset += kChunk) {
      const size_t size = std::min(kChunk, payload.size() - offset);
      std::string header;
      if (offset == 0) {
        uint8_t total[16];
        uint8_t* end = CodedOutputStream::WriteTagToArray(Tag(kChunkTotal, kVarint), total);
        end = CodedOutputStream::WriteVarint64ToArray(payload.size(), end);
        header.append(reinterpret_cast<char*>(total), end - total);
      }
      AddHeader(kChunkBytes, size, &header);
      grpc::Slice slices[2] = {grpc::Slice(header), Refer(payload, offset, size)};
      frames_.emplace_back(slices, 2);
    }
  }

  void Put(const Hello& m, wire::Message* out) {
    auto* to = out->mutable_hello();
    to->set_protocol_version(m.protocol_version);
    to->set_worker(m.worker);
    to->set_platform(m.platform);
    to->set_island(m.island);
    to->set_fabric(m.fabric);
    to->set_rank(m.rank);
    for (const DeviceDescription& device : m.devices) {
      auto* d = to->add_devices();
      d->set_kind(device.kind);
      d->mutable_coords()->Add(device.coords.begin(), device.coords.end());
      d->set_memory_bytes(device.memory_bytes);
    }
  }
  void Put(const ProgramLoaded& m, wire::Message* out) {
    out->mutable_program_loaded()->set_program(m.program.value());
    Fill(m.status, out->mutable_program_loaded()->mutable_status());
    if (!m.memory.has_value()) return;
    auto* memory = out->mutable_program_loaded()->mutable_memory();
    memory->set_code(m.memory->code);
    memory->set_arguments(m.memory->arguments);
    memory->set_outputs(m.memory->outputs);
    memory->set_aliased(m.memory->aliased);
    memory->set_temporaries(m.memory->temporaries);
    memory->set_peak(m.memory->peak);
  }
  void Put(const TasksDone& m, wire::Message* out) {
    auto* to = out->mutable_tasks_done();
    for (const TaskDone& done : m.tasks) {
      to->add_tasks(done.task.value());
      to->add_micros(done.micros);
      if (done.status.ok()) continue;
      auto* failure = to->add_failures();
      failure->set_task(done.task.value());
      Fill(done.status, failure->mutable_status());
    }
  }
  void Put(const Fetched& m, wire::Message* out) {
    auto* to = out->mutable_fetched();
    to->set_request(m.request.value());
    Fill(m.status, to->mutable_status());
    AddPayload(m.bytes, to->mutable_bytes());
    to->set_hash(m.digest.hash);
    to->set_has_nan(m.digest.has_nan);
  }
  void Put(const HostCall& m, wire::Message* out) {
    auto* to = out->mutable_host_call();
    to->set_call(m.call.value());
    to->set_task(m.task.value());
    to->set_device(m.device);
    to->set_callback(m.callback);
    AddPayload(m.operands, to->mutable_operands());
  }
  void Put(const HostCallAnswer& m, wire::Message* out) {
    auto* to = out->mutable_host_call_answer();
    to->set_call(m.call.value());
    Fill(m.status, to->mutable_status());
    AddPayload(m.results, to->mutable_results());
  }
  void Put(const Heartbeat& m, wire::Message* out) {
    auto* to = out->mutable_heartbeat();
    to->set_store_bytes(m.store_bytes);
    to->set_store_buffers(m.store_buffers);
    to->set_pending_tasks(m.pending_tasks);
    to->mutable_device_bytes()->Add(m.device_bytes.begin(), m.device_bytes.end());
    to->set_sent_bytes(m.sent_bytes);
    to->set_received_bytes(m.received_bytes);
  }
  void Put(const Welcome& m, wire::Message* out) {
    out->mutable_welcome()->set_first_device(m.first_device);
    out->mutable_welcome()->set_self(m.self.value());
    out->mutable_welcome()->set_heartbeat_ms(m.heartbeat_ms);
  }
  void Put(const Peer& m, wire::Message* out) {
    out->mutable_peer()->set_peer(m.peer.value());
    out->mutable_peer()->set_name(m.name);
    out->mutable_peer()->set_fabric(m.fabric);
  }
  void Put(const PeerLost& m, wire::Message* out) {
    out->mutable_peer_lost()->set_peer(m.peer.value());
    Fill(m.status, out->mutable_peer_lost()->mutable_status());
  }
  void Put(const LoadProgram& m, wire::Message* out) {
    auto* to = out->mutable_load_program();
    to->set_program(m.program.value());
    to->set_name(m.name);
    AddPayload(m.executable, to->mutable_executable());
    to->set_num_partitions(m.num_partitions);
    for (const auto& part : m.partitions) {
      auto* p = to->add_partitions();
      p->set_partition(part.partition);
      p->set_device(part.device);
    }
    for (const auto& name : m.participants) to->add_participants(name);
    for (PeerId owner : m.owners) to->add_owners(owner.value());
  }
  void Put(const UnloadProgram& m, wire::Message* out) {
    out->mutable_unload_program()->set_program(m.program.value());
  }
  void Put(const MakeBuffer& m, wire::Message* out) {
    auto* to = out->mutable_make_buffer();
    to->set_buffer(m.buffer.value());
    to->set_task(m.task.value());
    to->set_dtype(static_cast<int>(m.dtype));
    for (const auto& piece : m.pieces) {
      auto* p = to->add_pieces();
      AddPayload(piece.bytes, p->mutable_bytes());
      p->mutable_dims()->Add(piece.dims.begin(), piece.dims.end());
      p->mutable_devices()->Add(piece.devices.begin(), piece.devices.end());
    }
  }
  void Put(const ExpectBuffer& m, wire::Message* out) {
    out->mutable_expect_buffer()->set_buffer(m.buffer.value());
    out->mutable_expect_buffer()->mutable_devices()->Add(m.devices.begin(), m.devices.end());
  }
  void Put(const CopyBuffer& m, wire::Message* out) {
    auto* to = out->mutable_copy_buffer();
    to->set_buffer(m.buffer.value());
    to->set_task(m.task.value());
    for (const auto& part : m.parts) {
      auto* p = to->add_parts();
      p->set_source(part.source.value());
      p->set_from(part.from);
      p->set_to(part.to);
    }
    for (const Dims& dims : m.dims) to->add_dims()->mutable_dims()->Add(dims.begin(), dims.end());
    for (const auto& send : m.sends) {
      auto* s = to->add_sends();
      s->set_source(send.source.value());
      s->set_from(send.from);
      s->set_to(send.to.value());
      s->set_position(send.position);
    }
    for (const auto& receive : m.receives) {
      auto* r = to->add_receives();
      r->set_from(receive.from.value());
      r->set_position(receive.position);
      r->mutable_dims()->Add(receive.dims.begin(), receive.dims.end());
      r->mutable_to()->Add(receive.to.begin(), receive.to.end());
    }
    to->set_dtype(static_cast<int>(m.dtype));
  }
  static void PutDims(const Dims& dims, google::protobuf::RepeatedField<int64_t>* out) {
    out->Add(dims.begin(), dims.end());
  }
  void Put(const PatchBuffer& m, wire::Message* out) {
    auto* to = out->mutable_patch_buffer();
    to->set_buffer(m.buffer.value());
    to->set_task(m.task.value());
    to->set_dtype(static_cast<int>(m.dtype));
    for (const auto& shard : m.shards) {
      auto* s = to->add_shards();
      s->set_device(shard.device);
      PutDims(shard.dims, s->mutable_dims());
    }
    for (const auto& piece : m.pieces) {
      auto* p = to->add_pieces();
      p->set_source(piece.source.value());
      p->set_from(piece.from);
      PutDims(piece.start, p->mutable_start());
      PutDims(piece.extent, p->mutable_extent());
      p->set_shard(piece.shard);
      PutDims(piece.at, p->mutable_at());
    }
    for (const auto& send : m.sends) {
      auto* s = to->add_sends();
      s->set_source(send.source.value());
      s->set_from(send.from);
      PutDims(send.start, s->mutable_start());
      PutDims(send.extent, s->mutable_extent());
      s->set_to(send.to.value());
      s->set_piece(send.piece);
    }
    for (const auto& receive : m.receives) {
      auto* r = to->add_receives();
      r->set_from(receive.from.value());
      r->set_piece(receive.piece);
      PutDims(receive.extent, r->mutable_extent());
      for (const auto& target : receive.targets) {
        auto* t = r->add_targets();
        t->set_shard(target.shard);
        PutDims(target.at, t->mutable_at());
      }
    }
  }
  void Put(const Launch& m, wire::Message* out) {
    auto* to = out->mutable_launch();
    const Launch::Order& order = *m.order;
    to->set_task(order.task.value());
    to->set_program(order.program.value());
    for (BufferId id : order.arguments) to->add_arguments(id.value());
    to->set_first_output(order.first_output.value());
    to->mutable_keep()->Add(order.keep.begin(), order.keep.end());
    to->mutable_drop()->Add(order.drop.begin(), order.drop.end());
    to->set_report(m.report);
  }
  void Put(const FetchShard& m, wire::Message* out) {
    auto* to = out->mutable_fetch_shard();
    to->set_request(m.request.value());
    to->set_buffer(m.buffer.value());
    to->set_device(m.device);
    to->set_digest(m.digest);
  }
  void Put(const FreeBuffers& m, wire::Message* out) {
    for (BufferId id : m.buffers) out->mutable_free_buffers()->add_buffers(id.value());
    if (m.buffers.empty()) out->mutable_free_buffers();
  }
  void Put(const PoisonBuffers& m, wire::Message* out) {
    auto* to = out->mutable_poison_buffers();
    for (BufferId id : m.buffers) to->add_buffers(id.value());
    Fill(m.status, to->mutable_status());
    to->set_task(m.task.value());
  }
  void Put(const WatchTasks& m, wire::Message* out) {
    auto* to = out->mutable_watch_tasks();
    for (TaskId id : m.tasks) to->add_tasks(id.value());
  }

  void Put(const Mark& m, wire::Message* out) { out->mutable_mark()->set_request(m.request.value()); }
  void Put(const Reached& m, wire::Message* out) { out->mutable_reached()->set_request(m.request.value()); }
  void Put(const Leaving&, wire::Message* out) { out->mutable_leaving(); }

  std::deque<grpc::ByteBuffer> frames_;
  wire::Batch batch_;
  std::vector<Payload> inline_;  // those of batch_
  size_t frame_bytes_ = 0;
};

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("malformed frame: ", what));
}

absl::Status FromWire(const wire::Status& status) {
  if (status.code() == 0) return absl::OkStatus();
  const bool known = status.code() > 0 && status.code() <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return absl::Status(known ? static_cast<absl::StatusCode>(status.code()) : absl::StatusCode::kUnknown,
                      status.message());
}

template <typename Id>
std::vector<Id> Ids(const google::protobuf::RepeatedField<uint64_t>& values) {
  std::vector<Id> ids;
  ids.reserve(values.size());
  for (uint64_t value : values) ids.push_back(Id(value));
  return ids;
}

DType ToDType(int32_t value) { return value >= 0 && value <= 255 ? static_cast<DType>(value) : DType::kInvalid; }

absl::Status NoMemory(uint64_t size) {
  return absl::ResourceExhaustedError(absl::StrCat("no memory for ", size, " bytes"));
}

template <typename T>
std::vector<T> Values(const google::protobuf::RepeatedField<T>& values) {
  return std::vector<T>(values.begin(), values.end());
}

}  // namespace

std::deque<grpc::ByteBuffer> WriteFrames(const std::vector<Message>& messages) {
  FrameWriter writer;
  for (const Message& message : messages) writer.Add(message);
  return writer.Take();
}

absl::StatusOr<FrameReader::Block> FrameReader::Allocate(uint64_t size) const {
  if (size > kMaxPayload) return Malformed(absl::StrCat("a payload of ", size, " bytes"));
  Block block;
  block.size = size;
  if (form_ == PayloadForm::kString) {
    auto text = std::make_shared<std::string>();
    try {
      text->reserve(size);
    } catch (const std::exception&) {
      return NoMemory(size);
    }
    block.data = text->data();
    block.owner = text;
    block.text = text;
    return block;
  }
  const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment + (size == 0 ? kAlignment : 0);
  block.owner = std::shared_ptr<void>(std::aligned_alloc(kAlignment, rounded), std::free);
  if (block.owner == nullptr) return NoMemory(size);
  block.data = static_cast<char*>(block.owner.get());
  return block;
}

// One frame. The four fields of a batch are read by hand so that payloads go straight to their place.
class BatchParser {
 public:
  explicit BatchParser(FrameReader& reader) : reader_(reader) {}

  absl::StatusOr<std::vector<Message>> Parse(const grpc::ByteBuffer& frame) {
    frame_bytes_ = static_cast<int64_t>(frame.Length());
    grpc::ByteBuffer shared = frame;  // the reader wants it mutable
    grpc::ProtoBufferReader stream(&shared);
    CodedInputStream in(&stream);
    in.SetTotalBytesLimit(INT32_MAX);
    while (uint32_t tag = in.ReadTag()) GW_RETURN_IF_ERROR(ReadField(tag, in));
    if (!in.ConsumedEntireMessage() || !stream.status().ok()) return Malformed("ends early");
    std::vector<Message> result;
    result.reserve(messages_.size());
    for (const wire::Message& message : messages_) {
      GW_ASSIGN_OR_RETURN(Message one, Take(message));
      result.push_back(std::move(one));
    }
    return result;
  }

 private:
  absl::Status ReadField(uint32_t tag, CodedInputStream& in) {
    uint32_t length = 0;
    switch (tag) {
      case Tag(kMessages, kDelimited): {
        if (!in.ReadVarint32(&length)) return Malformed("message length");
        auto limit = in.PushLimit(static_cast<int>(length));
        messages_.emplace_back();
        if (!messages_.back().MergeFromCodedStream(&in) || in.BytesUntilLimit() != 0) return Malformed("message");
        in.PopLimit(limit);
        return absl::OkStatus();
      }
      case Tag(kPayloads, kDelimited): {
        if (!in.ReadVarint32(&length) || length > frame_bytes_ - in.CurrentPosition()) {
          return Malformed("payload length");
        }
        GW_ASSIGN_OR_RETURN(FrameReader::Block block, reader_.Allocate(length));
        if (!in.ReadRaw(block.Next(0, length), static_cast<int>(length))) return Malformed("payload");
        payloads_.push_back(Finished(block));
        return absl::OkStatus();
      }
      case Tag(kChunkTotal, kVarint): {
        uint64_t total = 0;
        if (!in.ReadVarint64(&total) || reader_.is_open_) return Malformed("chunk total");
        GW_ASSIGN_OR_RETURN(reader_.open_, reader_.Allocate(total));
        reader_.filled_ = 0;
        reader_.is_open_ = true;
        return absl::OkStatus();
      }
      case Tag(kChunkBytes, kDelimited): {
        if (!in.ReadVarint32(&length) || !reader_.is_open_ || length > reader_.open_.size - reader_.filled_ ||
            length > frame_bytes_ - in.CurrentPosition() ||
            !in.ReadRaw(reader_.open_.Next(reader_.filled_, length), static_cast<int>(length))) {
          return Malformed("chunk");
        }
        reader_.filled_ += length;
        if (reader_.filled_ < reader_.open_.size) return absl::OkStatus();
        reader_.chunked_.push_back(Finished(std::exchange(reader_.open_, {})));
        reader_.is_open_ = false;
        return absl::OkStatus();
      }
      default:
        // A field of a later version.
        if (!google::protobuf::internal::WireFormatLite::SkipField(&in, tag)) return Malformed("unknown field");
        return absl::OkStatus();
    }
  }

  static Payload Finished(const FrameReader::Block& block) {
    if (block.text != nullptr) return Payload(block.text);
    return Payload(block.owner, block.data, block.size);
  }

  absl::Status TakePayload(const wire::Bytes& bytes, Payload* to) {
    std::deque<Payload>& from = bytes.chunked() ? reader_.chunked_ : payloads_;
    if (from.empty()) return Malformed("a payload is missing");
    *to = std::move(from.front());
    from.pop_front();
    return absl::OkStatus();
  }

  absl::StatusOr<Message> Take(const wire::Message& m) {
    switch (m.kind_case()) {
      case wire::Message::kHello: {
        Hello to{
            m.hello().protocol_version(), m.hello().worker(), m.hello().platform(), m.hello().island(), {}, {}, -1};
        for (const auto& d : m.hello().devices()) {
          to.devices.push_back({d.kind(), Values<int64_t>(d.coords()), d.memory_bytes()});
        }
        to.fabric = m.hello().fabric();
        to.rank = m.hello().rank();
        return to;
      }
      case wire::Message::kProgramLoaded:
        return TakeProgramLoaded(m.program_loaded());
      case wire::Message::kTasksDone:
        return TakeTasksDone(m.tasks_done());
      case wire::Message::kFetched: {
        Fetched to{RequestId(m.fetched().request()), FromWire(m.fetched().status()), {}};
        GW_RETURN_IF_ERROR(TakePayload(m.fetched().bytes(), &to.bytes));
        to.digest = {m.fetched().hash(), m.fetched().has_nan()};
        return to;
      }
      case wire::Message::kHostCall: {
        HostCall to{RequestId(m.host_call().call()),
                    TaskId(m.host_call().task()),
                    m.host_call().device(),
                    m.host_call().callback(),
                    {}};
        GW_RETURN_IF_ERROR(TakePayload(m.host_call().operands(), &to.operands));
        return to;
      }
      case wire::Message::kHostCallAnswer: {
        HostCallAnswer to{RequestId(m.host_call_answer().call()), FromWire(m.host_call_answer().status()), {}};
        GW_RETURN_IF_ERROR(TakePayload(m.host_call_answer().results(), &to.results));
        return to;
      }
      case wire::Message::kHeartbeat:
        return Heartbeat{m.heartbeat().store_bytes(),   m.heartbeat().store_buffers(),
                         m.heartbeat().pending_tasks(), Values<int64_t>(m.heartbeat().device_bytes()),
                         m.heartbeat().sent_bytes(),    m.heartbeat().received_bytes()};
      case wire::Message::kWelcome:
        return Welcome{m.welcome().first_device(), PeerId(m.welcome().self()), m.welcome().heartbeat_ms()};
      case wire::Message::kPeer:
        return Peer{PeerId(m.peer().peer()), m.peer().name(), m.peer().fabric()};
      case wire::Message::kPeerLost:
        return PeerLost{PeerId(m.peer_lost().peer()), FromWire(m.peer_lost().status())};
      case wire::Message::kLoadProgram:
        return TakeLoad(m.load_program());
      case wire::Message::kUnloadProgram:
        return UnloadProgram{ProgramId(m.unload_program().program())};
      case wire::Message::kMakeBuffer:
        return TakeMake(m.make_buffer());
      case wire::Message::kExpectBuffer:
        return ExpectBuffer{BufferId(m.expect_buffer().buffer()), Values<int32_t>(m.expect_buffer().devices())};
      case wire::Message::kCopyBuffer:
        return TakeCopy(m.copy_buffer());
      case wire::Message::kPatchBuffer:
        return TakePatch(m.patch_buffer());
      case wire::Message::kLaunch: {
        const auto& l = m.launch();
        return Launch{std::make_shared<const Launch::Order>(Launch::Order{
                          TaskId(l.task()), ProgramId(l.program()), Ids<BufferId>(l.arguments()),
                          BufferId(l.first_output()), Values<int64_t>(l.keep()), Values<int64_t>(l.drop())}),
                      l.report()};
      }
      case wire::Message::kFetchShard:
        return FetchShard{RequestId(m.fetch_shard().request()), BufferId(m.fetch_shard().buffer()),
                          m.fetch_shard().device(), m.fetch_shard().digest()};
      case wire::Message::kFreeBuffers:
        return TakeFree(m.free_buffers());
      case wire::Message::kPoisonBuffers:
        return PoisonBuffers{Ids<BufferId>(m.poison_buffers().buffers()), FromWire(m.poison_buffers().status()),
                             TaskId(m.poison_buffers().task())};
      case wire::Message::kWatchTasks:
        return WatchTasks{Ids<TaskId>(m.watch_tasks().tasks())};
      case wire::Message::kMark:
        return Mark{RequestId(m.mark().request())};
      case wire::Message::kReached:
        return Reached{RequestId(m.reached().request())};
      case wire::Message::kLeaving:
        return Leaving{};
      case wire::Message::KIND_NOT_SET:
        break;
    }
    return Malformed("a message of unknown kind");
  }

  static Message TakeProgramLoaded(const wire::ProgramLoaded& from) {
    ProgramLoaded to{ProgramId(from.program()), FromWire(from.status()), std::nullopt};
    if (from.has_memory()) {
      const auto& memory = from.memory();
      to.memory = {memory.code(),    memory.arguments(),   memory.outputs(),
                   memory.aliased(), memory.temporaries(), memory.peak()};
    }
    return to;
  }

  static Message TakeTasksDone(const wire::TasksDone& from) {
    TasksDone to;
    int failure = 0;
    for (uint64_t task : from.tasks()) {
      const int index = static_cast<int>(to.tasks.size());
      to.tasks.push_back({TaskId(task), absl::OkStatus(), index < from.micros_size() ? from.micros(index) : 0});
      if (failure < from.failures_size() && from.failures(failure).task() == task) {
        to.tasks.back().status = FromWire(from.failures(failure++).status());
      }
    }
    return to;
  }

  absl::StatusOr<Message> TakeLoad(const wire::LoadProgram& from) {
    LoadProgram to;
    to.program = ProgramId(from.program());
    to.name = from.name();
    GW_RETURN_IF_ERROR(TakePayload(from.executable(), &to.executable));
    to.num_partitions = from.num_partitions();
    for (const auto& p : from.partitions()) to.partitions.push_back({p.partition(), p.device()});
    to.participants.assign(from.participants().begin(), from.participants().end());
    for (int32_t owner : from.owners()) to.owners.push_back(PeerId(owner));
    return to;
  }

  static Message TakeFree(const wire::FreeBuffers& from) {
    FreeBuffers free;
    for (uint64_t id : from.buffers()) free.buffers.push_back(BufferId(id));
    return free;
  }

  static Message TakeCopy(const wire::CopyBuffer& from) {
    CopyBuffer to;
    to.buffer = BufferId(from.buffer());
    to.task = TaskId(from.task());
    for (const auto& p : from.parts()) to.parts.push_back({BufferId(p.source()), p.from(), p.to()});
    for (const auto& dims : from.dims()) to.dims.push_back(Values<int64_t>(dims.dims()));
    for (const auto& s : from.sends())
      to.sends.push_back({BufferId(s.source()), s.from(), PeerId(s.to()), s.position()});
    for (const auto& r : from.receives()) {
      to.receives.push_back({PeerId(r.from()), r.position(), Values<int64_t>(r.dims()), Values<int32_t>(r.to())});
    }
    to.dtype = ToDType(from.dtype());
    return to;
  }

  static Message TakePatch(const wire::PatchBuffer& from) {
    PatchBuffer to;
    to.buffer = BufferId(from.buffer());
    to.task = TaskId(from.task());
    to.dtype = ToDType(from.dtype());
    for (const auto& s : from.shards()) to.shards.push_back({s.device(), Values<int64_t>(s.dims())});
    for (const auto& p : from.pieces()) {
      to.pieces.push_back({BufferId(p.source()), p.from(), Values<int64_t>(p.start()), Values<int64_t>(p.extent()),
                           p.shard(), Values<int64_t>(p.at())});
    }
    for (const auto& s : from.sends()) {
      to.sends.push_back({BufferId(s.source()), s.from(), Values<int64_t>(s.start()), Values<int64_t>(s.extent()),
                          PeerId(s.to()), s.piece()});
    }
    for (const auto& r : from.receives()) {
      auto& receive =
          to.receives.emplace_back(PatchBuffer::Receive{PeerId(r.from()), r.piece(), Values<int64_t>(r.extent()), {}});
      for (const auto& t : r.targets()) receive.targets.push_back({t.shard(), Values<int64_t>(t.at())});
    }
    return to;
  }

  absl::StatusOr<Message> TakeMake(const wire::MakeBuffer& from) {
    MakeBuffer to;
    to.buffer = BufferId(from.buffer());
    to.task = TaskId(from.task());
    to.dtype = ToDType(from.dtype());
    for (const auto& p : from.pieces()) {
      MakeBuffer::Piece piece{{}, Values<int64_t>(p.dims()), Values<int32_t>(p.devices())};
      GW_RETURN_IF_ERROR(TakePayload(p.bytes(), &piece.bytes));
      to.pieces.push_back(std::move(piece));
    }
    return to;
  }

  FrameReader& reader_;
  int64_t frame_bytes_ = 0;
  std::deque<wire::Message> messages_;
  std::deque<Payload> payloads_;
};

absl::StatusOr<std::vector<Message>> FrameReader::Read(const grpc::ByteBuffer& frame) {
  return BatchParser(*this).Parse(frame);
}

}  // namespace gangway::net

#include "gangway/controller/records.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gangway::controller {

std::vector<WorkerId> WorkersOf(const Placement& placement) {
  std::vector<WorkerId> workers;
  workers.reserve(placement.size());
  for (const resource::Share& share : placement) workers.push_back(share.worker);
  return workers;
}

Name NameOf(const std::shared_ptr<const dataflow::Graph>& graph) { return Name(graph, &graph->nodes[0].name); }

std::string TaskRecord::What() const { return is_launch ? absl::StrCat("program ", *name()) : *name(); }

std::shared_ptr<SharedShard>& ArrayRecord::Share(int position) {
  if (shared.empty()) shared.resize(layout->spec.devices.size());
  std::shared_ptr<SharedShard>& shard = shared[position];
  if (shard == nullptr) shard = std::make_shared<SharedShard>();
  return shard;
}

bool ArrayRecord::IsDeleted() const {
  return deleted || std::any_of(shared.begin(), shared.end(), [](const auto& s) { return s != nullptr && s->gone; });
}

bool ArrayRecord::HasCopiesInPlace() const {
  return std::any_of(shared.begin(), shared.end(),
                     [](const auto& shard) { return shard != nullptr && shard->bytes.use_count() > 1; });
}

net::RequestId RequestOf(const net::Message& message) {
  if (auto* fetch = std::get_if<net::FetchShard>(&message)) return fetch->request;
  if (auto* mark = std::get_if<net::Mark>(&message)) return mark->request;
  return net::RequestId();
}

void SessionUse::AddArrays(int64_t more) {
  arrays += more;
  if (tenant != nullptr) tenant->arrays += more;
}

void SessionUse::AddPrograms(int64_t more) {
  programs += more;
  if (tenant != nullptr) tenant->programs += more;
}

void ForEachOutput(const TaskRecord& task, absl::FunctionRef<void(net::BufferId)> f) {
  for (int i = 0; i < task.num_outputs; ++i) f(net::BufferId(task.first_output.value() + i));
}

void ForEachBuffer(const Command& command, absl::FunctionRef<void(net::BufferId)> f) {
  if (command.task != nullptr) ForEachOutput(*command.task, f);
  if (command.launch != nullptr) {
    for (net::BufferId argument : command.launch->arguments) f(argument);
  }
  for (const Command::Outgoing& out : command.messages) {
    if (auto* copy = std::get_if<net::CopyBuffer>(&out.message)) {
      for (const auto& part : copy->parts) f(part.source);
      for (const auto& send : copy->sends) f(send.source);
    } else if (auto* patch = std::get_if<net::PatchBuffer>(&out.message)) {
      for (const auto& piece : patch->pieces) f(piece.source);
      for (const auto& send : patch->sends) f(send.source);
    } else if (auto* fetch = std::get_if<net::FetchShard>(&out.message)) {
      f(fetch->buffer);
    }
  }
}

}  // namespace gangway::controller

// Bytes of an array or a program on their way: shared, never copied to be passed on.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace gangway::net {

// A view of immutable bytes and what keeps them alive: a string, a device buffer, a block of memory. Copying shares.
class Payload {
 public:
  Payload() = default;
  explicit Payload(std::shared_ptr<const std::string> text)
      : owner_(text), data_(text->data()), size_(text->size()), text_(text.get()) {}
  Payload(std::shared_ptr<const void> owner, const void* data, size_t size)
      : owner_(std::move(owner)), data_(static_cast<const char*>(data)), size_(size) {}

  const char* data() const { return data_; }
  size_t size() const { return size_; }
  absl::string_view view() const { return {data_, size_}; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // The bytes as a string: the very one it was made of, otherwise a copy.
  std::shared_ptr<const std::string> AsString() const {
    if (text_ != nullptr) return {owner_, text_};
    return std::make_shared<const std::string>(data_ == nullptr ? "" : data_, size_);
  }

  friend bool operator==(const Payload& a, const Payload& b) { return a.view() == b.view(); }

 private:
  std::shared_ptr<const void> owner_;
  const char* data_ = nullptr;
  size_t size_ = 0;
  const std::string* text_ = nullptr;  // set when owner_ is that string
};

}  // namespace gangway::net

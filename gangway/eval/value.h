// What the evaluator computes with: an array, a token, or a tuple of values.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "gangway/base/check.h"
#include "gangway/tensor/literal.h"

namespace gangway::eval {

// Immutable and cheap to copy: contents are shared, because one constant or replicated array is the value of many
// instructions on many devices.
class Value {
 public:
  Value() = default;
  explicit Value(Literal array) : array_(std::make_shared<const Literal>(std::move(array))) {}
  explicit Value(std::shared_ptr<const Literal> array) : array_(std::move(array)) {}
  static Value Tuple(std::vector<Value> elements);
  static Value Token() { return Value(Literal(Shape::Token())); }
  static Value FromLiteral(Literal literal);  // tuples of any depth

  bool IsTuple() const { return tuple_ != nullptr; }
  const Literal& array() const {
    GW_CHECK(array_ != nullptr, "the value is a tuple");
    return *array_;
  }
  const std::shared_ptr<const Literal>& shared_array() const { return array_; }
  const std::vector<Value>& elements() const {
    GW_CHECK(tuple_ != nullptr, "the value is no tuple");
    return *tuple_;
  }

  Literal ToLiteral() const;
  Shape shape() const;
  // Layouts aside, without building a Shape.
  bool HasShape(const Shape& shape) const;
  // The very same object, hence the same bits.
  bool SameObject(const Value& other) const { return array_ == other.array_ && tuple_ == other.tuple_; }

 private:
  std::shared_ptr<const Literal> array_;
  std::shared_ptr<const std::vector<Value>> tuple_;
};

}  // namespace gangway::eval

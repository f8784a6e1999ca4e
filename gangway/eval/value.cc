#include "gangway/eval/value.h"

namespace gangway::eval {

Value Value::Tuple(std::vector<Value> elements) {
  Value value;
  value.tuple_ = std::make_shared<const std::vector<Value>>(std::move(elements));
  return value;
}

Value Value::FromLiteral(Literal literal) {
  if (!literal.shape().IsTuple()) return Value(std::move(literal));
  std::vector<Value> elements;
  for (Literal& element : literal.elements()) elements.push_back(FromLiteral(std::move(element)));
  return Tuple(std::move(elements));
}

Literal Value::ToLiteral() const {
  if (!IsTuple()) return array();
  std::vector<Literal> elements;
  for (const Value& element : *tuple_) elements.push_back(element.ToLiteral());
  return Literal::Tuple(std::move(elements));
}

Shape Value::shape() const {
  if (!IsTuple()) return array().shape();
  std::vector<Shape> elements;
  for (const Value& element : *tuple_) elements.push_back(element.shape());
  return Shape::Tuple(std::move(elements));
}

bool Value::HasShape(const Shape& shape) const {
  if (!IsTuple()) return array_ != nullptr && Shape::Compatible(array_->shape(), shape);
  if (!shape.IsTuple() || shape.tuple().size() != tuple_->size()) return false;
  for (size_t i = 0; i < tuple_->size(); ++i) {
    if (!(*tuple_)[i].HasShape(shape.tuple()[i])) return false;
  }
  return true;
}

}  // namespace gangway::eval

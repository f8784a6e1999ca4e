// batch-norm-training, -inference, -grad.
#include <cmath>

#include "gangway/eval/op_table.h"
#include "gangway/eval/strided.h"
#include "gangway/eval/wide.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;
using Numbers = std::vector<double>;

// Walks an array by feature.
class Features {
 public:
  Features(const Shape& shape, int64_t dim)
      : count_(shape.dim(dim)), stride_(Strides(shape.dims())[dim]), per_feature_(0) {
    if (count_ > 0) per_feature_ = static_cast<double>(shape.ElementCount()) / count_;
  }
  int64_t Of(size_t element) const { return static_cast<int64_t>(element) / stride_ % count_; }
  double per_feature() const { return per_feature_; }
  Numbers Sum(const Numbers& values) const {
    Numbers sums(count_, 0);
    for (size_t i = 0; i < values.size(); ++i) sums[Of(i)] += values[i];
    return sums;
  }
  Numbers Mean(const Numbers& values) const {
    Numbers means = Sum(values);
    for (double& mean : means) mean /= per_feature_;
    return means;
  }

 private:
  int64_t count_, stride_;
  double per_feature_;
};

Numbers Centered(const Features& features, const Numbers& x, const Numbers& mean) {
  Numbers centered(x.size());
  for (size_t i = 0; i < x.size(); ++i) centered[i] = x[i] - mean[features.Of(i)];
  return centered;
}

Numbers Normalized(const Features& features, const Numbers& centered, const Numbers& variance, double epsilon) {
  Numbers result(centered.size());
  for (size_t i = 0; i < result.size(); ++i) result[i] = centered[i] / std::sqrt(variance[features.Of(i)] + epsilon);
  return result;
}

Numbers ScaledAndShifted(const Features& features, Numbers x, const Numbers& scale, const Numbers& offset) {
  for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * scale[features.Of(i)] + offset[features.Of(i)];
  return x;
}

Numbers Product(const Numbers& a, const Numbers& b) {
  Numbers product(a.size());
  for (size_t i = 0; i < a.size(); ++i) product[i] = a[i] * b[i];
  return product;
}

absl::StatusOr<Value> Training(const Call& call) {
  const auto& attr = call.attr<hlo::BatchNormAttr>();
  Features features(call.array(0).shape(), attr.feature);
  Numbers x = Widen<double>(call.array(0)), mean = features.Mean(x);
  Numbers centered = Centered(features, x, mean), variance = features.Mean(Product(centered, centered));
  Numbers y = ScaledAndShifted(features, Normalized(features, centered, variance, attr.epsilon),
                               Widen<double>(call.array(1)), Widen<double>(call.array(2)));
  const std::vector<Shape>& shapes = call.shape().tuple();
  return Value::Tuple({Value(NarrowTo<double>(shapes[0], y)), Value(NarrowTo<double>(shapes[1], mean)),
                       Value(NarrowTo<double>(shapes[2], variance))});
}

absl::StatusOr<Value> Inference(const Call& call) {
  const auto& attr = call.attr<hlo::BatchNormAttr>();
  Features features(call.array(0).shape(), attr.feature);
  Numbers centered = Centered(features, Widen<double>(call.array(0)), Widen<double>(call.array(3)));
  Numbers normal = Normalized(features, centered, Widen<double>(call.array(4)), attr.epsilon);
  return Value(NarrowTo<double>(
      call.shape(), ScaledAndShifted(features, normal, Widen<double>(call.array(1)), Widen<double>(call.array(2)))));
}

// Operands: x, scale, mean, variance, gradient of the output.
absl::StatusOr<Value> Grad(const Call& call) {
  const auto& attr = call.attr<hlo::BatchNormAttr>();
  Features features(call.array(0).shape(), attr.feature);
  Numbers variance = Widen<double>(call.array(3)), dy = Widen<double>(call.array(4)),
          scale = Widen<double>(call.array(1));
  Numbers centered = Centered(features, Widen<double>(call.array(0)), Widen<double>(call.array(2)));
  Numbers normal = Normalized(features, centered, variance, attr.epsilon);
  Numbers offset_grad = features.Sum(dy), scale_grad = features.Sum(Product(dy, normal));
  Numbers dx(dy.size());
  for (size_t i = 0; i < dx.size(); ++i) {
    int64_t f = features.Of(i);
    double inner = dy[i] - offset_grad[f] / features.per_feature() - normal[i] * scale_grad[f] / features.per_feature();
    dx[i] = scale[f] / std::sqrt(variance[f] + attr.epsilon) * inner;
  }
  const std::vector<Shape>& shapes = call.shape().tuple();
  return Value::Tuple({Value(NarrowTo<double>(shapes[0], dx)), Value(NarrowTo<double>(shapes[1], scale_grad)),
                       Value(NarrowTo<double>(shapes[2], offset_grad))});
}

}  // namespace

void AddBatchNorm(OpTable* table) {
  table->Set(Opcode::kBatchNormTraining, Training);
  table->Set(Opcode::kBatchNormInference, Inference);
  table->Set(Opcode::kBatchNormGrad, Grad);
}

}  // namespace gangway::eval

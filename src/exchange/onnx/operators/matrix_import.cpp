// Products of matrices.
#include <numeric>

#include "exchange/onnx/operator_import.h"
#include "exchange/onnx/operators/broadcast.h"
#include "exchange/onnx/operators/matrix_product.h"
#include "proto/params/dense.pb.h"
#include "proto/params/pointwise.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

// (rows, columns) as (columns, rows).
std::vector<float> turned_matrix(const std::vector<float>& values, int64_t rows, int64_t columns) {
  std::vector<float> result(values.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) result[j * rows + i] = values[i * columns + j];
  return result;
}

// Weights are outputs by inputs; the input is the last axis. bias: empty for none.
std::string dense(OperatorImport& op, const std::string& x, int64_t outputs, int64_t inputs,
                  std::vector<float> weights, std::vector<float> bias) {
  const int axes = op.blob_shape(x).axes();
  std::vector<LayerBlob> blobs = {{Shape{outputs, inputs}, std::move(weights)}};
  const bool has_bias = !bias.empty();
  if (has_bias) blobs.push_back({Shape{outputs}, std::move(bias)});
  return op.layer(
      "InnerProduct", {x},
      [&](LayerParameter* layer) {
        InnerProductParameter* const p = layer->mutable_inner_product_param();
        p->set_num_output(static_cast<uint32_t>(outputs));
        if (!has_bias) p->set_bias_term(false);
        if (axes != 2) p->set_axis(axes - 1);
      },
      std::move(blobs));
}

// Whether C is a constant that every row of the product gets.
bool is_row(const OperatorImport& op, int64_t outputs) {
  if (!op.is_constant(2) || (op.axes(2) > 1 && op.shape(2)[0] != 1)) return false;
  return op.shape(2).count() == 1 || op.shape(2).count() == outputs;
}

std::vector<float> row_of(OperatorImport& op, int64_t outputs, float beta) {
  std::vector<float> row = op.constant(2, "C").as_floats();
  row.resize(outputs, row[0]);
  for (float& value : row) value *= beta;
  return row;
}

// y + beta * C
std::string sum_with(OperatorImport& op, const std::string& y, float beta) {
  const int64_t outputs = op.blob_shape(y)[1];
  if (is_row(op, outputs))
    return op.layer("Bias", {y}, [](LayerParameter* layer) { layer->mutable_bias_param(); },
                    {{Shape{outputs}, row_of(op, outputs, beta)}});
  const std::string c = op.power(op.blob(2), 1, beta, 0);
  require(op.blob_shape(c) == op.blob_shape(y), "C is ", op.blob_shape(c).brief(),
          ", not like the product, ", op.blob_shape(y).brief());
  return op.layer("Eltwise", {y, c});
}

// alpha * A B + beta * C
void read_gemm(OperatorImport& op) {
  const float alpha = op.float_of("alpha", 1), beta = op.float_of("beta", 1);
  const bool turn_a = op.int_of("transA", 0) != 0, turn_b = op.int_of("transB", 0) != 0;
  require(op.axes(0) == 2 && op.axes(1) == 2, "its operands are no matrices");
  std::string x = op.blob(0);
  if (turn_a) x = op.permute(x, {1, 0});
  const Shape of_x = op.blob_shape(x), w = op.shape(1);
  const int64_t inputs = turn_b ? w[1] : w[0], outputs = turn_b ? w[0] : w[1];
  require(of_x[1] == inputs, "a matrix of ", of_x.brief(), " does not fit one of ", inputs, " by ",
          outputs);
  const bool adds = op.has(2) && beta != 0;
  if (!op.is_constant(1)) {
    const std::string b = turn_b ? op.permute(op.blob(1), {1, 0}) : op.blob(1);
    std::string y = op.power(op.layer("MatMul", {x, b}), 1, alpha, 0);
    if (adds) y = sum_with(op, y, beta);
    return op.give(y);
  }
  std::vector<float> weights = op.constant(1, "B").as_floats();
  if (!turn_b) weights = turned_matrix(weights, inputs, outputs);
  for (float& value : weights) value *= alpha;
  const bool row = adds && is_row(op, outputs);
  std::vector<float> bias;
  if (row) bias = row_of(op, outputs, beta);
  std::string y = dense(op, x, outputs, inputs, std::move(weights), std::move(bias));
  op.give(adds && !row ? sum_with(op, y, beta) : y);
}
IMPORT_OPERATOR(Gemm, read_gemm);

std::vector<int64_t> last_two_swapped(int axes) {
  std::vector<int64_t> order(axes);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[axes - 1], order[axes - 2]);
  return order;
}

// A constant matrix: axes in front of its last two have extent 1.
bool is_matrix(const OperatorImport& op, int input) {
  if (!op.is_constant(input) || op.axes(input) < 2) return false;
  return op.shape(input).count(0, op.axes(input) - 2) == 1;
}

// The shape of a product, whose operands have two axes or more.
Shape product_shape(const Shape& a, const Shape& b) {
  const auto front = [](const Shape& shape) {
    return Shape(std::vector<int64_t>(shape.dims().begin(), shape.dims().end() - 2));
  };
  Shape shape = broadcast_shape(front(a), front(b));
  shape.push_back(a[a.axes() - 2]);
  shape.push_back(b[b.axes() - 1]);
  return shape;
}

// x with the axes of `wanted` in front of its last two.
std::string with_front(OperatorImport& op, std::string x, const Shape& wanted) {
  const Shape from = op.blob_shape(x);
  std::vector<int64_t> extents(static_cast<size_t>(wanted.axes() - from.axes()), 1);
  extents.insert(extents.end(), from.dims().begin(), from.dims().end());
  if (wanted.axes() > from.axes()) x = op.reshape(x, extents);
  for (int axis = 0; axis < wanted.axes() - 2; ++axis) {
    if (extents[axis] == wanted[axis]) continue;
    x = op.layer("Tile", {x}, [&](LayerParameter* layer) {
      layer->mutable_tile_param()->set_axis(axis);
      layer->mutable_tile_param()->set_tiles(static_cast<int32_t>(wanted[axis]));
    });
  }
  return x;
}

}  // namespace

// MatMul layers have equal axes in front. The pattern of attention may take them.
std::string product_of_matrices(OperatorImport& op, const std::string& a, const std::string& b) {
  const Shape of_a = op.blob_shape(a), of_b = op.blob_shape(b);
  const Shape wanted = product_shape(of_a, of_b);
  return op.layer("MatMul", {with_front(op, a, wanted), with_front(op, b, wanted)});
}

namespace {

void read_matmul(OperatorImport& op) {
  const int axes_a = op.axes(0), axes_b = op.axes(1);
  require(axes_a > 0 && axes_b > 0, "an operand is a single number");
  const int64_t inner = op.shape(0)[axes_a - 1];
  require(inner == op.shape(1)[std::max(axes_b - 2, 0)], op.shape(0).brief(), " and ",
          op.shape(1).brief(), " have no product");
  const bool of_vector = op.is_constant(1) && axes_b == 1;
  if ((is_matrix(op, 1) || of_vector) && axes_a >= axes_b) {
    const int64_t outputs = of_vector ? 1 : op.shape(1)[axes_b - 1];
    std::string x = op.blob(0);
    if (axes_a == 1) x = op.reshape(x, {1, inner});
    const std::vector<float> weights = op.constant(1, "B").as_floats();
    std::string y = dense(op, x, outputs, inner, turned_matrix(weights, inner, outputs), {});
    std::vector<int64_t> extents(op.shape(0).dims().begin(), op.shape(0).dims().end() - 1);
    if (!of_vector) extents.push_back(outputs);
    return op.give(op.reshape(y, extents));
  }
  if (is_matrix(op, 0) && axes_b >= 2 && axes_b >= axes_a) {
    const std::string x = op.permute(op.blob(1), last_two_swapped(axes_b));
    const int64_t outputs = op.shape(0)[axes_a - 2];
    const std::string y = dense(op, x, outputs, inner, op.constant(0, "A").as_floats(), {});
    return op.give(op.permute(y, last_two_swapped(axes_b)));
  }
  require(axes_a >= 2 && axes_b >= 2, "no layer multiplies a vector and a blob");
  op.give(product_of_matrices(op, op.blob(0), op.blob(1)));
}
IMPORT_OPERATOR(MatMul, read_matmul);

// Keeps a triangle of matrices: a product with zeros and ones.
void read_trilu(OperatorImport& op) {
  const int axes = op.axes();
  require(axes >= 2, "its operand is no matrix");
  const std::vector<int64_t> shifts = op.has(1) ? op.ints(1, "k") : std::vector<int64_t>{0};
  require(shifts.size() == 1, "k has ", shifts.size(), " values");
  const bool upper = op.int_of("upper", 1) != 0;
  const Shape kept{op.shape()[axes - 2], op.shape()[axes - 1]};
  check_folded(kept);
  std::vector<float> mask(kept.count());
  for (int64_t i = 0; i < kept.count(); ++i) {
    const int64_t above = i % kept[1] - i / kept[1];
    mask[i] = upper ? above >= shifts[0] : above <= shifts[0];
  }
  const std::string y = op.layer("Scale", {op.blob(0)},
                                 [&](LayerParameter* layer) {
                                   ScaleParameter* const p = layer->mutable_scale_param();
                                   p->set_axis(axes - 2);
                                   p->set_num_axes(2);
                                   keep_parameters(layer, 1);
                                 },
                                 {{kept, std::move(mask)}});
  if (op.value(0).is_integer) return op.give_integers(y);
  op.give(y);
}
IMPORT_OPERATOR(Trilu, read_trilu);

}  // namespace
}  // namespace crema

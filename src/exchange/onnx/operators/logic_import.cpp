// Comparisons and logic, as blobs of zeros and ones.
#include "exchange/onnx/operators/arithmetic.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

std::string above_bound(OperatorImport& op, const std::string& x, float bound = 0) {
  return op.layer("Threshold", {x}, [&](LayerParameter* layer) {
    if (bound != 0) layer->mutable_threshold_param()->set_threshold(bound);
  });
}
std::string opposite(OperatorImport& op, const std::string& x) { return op.power(x, 1, -1, 0); }
std::string inverted(OperatorImport& op, const std::string& x) { return op.power(x, 1, -1, 1); }

// The first operand less the second one. A constant is a bound, which training leaves as it is.
std::string difference_of_inputs(OperatorImport& op) {
  const std::string difference = combined_inputs(op, "Sub");
  ImportedLayer* const maker = op.graph().maker_of(difference);
  keep_parameters(&maker->message, static_cast<int>(maker->blobs.size()));
  return difference;
}

// Where the first operand is above the second, or below it.
std::string compared_inputs(OperatorImport& op, bool is_above) {
  if (op.is_constant(1) && op.shape(1).count() == 1 && op.axes(1) <= op.axes(0)) {
    const float bound = op.number(1, "the bound");
    return is_above ? above_bound(op, op.blob(0), bound)
                    : above_bound(op, opposite(op, op.blob(0)), -bound);
  }
  const std::string difference = difference_of_inputs(op);
  return above_bound(op, is_above ? difference : opposite(op, difference));
}

void read_greater(OperatorImport& op) { op.give_integers(compared_inputs(op, true)); }
void read_less(OperatorImport& op) { op.give_integers(compared_inputs(op, false)); }
void read_not_less(OperatorImport& op) {
  op.give_integers(inverted(op, compared_inputs(op, false)));
}
void read_not_greater(OperatorImport& op) {
  op.give_integers(inverted(op, compared_inputs(op, true)));
}
IMPORT_OPERATOR(Greater, read_greater);
IMPORT_OPERATOR(Less, read_less);
IMPORT_OPERATOR(GreaterOrEqual, read_not_less);
IMPORT_OPERATOR(LessOrEqual, read_not_greater);

void read_equal(OperatorImport& op) {
  const std::string difference = difference_of_inputs(op);
  const std::string differs =
      op.layer("Eltwise", {above_bound(op, difference), above_bound(op, opposite(op, difference))});
  op.give_integers(inverted(op, differs));
}
IMPORT_OPERATOR(Equal, read_equal);

void read_and(OperatorImport& op) { op.give_integers(combined_inputs(op, "Mul")); }
void read_or(OperatorImport& op) { op.give_integers(combined_inputs(op, "Max")); }
void read_xor(OperatorImport& op) {
  op.give_integers(op.layer("AbsVal", {difference_of_inputs(op)}));
}
void read_not(OperatorImport& op) { op.give_integers(inverted(op, op.blob(0))); }
IMPORT_OPERATOR(And, read_and);
IMPORT_OPERATOR(Or, read_or);
IMPORT_OPERATOR(Xor, read_xor);
IMPORT_OPERATOR(Not, read_not);

}  // namespace
}  // namespace crema

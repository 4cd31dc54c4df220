// Einsum of one or two operands, as sums, transpositions and a product of matrices.
#include <algorithm>

#include "exchange/onnx/operator_import.h"
#include "exchange/onnx/operators/matrix_product.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

// "ij,jk->ik": the letters of the operands and of the result.
struct Equation {
  std::vector<std::string> operands;
  std::string result;

  explicit Equation(std::string text) {
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    require(text.find('.') == std::string::npos, "an ellipsis is not read");
    const size_t arrow = text.find("->");
    std::string left = text.substr(0, arrow);
    for (size_t at = 0; at != std::string::npos;) {
      const size_t comma = left.find(',', at);
      operands.push_back(left.substr(at, comma == std::string::npos ? comma : comma - at));
      at = comma == std::string::npos ? comma : comma + 1;
    }
    if (arrow != std::string::npos) {
      result = text.substr(arrow + 2);
      return;
    }
    std::string letters;  // those that occur once, in the order of the alphabet
    for (const std::string& operand : operands) letters += operand;
    for (const char letter : letters)
      if (std::count(letters.begin(), letters.end(), letter) == 1) result += letter;
    std::sort(result.begin(), result.end());
  }
};

bool has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

class EinsumImport {
 public:
  EinsumImport(OperatorImport& op, const Equation& equation) : op_(op), equation_(equation) {
    require(op.inputs() == static_cast<int>(equation.operands.size()) && op.inputs() <= 2,
            "only one or two operands have layers");
    for (int i = 0; i < op.inputs(); ++i) {
      const std::string& letters = equation.operands[i];
      require(static_cast<int>(letters.size()) == op.axes(i), "operand ", i + 1, " has ",
              op.axes(i), " axes, but ", letters.size(), " letters");
      for (size_t axis = 0; axis < letters.size(); ++axis) {
        require(std::count(letters.begin(), letters.end(), letters[axis]) == 1,
                "a diagonal has no layer");
        int64_t& extent = extents_[letters[axis]];
        const int64_t here = op.shape(i)[static_cast<int>(axis)];
        require(extent == 0 || extent == here, "extents of '", letters[axis], "' differ");
        extent = here;
      }
    }
  }

  void run() {
    std::string letters = equation_.operands[0];
    std::string y = without(op_.blob(0), &letters, op_.inputs() > 1 ? equation_.operands[1] : "");
    if (op_.inputs() > 1) y = product(y, &letters);
    op_.give(ordered(y, letters, equation_.result));
  }

 private:
  // Sums over letters that neither the result nor the other operand has.
  std::string without(std::string x, std::string* letters, const std::string& other) {
    std::string kept, summed;
    for (const char letter : *letters)
      (has(equation_.result, letter) || has(other, letter) ? kept : summed) += letter;
    if (summed.empty()) return x;
    x = ordered(x, *letters, kept + summed);
    *letters = kept;
    const auto axis = static_cast<int>(kept.size());
    return op_.layer("Reduction", {x}, [&](LayerParameter* layer) {
      layer->mutable_reduction_param()->set_axis(axis);
    });
  }
  std::string ordered(const std::string& x, const std::string& from, const std::string& to) {
    std::vector<int64_t> order;
    for (const char letter : to) {
      require(has(from, letter), "letter '", letter, "' is in no operand");
      order.push_back(static_cast<int64_t>(from.find(letter)));
    }
    return op_.permute(x, order);
  }
  int64_t count(const std::string& letters) const {
    int64_t all = 1;
    for (const char letter : letters) all *= extents_.at(letter);
    return all;
  }
  std::vector<int64_t> extents(const std::string& letters) const {
    std::vector<int64_t> all;
    for (const char letter : letters) all.push_back(extents_.at(letter));
    return all;
  }

  std::string product(const std::string& a, std::string* letters) {
    std::string other = equation_.operands[1];
    const std::string b = without(op_.blob(1), &other, *letters);
    std::string both, inner, rows, columns;
    for (const char letter : *letters)
      (!has(other, letter) ? rows : has(equation_.result, letter) ? both : inner) += letter;
    for (const char letter : other)
      if (!has(*letters, letter)) columns += letter;
    std::vector<int64_t> left = extents(both), right = left, made = left;
    left.insert(left.end(), {count(rows), count(inner)});
    right.insert(right.end(), {count(inner), count(columns)});
    const std::string y =
        product_of_matrices(op_, op_.reshape(ordered(a, *letters, both + rows + inner), left),
                            op_.reshape(ordered(b, other, both + inner + columns), right));
    *letters = both + rows + columns;
    return op_.reshape(y, extents(*letters));
  }

  OperatorImport& op_;
  const Equation& equation_;
  std::map<char, int64_t> extents_;
};

void read_einsum(OperatorImport& op) {
  const Equation equation(op.string_of("equation", ""));
  require(!equation.result.empty(), "the sum of everything has no layer");
  EinsumImport(op, equation).run();
}
IMPORT_OPERATOR(Einsum, read_einsum);

}  // namespace
}  // namespace crema

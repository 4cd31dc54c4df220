#include "exchange/c/gradient_emit.h"

#include "exchange/c/operators/walk.h"

namespace crema {

bool GradientEmit::needs(int input) const {
  return op.has(input) && gradients_.needed.count(node_.input(input)) > 0;
}

CArgument GradientEmit::result(int output) const {
  return {CArgument::Kind::value, graph_.values.at(node_.output(output)), "", false};
}

bool GradientEmit::has_gradient(int output) const {
  return gradients_.parts.count(node_.output(output)) > 0;
}

CArgument GradientEmit::dy(int output) {
  const std::string& name = node_.output(output);
  return sum_of(gradients_.parts.at(name), graph_.reader.values.at(name).shape.count());
}

CArgument GradientEmit::sum_of(const std::vector<CArgument>& parts, int64_t count) {
  CArgument sum = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) {
    CArgument to = intermediate("sum", {count});
    to.written = true;
    CCall& call = call_instance("binary", "add", "BINARY(add, float, float, a + b)",
                                {to, sum, parts[i]}, "walk", CWalk{{count}, {{1}, {1}}}.fields());
    if (sum.shift == 0) call.over = sum.index;
    sum = to;
    sum.written = false;
  }
  return sum;
}

CArgument GradientEmit::gradient(int input) {
  CArgument part = {
      CArgument::Kind::value,
      graph_.add_value(cat(node_.input(input), "_gradient"), shape(input), CType::real), "", false};
  pass_on(input, part);
  part.written = true;
  return part;
}

void GradientEmit::pass_on(int input, CArgument part) {
  part.written = false;
  gradients_.parts[node_.input(input)].push_back(std::move(part));
}

}  // namespace crema

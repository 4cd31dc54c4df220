// Formulas in the comments of layers, as MathML: browsers set it without a script.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace crema {

// MathML of a line such as "y[k] = exp(x[k]) / sum over j of exp(x[j])"; nothing for a line that is
// mostly words, or whose brackets do not match.
std::optional<std::string> math_of(std::string_view line);

}  // namespace crema

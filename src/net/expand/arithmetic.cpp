#include "net/expand/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/error.h"

namespace crema {

namespace {

constexpr int64_t kMaxList = 1 << 20;

Literal checked(double number, const Place& at) {
  require(std::isfinite(number), at, ": the result is ", number, ", but must be a finite number");
  return number;
}

// An integer if the result is one that fits.
Literal rounded(double number, const Place& at) {
  require(std::fabs(number) < 9.2e18, at, ": the result is too large for a whole number");
  return static_cast<int64_t>(number);
}

int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t power(int64_t base, int64_t exponent, bool* overflow) {
  int64_t result = 1;
  for (int64_t i = 0; i < exponent && !*overflow; ++i) {
    *overflow = __builtin_mul_overflow(result, base, &result);
    if (result == 0 || result == 1) break;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  }
  return result;
}

Literal of_whole(std::string_view operation, int64_t a, int64_t b, const Place& at) {
  int64_t result = 0;
  bool overflow = false;
  if (operation == "+") overflow = __builtin_add_overflow(a, b, &result);
  if (operation == "-") overflow = __builtin_sub_overflow(a, b, &result);
  if (operation == "*") overflow = __builtin_mul_overflow(a, b, &result);
  if (operation == "/" || operation == "//" || operation == "%") {
    require(b != 0, at, ": division by zero");
    if (b == -1) {
      overflow = __builtin_sub_overflow(int64_t{0}, a, &result);
      if (operation == "%") return int64_t{0};
    } else if (operation == "/" && a % b != 0) {
      return static_cast<double>(a) / static_cast<double>(b);
    } else {
      result = operation == "%" ? a - floor_divide(a, b) * b : floor_divide(a, b);
    }
  }
  if (operation == "**") {
    if (b < 0) return checked(std::pow(static_cast<double>(a), static_cast<double>(b)), at);
    result = power(a, b, &overflow);
  }
  require(!overflow, at, ": the result is too large for a whole number");
  return result;
}

Literal of_real(std::string_view operation, double a, double b, const Place& at) {
  if (operation == "+") return checked(a + b, at);
  if (operation == "-") return checked(a - b, at);
  if (operation == "*") return checked(a * b, at);
  if (operation == "**") return checked(std::pow(a, b), at);
  require(b != 0, at, ": division by zero");
  if (operation == "/") return checked(a / b, at);
  const double quotient = std::floor(a / b);
  return operation == "//" ? rounded(quotient, at) : checked(a - quotient * b, at);
}

bool compare(std::string_view operation, double a, double b) {
  if (operation == "<") return a < b;
  if (operation == "<=") return a <= b;
  if (operation == ">") return a > b;
  return a >= b;
}

double number(const std::string& function, const Literal& value, const Place& at) {
  require(value.is_number(), at, ": ", function, " takes numbers, found ", described(value));
  return value.real();
}

Literal extreme(const std::string& function, const std::vector<Literal>& values, const Place& at) {
  const Literal* best = nullptr;
  for (const Literal& value : values) {
    const double real = number(function, value, at);
    if (!best || (function == "min" ? real < best->real() : real > best->real())) best = &value;
  }
  require(best, at, ": ", function, " of nothing");
  return *best;
}

Literal range(const std::vector<Literal>& arguments, const Place& at) {
  std::vector<int64_t> bounds;
  for (const Literal& argument : arguments) {
    require(argument.as<int64_t>(), at, ": range takes whole numbers, found ", described(argument));
    bounds.push_back(*argument.as<int64_t>());
  }
  const int64_t first = bounds.size() == 1 ? 0 : bounds[0], end = bounds.back();
  require(end <= first || static_cast<uint64_t>(end) - static_cast<uint64_t>(first) <= kMaxList, at,
          ": a list of more than ", kMaxList, " values");
  Literal::List list;
  for (int64_t i = first; i < end; ++i) list.emplace_back(i);
  return list;
}

}  // namespace

Literal apply(std::string_view operation, const Literal& a, const Literal& b, const Place& at) {
  if (operation == "==") return a == b;
  if (operation == "!=") return !(a == b);
  if (a.is_number() && b.is_number()) {
    if (operation[0] == '<' || operation[0] == '>') return compare(operation, a.real(), b.real());
    const auto *x = a.as<int64_t>(), *y = b.as<int64_t>();
    return x && y ? of_whole(operation, *x, *y, at) : of_real(operation, a.real(), b.real(), at);
  }
  if (operation == "+" && a.as<Literal::List>() && b.as<Literal::List>()) {
    Literal::List both = *a.as<Literal::List>();
    both.insert(both.end(), b.as<Literal::List>()->begin(), b.as<Literal::List>()->end());
    require(both.size() <= kMaxList, at, ": a list of more than ", kMaxList, " values");
    return both;
  }
  if (operation == "+" && (a.as<Text>() || b.as<Text>())) {
    Text both{inside_text(a) + inside_text(b)};
    require(both.escaped.size() <= kMaxList, at, ": a text of more than ", kMaxList, " letters");
    return both;
  }
  fail(at, ": \"", operation, "\" cannot take ", described(a), " and ", described(b));
}

Literal call(const std::string& function, const std::vector<Literal>& arguments, const Place& at) {
  struct Function {
    size_t minimum, maximum;
    std::function<Literal()> compute;
  };
  const auto real = [&] { return number(function, arguments[0], at); };
  const std::map<std::string, Function> functions = {
      {"min", {1, kMaxList, [&] { return extreme(function, arguments, at); }}},
      {"max", {1, kMaxList, [&] { return extreme(function, arguments, at); }}},
      {"floor", {1, 1, [&] { return rounded(std::floor(real()), at); }}},
      {"ceil", {1, 1, [&] { return rounded(std::ceil(real()), at); }}},
      {"round", {1, 1, [&] { return rounded(std::round(real()), at); }}},
      {"sqrt", {1, 1, [&] { return checked(std::sqrt(real()), at); }}},
      {"abs",
       {1, 1,
        [&] { return real() < 0 ? apply("-", int64_t{0}, arguments[0], at) : arguments[0]; }}},
      {"length",
       {1, 1,
        [&]() -> Literal {
          const auto* list = arguments[0].as<Literal::List>();
          require(list, at, ": length takes a list, found ", described(arguments[0]));
          return static_cast<int64_t>(list->size());
        }}},
      {"range", {1, 2, [&] { return range(arguments, at); }}},
  };
  std::vector<std::string> names;
  for (const auto& [name, unused] : functions) names.push_back(name);
  const auto found = functions.find(function);
  if (found == functions.end())
    fail(at, ": there is no function ", function, "()", did_you_mean(function, names),
         "; there are ", join(names, ", "));
  const auto& [minimum, maximum, compute] = found->second;
  require(arguments.size() >= minimum && arguments.size() <= maximum, at, ": ", function,
          "() takes ", minimum == maximum ? "one value" : "one value or more", ", found ",
          arguments.size());
  return compute();
}

}  // namespace crema

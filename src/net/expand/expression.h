// Expressions in prototxt files: `2 * $width`, `"res$stage"`, `$list[0] == 3 ? MAX : AVE`.
#pragma once

#include "net/expand/cursor.h"

namespace crema {

// Evaluates the expression at the cursor and moves past it. In a block in angle brackets ">" is its
// end, not an operator. Errors name the position.
Literal evaluate(Cursor& cursor, Scopes& scopes, bool in_angle_block = false);

// Whether a value is true, for `if` and `?:`: a truth value, or a number other than 0. `at` is its
// position.
bool is_true(const Literal& value, const Place& at);

// A value as an integer, for the bounds of a repeat.
int64_t whole_number(const Literal& value, const Place& at);

}  // namespace crema

// Properties of a terminal: colours and width.
#pragma once

#include <string>
#include <string_view>

namespace crema {

enum class Colour { red, yellow, cyan };

bool is_terminal(int descriptor);

// Whether text for this descriptor is coloured: on a terminal, unless NO_COLOR or CLICOLOR=0 is set
// or TERM is dumb; with CLICOLOR_FORCE everywhere. NO_COLOR wins.
bool has_colour(int descriptor);

// Whether it is a terminal that is known to show links (OSC 8). FORCE_HYPERLINK=1 says that another
// one does, FORCE_HYPERLINK=0 that none is wanted.
bool has_links(int descriptor);

// Whether the cursor can go back in a line, as a status line requires.
bool can_redraw(int descriptor);

// 80 if there is no terminal.
size_t columns_of(int descriptor);

// `text` in bold letters of this colour, if `has_colour`.
std::string painted(std::string_view text, Colour colour, bool has_colour);

// `text` as a link of a terminal.
std::string linked(std::string_view text, std::string_view address);

// The words of `text` in lines of at most `width` columns that begin with `indent`; the first
// begins with `first` instead. Longer words get a line of their own. Ends with a line break.
std::string wrapped(std::string_view text, size_t width, const std::string& first,
                    const std::string& indent);

}  // namespace crema

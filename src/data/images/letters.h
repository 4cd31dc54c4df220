// Letters of 5 x 7 pixels, to write on pictures.
#pragma once

#include <cstdint>

namespace crema {

constexpr int kLetterWidth = 5, kLetterHeight = 7, kLetterStep = 6;

// The seven rows of a letter, of which the left pixel is the highest of five bits; small letters
// look like large ones. Null where nothing is drawn.
const uint8_t* letter_rows(char letter);

}  // namespace crema

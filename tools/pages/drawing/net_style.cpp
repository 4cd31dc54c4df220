#include "tools/pages/drawing/net_style.h"

#include <sstream>

#include "base/strings.h"
#include "base/visible.h"

namespace crema {

namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// No custom properties, which viewers other than browsers do not know.
constexpr const char* light = R"css(
.net { font-family: system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; background: #fbfaf8; }
.net text { font-size: 11.5px; fill: #22201d; }
.net rect.page { fill: #fbfaf8; }
.net text.title { font-size: 19px; font-weight: 600; } .net text.name { font-size: 13px; font-weight: 600; }
.net text.shape { font-size: 12.5px; }
.net text.soft, .net text.far, .net text.block { fill: #75706a; } .net text.note { font-size: 12px; fill: #a5480f; }
.net text.far { font-style: italic; } .net text.block { font-weight: 600; }
.net rect.box { fill: #ffffff; stroke: #d5d0c8; }
.net rect.fused { fill: #eef3fa; stroke: #9fb9dc; stroke-dasharray: 3 2; }
.net path.line { fill: none; stroke: #9a948b; stroke-width: 1.4; stroke-linejoin: round; } .net path.tip { fill: #9a948b; stroke: none; }
.net path.stripe { stroke: none; }
.net .data .stripe { fill: #75706a; } .net .weights .stripe { fill: #2463b5; } .net .pooling .stripe { fill: #2b8a5f; }
.net .norm .stripe { fill: #8a4fb0; } .net .join .stripe { fill: #c49a1c; } .net .loss .stripe { fill: #c2571a; }
.net .other .stripe { fill: #b9b3aa; }
.net text.block { paint-order: stroke; stroke-width: 5px; stroke-linejoin: round; }
.net text.k0 { stroke: #e9eef5; } .net text.k1 { stroke: #f3ece1; } .net text.k2 { stroke: #e6f0ea; } .net text.k3 { stroke: #f0e8f3; }
.net rect.block { stroke: none; } .net rect.k0 { fill: #e9eef5; } .net rect.k1 { fill: #f3ece1; } .net rect.k2 { fill: #e6f0ea; }
.net rect.k3 { fill: #f0e8f3; }
)css";
constexpr const char* dark = R"css(
@media screen and (prefers-color-scheme: dark) {
.net { background: #171614; } .net text { fill: #eceae6; } .net rect.page { fill: #171614; }
.net text.soft, .net text.far, .net text.block { fill: #a19b93; } .net text.note { fill: #f09a62; }
.net rect.box { fill: #201f1c; stroke: #474339; } .net rect.fused { fill: #232b36; stroke: #4c6a92; }
.net path.line { stroke: #7d776e; } .net path.tip { fill: #7d776e; }
.net .data .stripe { fill: #a19b93; } .net .weights .stripe { fill: #74a9ee; } .net .pooling .stripe { fill: #6ccb9f; }
.net .norm .stripe { fill: #c394e6; } .net .join .stripe { fill: #e0bd55; } .net .loss .stripe { fill: #f09a62; }
.net .other .stripe { fill: #6b665e; }
.net text.k0 { stroke: #1c232c; } .net text.k1 { stroke: #2a241b; } .net text.k2 { stroke: #1a2620; } .net text.k3 { stroke: #271f2b; }
.net rect.k0 { fill: #1c232c; } .net rect.k1 { fill: #2a241b; } .net rect.k2 { fill: #1a2620; } .net rect.k3 { fill: #271f2b; }
}
)css";

}  // namespace

std::string net_style() { return cat(light, dark); }

const char* net_box_class(NetBoxKind kind) {
  static const char* classes[] = {"data", "weights", "pooling", "norm", "join", "loss", "other"};
  return classes[static_cast<int>(kind)];
}

double text_width(const std::string& text, double size) {
  double width = 0;
  for (const char c : text) {
    if (continues(c)) continue;
    const std::string_view narrow = "iljtfr.,:;'|!/()[] I-", wide = "mwMW@%";
    if (static_cast<unsigned char>(c) >= 0x80) {
      width += 1;
    } else if (narrow.find(c) != narrow.npos) {
      width += 0.4;
    } else if (wide.find(c) != wide.npos) {
      width += 0.95;
    } else {
      width += c >= 'A' && c <= 'Z' ? 0.7 : 0.63;
    }
  }
  return width * size;
}

std::string shortened(const std::string& text, size_t most) {
  std::vector<std::string> characters;
  for (const char c : visible(text)) {
    if (continues(c) && !characters.empty()) {
      characters.back() += c;
    } else {
      characters.emplace_back(1, c);
    }
  }
  if (characters.size() > most) {
    const size_t kept = most - 1, left = kept * 2 / 3;
    characters[left] = "…";
    characters.erase(characters.begin() + static_cast<std::ptrdiff_t>(left) + 1,
                     characters.end() - static_cast<std::ptrdiff_t>(kept - left));
  }
  return join(characters, "");
}

std::vector<std::string> wrapped(const std::string& text, size_t most) {
  std::vector<std::string> lines;
  std::istringstream words(visible(text));
  std::string word;
  while (words >> word) {
    word = shortened(word, most);
    if (lines.empty() || lines.back().size() + 1 + word.size() > most) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
  }
  return lines;
}

}  // namespace crema

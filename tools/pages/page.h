// Pages: the head, the style sheet and the script that the report and the live pages share, and
// common elements.
#pragma once

#include <string>
#include <vector>

namespace crema {

// A part of a page that is replaced when its text changes, see live_script().
struct PagePart {
  std::string name;  // a word
  std::string html;  // "": nothing to show
};

// A page that needs no other file: style and script are in it.
std::string whole_page(const std::string& title, const std::string& body);
// The same with style and script by address, "/crema.css" and "/crema.js". `poll`: the address
// that answers with the parts that have changed.
std::string served_page(const std::string& title, const std::string& body, const std::string& poll);
const char* page_style();
// Shows the values of a chart at the pointer.
const char* page_script();
// Fetches changed parts every few seconds and replaces the old ones.
const char* live_script();

// The parts in their places, each with the version of its text.
std::string placed(const std::vector<PagePart>& parts);
// A hash of its text.
std::string version_of(const PagePart& part);

// A card with a title; `note` and `title` are plain text, `body` is HTML.
std::string section(const std::string& title, const std::string& note, const std::string& body);
// A text as it is, folded away under its title; "" for an empty one.
std::string folded_text(const std::string& title, const std::string& text);

}  // namespace crema

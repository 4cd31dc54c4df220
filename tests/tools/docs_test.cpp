// The manual that `crema docs` writes: it has all verbs, types, fields and models, its links lead
// somewhere, and its error messages are those of the sources.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>

#include "base/files.h"
#include "base/strings.h"
#include "tools/program.h"

namespace crema::tests {
namespace docs_test {

namespace fs = std::filesystem;

// One manual for all tests of this file.
const Folder& manual() {
  static const Folder folder;
  static const Outcome outcome = run(folder, "crema docs -output manual");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return folder;
}

std::vector<std::string> first_words(const std::string& text, const std::string& pattern) {
  std::vector<std::string> words;
  const std::regex line(pattern);
  for (const std::string& part : split(text, '\n')) {
    std::smatch match;
    if (std::regex_search(part, match, line)) words.push_back(match[1]);
  }
  return words;
}

TEST(Docs, HasEveryVerbTypeAndField) {
  const Folder& folder = manual();
  const auto verbs = first_words(run(folder, "crema help").out, "^  ([a-z_]+)  ");
  EXPECT_GT(verbs.size(), 40u);
  for (const std::string& verb : verbs) {
    EXPECT_TRUE(folder.has("manual/docs/commands/" + verb + ".md")) << verb;
    EXPECT_TRUE(folder.has("manual/man/man1/crema-" + verb + ".1")) << verb;
  }
  const auto types = first_words(run(folder, "crema layers").out, "^(\\w+) ");
  EXPECT_GT(types.size(), 150u);
  for (const std::string& type : types)
    EXPECT_TRUE(folder.has("manual/docs/layers/" + type + ".md")) << type;
  for (const char* message : {"solver", "net"}) {
    const std::string page = folder.read(cat("manual/docs/fields/", message, ".md"));
    const auto fields =
        first_words(run(folder, cat("crema fields ", message)).out, "^  (\\w+) \\(");
    EXPECT_GT(fields.size(), 8u);
    for (const std::string& field : fields) expect_part(page, "### " + field + " {:");
  }
  const std::string convolution = folder.read("manual/docs/layers/Convolution.md");
  expect_part(convolution, "<mo>∑</mo>");
  expect_part(convolution, "| <code>1</code> | Channels are cut into this many groups");
  expect_part(folder.read("manual/docs/fields/params/convolution.md"), "DeepLab");
  expect_part(folder.read("manual/docs/models/lenet/README.md"), "431,080 | 2,293,000 |");
  expect_part(folder.read("manual/docs/models/lenet/lenet.svg"), "1x20x24x24");
}

// Each as it begins and ends in the page of a type.
TEST(Docs, SetsFormulas) {
  const Folder& folder = manual();
  const auto page = [&](const char* type) {
    return folder.read(cat("manual/docs/layers/", type, ".md"));
  };
  expect_part(
      page("BatchNorm"),
      "<mi>y</mi><mo>=</mo><mfrac><mrow><mi>x</mi><mo>−</mo><mi>mean</mi></mrow><mrow>"
      "<msqrt><mi>variance</mi><mo>+</mo><mi>eps</mi></msqrt></mrow></mfrac></mrow></math>");
  expect_part(page("Softmax"), "<munder><mo>∑</mo><mrow><mi>j</mi></mrow></munder><mi>exp</mi>");
  expect_part(page("Eltwise"),
              "<mtext>PROD:</mtext><mspace width=\"1em\"/><mi>y</mi><mo>=</mo><mo>∏</mo>");
  expect_part(page("Convolution"), "<mo>+</mo><mn>1</mn><mtext>, rounded down.</mtext>");
  expect_part(page("Softmax"),
              "**Gradient:** \n\n<div class=\"formula\">\n<math display=\"block\"><mrow>"
              "<mi>dx</mi><mo>=</mo><mi>y</mi>");
  // Sentences stay as they are.
  expect_part(page("Convolution"), "**Gradient:** dw correlates dy with x");
  expect_part(page("Proposal"), "<pre>anchors: at each position of the map");
  for (const std::string& name : list_folder(folder.file("manual/docs/layers"))) {
    const std::string text = folder.read("manual/docs/layers/" + name);
    for (const char* tag : {"math", "mrow", "mfrac", "msub", "msup", "msqrt", "munder", "pre"}) {
      const auto count = [&](const std::string& sign) {
        size_t found = 0;
        for (size_t at = text.find(sign); at != std::string::npos; at = text.find(sign, at + 1))
          ++found;
        return found;
      };
      EXPECT_EQ(count(cat("<", tag, ">")) + count(cat("<", tag, " ")), count(cat("</", tag, ">")))
          << name << ": " << tag;
    }
  }
}

// Text without code, in which brackets are not links.
std::string prose_of(const std::string& text) {
  std::string prose;
  bool fence = false;
  for (const std::string& line : split(text, '\n')) {
    if (starts_with(line, "```")) fence = !fence;
    if (!fence && !starts_with(line, "    ")) prose += line + "\n";
  }
  return std::regex_replace(prose, std::regex("`[^`\\[]*`"), "");
}

TEST(Docs, LinksLeadSomewhere) {
  const Folder& folder = manual();
  const fs::path top = fs::path(folder.file("manual/docs"));
  const std::regex link("\\]\\(([^)#\\s]*)(#[^)\\s]*)?\\)");
  std::map<std::string, std::string> texts;
  for (const auto& entry : fs::recursive_directory_iterator(top)) {
    if (entry.path().extension() == ".md") texts[entry.path()] = read_file(entry.path());
  }
  EXPECT_GT(texts.size(), 350u);
  size_t links = 0;
  for (const auto& [page, text] : texts) {
    const std::string prose = prose_of(text);
    for (std::sregex_iterator at(prose.begin(), prose.end(), link), end; at != end; ++at) {
      const std::string path = (*at)[1], anchor = (*at)[2];
      if (path.find(':') != std::string::npos) continue;
      ++links;
      const fs::path target = (fs::path(page).parent_path() / path).lexically_normal();
      EXPECT_TRUE(path.empty() || fs::exists(target)) << page << " links to " << path;
      // Anchors of fields; MkDocs checks those of headings.
      if (anchor.find('.') == std::string::npos || !texts.count(target)) continue;
      EXPECT_NE(texts[target].find("{: " + anchor + " }"), std::string::npos)
          << page << " links to " << path << anchor;
    }
  }
  EXPECT_GT(links, 3000u);
  // Every page is in the navigation.
  const std::string config = folder.read("manual/mkdocs.yml");
  for (const auto& [page, text] : texts) {
    const std::string path = fs::path(page).lexically_relative(top).string();
    EXPECT_NE(config.find("\"" + path + "\""), std::string::npos) << path;
  }
}

// The sources with the parts of each literal joined.
std::string sources() {
  std::string text;
  for (const char* floor : {"/../src", "/../tools"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(CREMA_TEST_DATA + std::string(floor))) {
      const std::string kind = entry.path().extension();
      if (kind != ".cpp" && kind != ".h" && kind != ".cu") continue;
      const std::string file = read_file(entry.path());
      // By hand: a regular expression takes seconds for megabytes.
      for (size_t at = 0; at < file.size(); ++at) {
        const size_t next = file[at] == '"' ? file.find_first_not_of(" \n", at + 1) : at;
        if (file[at] == '"' && next != std::string::npos && next > at + 1 && file[next] == '"') {
          at = next;
        } else if (file[at] != '\\' || file.compare(at, 2, "\\\"") != 0) {
          text += file[at];
        }
      }
    }
  }
  return text;
}

TEST(Docs, ErrorsAreThoseOfTheSources) {
  const std::string rows = read_file(CREMA_TEST_DATA "/../tools/docs/error_index.rows");
  const std::string all = sources();
  size_t errors = 0;
  for (const std::string& row : split(rows, '\n')) {
    if (row.empty() || row[0] == '#') continue;
    const std::string message(trim(row.substr(0, row.find('|'))));
    ++errors;
    for (size_t at = 0; at < message.size();) {
      const size_t end = std::min(message.find("...", at), message.size());
      const std::string part(trim(message.substr(at, end - at)));
      EXPECT_NE(all.find(part), std::string::npos) << "no message has: " << part;
      at = end + 3;
    }
  }
  EXPECT_GT(errors, 40u);
  expect_part(manual().read("manual/docs/errors.md"), "### unknown layer type ");
}

TEST(Docs, ManPagesAreWellFormed) {
  const Folder& folder = manual();
  for (const auto& entry : fs::directory_iterator(folder.file("manual/man/man1"))) {
    const std::string page = read_file(entry.path());
    EXPECT_EQ(page.rfind(".TH \"CREMA", 0), 0u) << entry.path();
    expect_part(page, "\n.SH NAME\ncrema");
    for (const std::string& line : split(page, '\n')) {
      if (!starts_with(line, ".")) continue;
      EXPECT_TRUE(std::regex_search(line, std::regex("^\\.(TH|SH|B|BR|I|TP|PP|nf|fi)( |$)")))
          << entry.path() << ": " << line;
    }
  }
  const Outcome warned =
      run_shell(folder,
                "command -v man >/dev/null || exit 0; for page in crema crema-train crema-db; do "
                "man --warnings -E UTF-8 -l -Tutf8 manual/man/man1/$page.1 2>&1 >/dev/null; done");
  EXPECT_EQ(warned.out, "");
}

TEST(Docs, ReplacesAnEarlierManualOnly) {
  const Folder folder;
  folder.write("mine/notes.txt", "mine");
  const Outcome refused = run(folder, "crema docs -output mine");
  EXPECT_EQ(refused.code, 1);
  expect_part(refused.err, "the folder is not empty");
  EXPECT_EQ(folder.read("mine/notes.txt"), "mine");
  expect_part(run(folder, "crema docs -output new nowhere").err, "nowhere/README.md: no such file");
  EXPECT_FALSE(folder.has("new"));
  // What the system refuses is told as every other message.
  const Outcome impossible = run(folder, "crema docs -output mine/notes.txt/new");
  EXPECT_EQ(impossible.code, 1);
  EXPECT_EQ(impossible.errors().back(),
            "mine/notes.txt/new/man/man1: cannot create directories: Not a directory");

  const Folder& made = manual();
  made.write("manual/docs/old.md", "of an earlier version");
  made.write("manual/site/index.html", "built");
  EXPECT_EQ(run(made, "crema docs -output manual").code, 0);
  EXPECT_FALSE(made.has("manual/docs/old.md"));
  EXPECT_TRUE(made.has("manual/site/index.html"));
}

}  // namespace docs_test
}  // namespace crema::tests

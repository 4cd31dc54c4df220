// Drawings and figures of the models: tests/models/models.rows has their shapes, parameters and
// multiply-adds, which the tests check; models/README.md has their results.
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "net/prototxt/prototxt.h"
#include "tools/console/program_log.h"
#include "tools/docs/manual/markup.h"
#include "tools/docs/manual/site.h"
#include "tools/flags/command_line.h"
#include "tools/flags/net_flags.h"
#include "tools/flags/shell_words.h"
#include "tools/pages/drawing/net_drawing.h"

namespace crema {

namespace {

struct ModelRow {
  std::string name, solver, settings, shapes, parameters, multiply_adds;
  std::string folder() const { return folder_of(solver); }
};

std::vector<ModelRow> read_rows(const std::string& path) {
  std::vector<ModelRow> rows;
  if (!file_exists(path)) return rows;
  for (const std::string& line : split(read_text(path), '\n')) {
    std::vector<std::string> cells;
    for (const std::string& cell : split(line, '|')) cells.emplace_back(trim(cell));
    if (cells.size() < 6 || starts_with(line, "#")) continue;
    // Of "TRAIN's ; TEST's" shapes the drawing takes the first.
    const std::string shapes(trim(cells[3].substr(0, cells[3].find(';'))));
    rows.push_back({cells[0], cells[1], cells[2], shapes, cells[4], cells[5]});
  }
  return rows;
}

// Data and accuracy in the rows of a table in models/README.md, by folder.
struct Result {
  std::string data, accuracy;
};

std::map<std::string, Result> read_results(const std::string& path) {
  std::map<std::string, Result> results;
  for (const std::string& line : split(read_text(path), '\n')) {
    if (!starts_with(line, "| [")) continue;
    const std::vector<std::string> cells = split(line, '|');
    if (cells.size() < 5) continue;
    std::vector<std::string> folders;
    for (size_t at = cells[1].find("]("); at != std::string::npos; at = cells[1].find("](", at + 1))
      folders.push_back(folder_of(cells[1].substr(at + 2, cells[1].find(')', at) - at - 2)));
    // A row of several models has an accuracy for each, or one for all.
    const std::vector<std::string> each = split(cells[4], ',');
    for (size_t i = 0; i < folders.size(); ++i) {
      const std::string& accuracy = each.size() == folders.size() ? each[i] : cells[4];
      results[folders[i]] = {std::string(trim(cells[2])), std::string(trim(accuracy))};
    }
  }
  return results;
}

// "": the solver has its net inside.
std::string drawing_of(const std::string& source, const ModelRow& row) {
  const std::string path = source + "/models/" + row.solver;
  const SolverParameter solver = read_solver_file(path).solver;
  const std::string named = solver.has_net() ? solver.net() : solver.train_net();
  if (named.empty()) return "";
  const std::string net = find_file(named, folder_of(path));
  std::string words = cat("-model ", shell_quoted(net), " -assume ", row.shapes);
  for (const std::string& setting : split(row.settings, ' ')) {
    if (setting.empty()) continue;
    words += (starts_with(setting, "-") ? " " : " -set ") + setting;
  }
  FlagValues values;
  add_flags(words, "tests/models/models.rows", "summary", &values);
  ProgramLog quiet(LogStyle::brief, true);
  quiet.only_errors();
  const NetInput input = read_model(quiet, ModelFlags(values), TRAIN);
  return net_svg(input, row.name, silent_log());
}

std::string figures_of(const std::vector<ModelRow>& rows) {
  std::string table =
      "| net | solver | settings | parameters | multiply-adds |\n"
      "| --- | --- | --- | ---: | ---: |\n";
  for (const ModelRow& row : rows) {
    table += cat("| ", markdown_of(row.name), " | ", markdown_of(row.solver), " | ",
                 row.settings.empty() ? "" : code_of_text(row.settings), " | ", row.parameters,
                 " | ", row.multiply_adds, " |\n");
  }
  return table;
}

std::string card_of(const std::string& folder, const ModelRow& row, const Result& result) {
  std::string card =
      cat("-   [![", row.name, "](", folder, "/", row.name, ".svg){ loading=lazy }](", folder,
          "/README.md)\n\n    **[", markdown_of(folder), "](", folder, "/README.md)** ",
          markdown_of(result.data), "\n\n    ", row.parameters, " parameters, ", row.multiply_adds,
          " multiply-adds");
  if (!result.accuracy.empty()) card += cat(", ", markdown_of(result.accuracy));
  return card + "\n\n";
}

}  // namespace

void add_model_pages(const std::string& source, Site* site) {
  std::vector<std::string> folders;
  std::map<std::string, std::vector<ModelRow>> models;
  for (ModelRow& row : read_rows(source + "/tests/models/models.rows")) {
    const std::string folder = row.folder();
    if (!site->has("models/" + folder + "/README.md")) continue;
    if (models[folder].empty()) folders.push_back(folder);
    models[folder].push_back(std::move(row));
  }
  if (folders.empty()) return;
  const auto results = read_results(source + "/models/README.md");
  std::string gallery =
      "# Gallery\n\nThe nets of [models](README.md), with the figures that the tests check and the "
      "results on their pages.\n\n<div class=\"grid cards\" markdown>\n\n";
  for (const std::string& folder : folders) {
    const std::vector<ModelRow>& rows = models[folder];
    const std::string svg = drawing_of(source, rows[0]);
    if (svg.empty()) continue;
    site->add(cat("models/", folder, "/", rows[0].name, ".svg"), svg);
    site->append("models/" + folder + "/README.md",
                 cat("\n## Size and drawing\n\nFor one sample:\n\n", figures_of(rows), "\n[![",
                     rows[0].name, "](", rows[0].name, ".svg)](", rows[0].name, ".svg)\n"));
    const auto result = results.find(folder);
    gallery += card_of(folder, rows[0], result == results.end() ? Result() : result->second);
  }
  site->add("models/gallery.md", gallery + "</div>\n");
  for (NavEntry& entry : site->nav) {
    if (entry.title == "Models")
      entry.entries.insert(entry.entries.begin(), {"Gallery", "models/gallery.md", {}});
  }
}

}  // namespace crema

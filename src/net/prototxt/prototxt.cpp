#include "net/prototxt/prototxt.h"

#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/given_file.h"
#include "net/graph/given_blobs.h"
#include "net/prototxt/no_effect.h"
#include "net/prototxt/preparation_reader.h"
#include "net/prototxt/prototxt_parse.h"

namespace crema {

namespace {

// Error for `blobs` that contradict themselves.
void check_blobs(const NetFile& file) {
  for (int i = 0; i < file.net.layer_size(); ++i) {
    const LayerParameter& layer = file.net.layer(i);
    for (int k = 0; k < layer.blobs_size(); ++k) {
      try {
        given_blob(layer.blobs(k));
      } catch (const Error& error) {
        fail(file.where(i, cat("blobs[", k, "]")), ": layer \"", layer.name(), "\": blobs ", k, " ",
             error.what());
      }
    }
  }
}

// Upgrades file->net, whose fields have the prefix file->prefix, and applies the settings.
void upgrade(NetFile* file, Settings* settings) {
  const auto where = [file](const std::string& field) { return file->where(field); };
  const std::vector<Note> notes = notes_without_effect(file->net, where);
  file->upgrade = upgrade_net(&file->net, file->path, where);
  file->upgrade.notes.insert(file->upgrade.notes.begin(), notes.begin(), notes.end());
  check_blobs(*file);
  if (!settings) return;
  const std::vector<Note> set = settings->apply(&file->net);
  file->upgrade.notes.insert(file->upgrade.notes.end(), set.begin(), set.end());
}

std::shared_ptr<const SourceMap> parse(const std::string& text, const std::string& name,
                                       google::protobuf::Message* message, Settings* settings) {
  if (!settings) return parse_text(text, name, message);
  std::vector<std::string> used;
  auto positions = parse_text(text, name, message, settings->variables(), &used, settings->hooks());
  settings->note_used(used);
  return positions;
}

std::string read_prototxt(const std::string& path, const Settings* settings) {
  if (settings && settings->hooks().unsaved) {
    if (std::optional<std::string> text = settings->hooks().unsaved(path)) return *text;
  }
  constexpr size_t kMax = size_t{64} << 20;  // the parsed message takes many times the memory
  const std::string text = read_text(path, kMax);
  require(!trim(text).empty(), path, ": is empty");
  return text;
}

// If a file is something else altogether, the mistake is that it was given here.
template <typename Read>
auto of_kind(const std::string& path, const std::string& expected, const Read& read) {
  try {
    return read();
  } catch (const Error&) {
    const FileKind kind = kind_of(path);
    const bool other = !kind.what.empty() && kind.what != expected && kind.what != kTextKind &&
                       kind.what != kEmptyKind && kind.what != kUnknownKind;
    require(!other, path, ": is not ", expected, " in text", what_it_is(kind));
    throw;
  }
}

}  // namespace

std::string NetFile::where(const std::string& field) const {
  return positions->where(prefix + field);
}

std::string NetFile::where(int layer) const { return where(upgrade.origins.at(layer)); }

std::string NetFile::where(int layer, const std::string& field) const {
  const std::string& origin = upgrade.origins.at(layer);
  return where(cat(origin, ".", field));
}

NetFile parse_net_text(const std::string& text, const std::string& name, Settings* settings) {
  NetFile file;
  file.path = name;
  file.positions = parse(text, name, &file.net, settings);
  file.preparation = read_preparation(text, name);
  upgrade(&file, settings);
  return file;
}

NetFile read_net_file(const std::string& path, Settings* settings) {
  return of_kind(path, kNetKind,
                 [&] { return parse_net_text(read_prototxt(path, settings), path, settings); });
}

SolverFile parse_solver_text(const std::string& text, const std::string& name,
                             std::shared_ptr<Settings> settings) {
  SolverFile file;
  file.path = name;
  file.positions = parse(text, name, &file.solver, settings.get());
  const auto where = [&file](const std::string& field) { return file.where(field); };
  file.notes = notes_without_effect(file.solver, where);
  const auto add = [&file](const std::vector<Note>& notes) {
    file.notes.insert(file.notes.end(), notes.begin(), notes.end());
  };
  add(upgrade_solver(&file.solver, name, where).notes);
  if (settings) {
    add(settings->apply(&file.solver));
    add(upgrade_solver(&file.solver, name, where).notes);  // -set solver_type=ADAM
  }
  file.settings = std::move(settings);
  add(complete_snapshot_prefix(&file.solver, name));
  return file;
}

SolverFile read_solver_file(const std::string& path, std::shared_ptr<Settings> settings) {
  return of_kind(path, kSolverKind, [&] {
    const std::string text = read_prototxt(path, settings.get());
    return parse_solver_text(text, path, std::move(settings));
  });
}

NetFile inner_net(const SolverFile& file, const std::string& field) {
  if (const auto found = file.rewritten.find(field); found != file.rewritten.end())
    return found->second;
  NetFile net;
  net.path = file.path;
  net.positions = file.positions;
  net.prefix = field + ".";
  const SolverParameter& solver = file.solver;
  if (field == "net_param") {
    net.net = solver.net_param();
  } else if (field == "train_net_param") {
    net.net = solver.train_net_param();
  } else {
    const size_t bracket = field.find('[');
    const int index = bracket == std::string::npos ? 0 : std::stoi(field.substr(bracket + 1));
    require(starts_with(field, "test_net_param") && index < solver.test_net_param_size(), file.path,
            ": the solver has no ", field);
    net.net = solver.test_net_param(index);
  }
  upgrade(&net, file.settings.get());
  return net;
}

}  // namespace crema

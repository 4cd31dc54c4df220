// A net in an editor, read and made in a phase. Data are not opened: their shapes are assumed.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/context.h"
#include "net/graph/graph_builder.h"
#include "net/prototxt/net_input.h"
#include "net/prototxt/prototxt.h"
#include "tools/lsp/open_files.h"

namespace crema {

// A value that an expression or a variable of the file has, the first few if it is computed several times.
struct ComputedValue {
  size_t begin = 0, end = 0;  // of the expression
  std::vector<std::string> values;
};

// The name of a file in messages.
std::string name_of(const Document& document);

// What an editor learns as a file is read.
struct ReadingLog {
  std::vector<ComputedValue> values;
  std::set<std::string> files;  // the paths of others that it was made of, or of its nets
};

struct LayerMistake {
  std::string text;     // as the library says it, with the place
  std::string missing;  // a bottom that nothing makes, or ""
};

// A net without the layers that cannot be made, and without those that depend on them.
struct MadeNet {
  NetInput input;
  std::vector<LayerMistake> mistakes;
  std::unique_ptr<Context> context;
  std::optional<Graph>
      graph;  // none: it could not be made, or its data have no shapes that could be assumed

  // Of layer i of the graph: its index in the input; -1 for a Split.
  int input_layer(int i) const;
};

class NetReading {
 public:
  // `log`, if given, gets what the file has, also if it is wrong behind that. Error for a file that cannot be read.
  NetReading(const Document& document, const OpenFiles& files, ReadingLog* log = nullptr)
      : NetReading(name_of(document), document.text(), files, log) {}
  NetReading(std::string name, const std::string& text, const OpenFiles& files, ReadingLog* log);

  // Blobs of layers that were taken out of the text: it is no mistake to read them.
  void set_lost(std::set<std::string> blobs) { lost_ = std::move(blobs); }

  const std::string& name() const { return name_; }  // of the file, as messages have it
  const std::shared_ptr<const NetFile>& file() const { return file_; }
  // Error for rules of layers that contradict each other.
  MadeNet made_in(Phase phase, Log& log) const;

 private:
  bool is_of_another_state(const LayerError& error) const;
  void make(MadeNet* net, Log& log) const;

  std::string name_;
  std::shared_ptr<const NetFile> file_;
  std::set<std::string> lost_;
};

// Of a parser for this file: includes are read as they are in the editor.
Settings settings_of(const std::string& name, const OpenFiles& files, ReadingLog* log = nullptr);

}  // namespace crema

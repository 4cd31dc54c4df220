// What an editor shows of a file besides its mistakes, as the protocol's JSON.
#pragma once

#include "tools/lsp/document.h"

namespace crema {

// The layers of a net with the blocks in them, the fields of a solver: DocumentSymbol[].
Json symbols_of(const Document& document);
// Blocks of several lines: FoldingRange[].
Json folds_of(const Document& document);
// What may be written at this offset: CompletionItem[].
Json completions_at(const Document& document, size_t offset);
// What is at this offset: Hover, or null.
Json hover_at(const Document& document, size_t offset);
// Where the blob or the variable at this offset is written first: Location, or null; where it stands at all: Location[].
Json definition_at(const Document& document, size_t offset);
Json references_at(const Document& document, size_t offset);
// The edits that give the blob or the variable another name: WorkspaceEdit. Error if there is none, or for a name that is
// none.
Json renamed_at(const Document& document, size_t offset, const std::string& name);

}  // namespace crema

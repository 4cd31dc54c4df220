// What an editor shows of a file besides its mistakes, as the protocol's JSON.
#pragma once

#include "tools/lsp/open_files.h"

namespace crema {

// The layers of a net with the blocks in them, the fields of a solver: DocumentSymbol[].
Json symbols_of(const Document& document);
// Blocks of several lines: FoldingRange[].
Json folds_of(const Document& document);
// The kinds of words, by which they are coloured: SemanticTokens, whose numbers are explained by SemanticTokensLegend.
Json semantic_legend();
Json semantic_tokens_of(const Document& document);
// What may be written at this offset, the most likely first: CompletionItem[]. has_snippets: the
// editor fills in snippets.
Json completions_at(const Document& document, size_t offset, bool has_snippets);
// What is at this offset: Hover, or null.
Json hover_at(const Document& document, size_t offset, const OpenFiles& files);
// Where the name at this offset is written first: Location, or null; where it is used, also in files that are
// included: Location[].
Json definition_at(const Document& document, size_t offset, const OpenFiles& files);
Json references_at(const Document& document, size_t offset, const OpenFiles& files);
// The edits that give what is at this offset another name in all files: WorkspaceEdit. Error if it has no name, or for
// a name that is none or taken.
Json renamed_at(const Document& document, size_t offset, const std::string& name,
                const OpenFiles& files);
// What rewrites layers of Caffe's first years in this range, and all of the file, as layers of today: CodeAction[].
Json modern_forms_at(const Document& document, size_t begin, size_t end);

}  // namespace crema

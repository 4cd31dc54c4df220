-- A person in Neovim: types a mistake, takes its quick fix, asks for help and renames a blob. Writes answers.txt.
local out = io.open("answers.txt", "w")
local function wait(what, condition)
  if not vim.wait(5000, condition, 20) then out:write("waited for ", what, "\n") end
end
local function line(number) return vim.api.nvim_buf_get_lines(0, number - 1, number, false)[1] end
local function ask(method, params)
  for _, answer in pairs(vim.lsp.buf_request_sync(0, method, params, 5000)) do return answer.result end
end
local function find(text)
  for number = 1, vim.api.nvim_buf_line_count(0) do
    local at = line(number):find(text, 1, true)
    if at then return number, at end
  end
end

vim.cmd("edit net.prototxt")
wait("the server", function() return #vim.lsp.buf_get_clients(0) > 0 or #vim.tbl_keys(vim.lsp.buf_get_clients(0)) > 0 end)
local row = find('"Convolution"')
vim.api.nvim_buf_set_lines(0, row - 1, row, false, { '  type: "Convolutoin"' })
wait("a mistake", function() return #vim.diagnostic.get(0) > 0 end)
for _, found in ipairs(vim.diagnostic.get(0)) do out:write(found.lnum + 1, ":", found.col + 1, " ", found.message, "\n") end
local range = { start = { line = row - 1, character = 0 }, ["end"] = { line = row, character = 0 } }
local document = vim.lsp.util.make_text_document_params()
local fixes = ask("textDocument/codeAction", { textDocument = document, range = range, context = { diagnostics = {} } })
vim.lsp.util.apply_workspace_edit(fixes[1].edit, "utf-16")
wait("no mistake", function() return #vim.diagnostic.get(0) == 0 end)
out:write("fixed: ", line(row), "\n")
local at, column = find('bottom: "conv1"')
vim.api.nvim_win_set_cursor(0, { at, column + 9 })
out:write("hover: ", ask("textDocument/hover", vim.lsp.util.make_position_params()).contents.value:match("[^\n]+"), "\n")
out:write("completions: ", #ask("textDocument/completion", vim.lsp.util.make_position_params()), "\n")
local params = vim.lsp.util.make_position_params()
params.newName = "c"
vim.lsp.util.apply_workspace_edit(ask("textDocument/rename", params), "utf-16")
wait("the new name", function() return find('bottom: "c"') end)
out:write("renamed: ", line(at), "\n")
vim.api.nvim_buf_set_lines(0, 0, 1, false, { "name:'LeNet'" })
vim.lsp.buf.formatting_sync({}, 5000)
out:write("formatted: ", line(1), "\n")
out:close()
vim.cmd("qa!")

-- Crema in Neovim 0.7 and later: dofile("/path/to/crema.lua") in init.lua.
local clients = {}
vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, {
  pattern = { "*.prototxt", "*.pbtxt" },
  callback = function(args)
    vim.bo.filetype = "prototxt"
    vim.bo.commentstring = "# %s"
    vim.bo.omnifunc = "v:lua.vim.lsp.omnifunc"
    local root = vim.fs and vim.fs.dirname(vim.fs.find(".git", { upward = true })[1]) or vim.fn.getcwd()
    local id = clients[root]
    if not id or not vim.lsp.get_client_by_id(id) then
      id = vim.lsp.start_client({ name = "crema", cmd = { "crema", "lsp" }, root_dir = root })
      clients[root] = id
    end
    if id then vim.lsp.buf_attach_client(args.buf, id) end
  end,
})

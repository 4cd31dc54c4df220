" Crema in Vim with ALE (Debian: vim-ale): source /path/to/crema.vim in .vimrc, after ALE.
augroup crema
  autocmd!
  autocmd BufRead,BufNewFile *.prototxt,*.pbtxt setlocal filetype=prototxt commentstring=#\ %s omnifunc=ale#completion#OmniFunc
augroup END

function! CremaRoot(buffer) abort
  let l:git = finddir('.git', expand('#' . a:buffer . ':p:h') . ';')
  return l:git is# '' ? expand('#' . a:buffer . ':p:h') : fnamemodify(l:git, ':p:h:h')
endfunction

call ale#linter#Define('prototxt', {
\   'name': 'crema', 'lsp': 'stdio', 'executable': 'crema', 'command': '%e lsp', 'project_root': function('CremaRoot')})

" A person in Vim with ALE: opens a net with a mistake. Writes answers.txt.
edit net.prototxt
let s:left = 100
while s:left > 0 && empty(getloclist(0)) && empty(ale#engine#GetLoclist(bufnr('')))
  sleep 50m
  let s:left -= 1
endwhile
call writefile(map(copy(ale#engine#GetLoclist(bufnr(''))), 'v:val.lnum . ":" . v:val.col . " " . v:val.text'), 'answers.txt')
qall!

;;; crema.el --- Crema in Emacs: nets and solvers in prototxt files  -*- lexical-binding: t -*-

;; (load "/path/to/crema.el") in the init file. Emacs 29 has eglot; before, it is in GNU ELPA and in Debian's elpa-eglot.

(define-derived-mode prototxt-mode prog-mode "Prototxt"
  "Nets and solvers of Crema and Caffe."
  (setq-local comment-start "# ")
  (setq-local comment-start-skip "#+ *")
  (setq-local indent-line-function #'indent-relative)
  (setq-local font-lock-defaults
              '((("\\_<\\(include\\|repeat\\|if\\|else\\|error\\)\\_>" . font-lock-keyword-face)
                 ("\\$[A-Za-z_][A-Za-z0-9_]*" . font-lock-variable-name-face)
                 ("\\_<[A-Za-z_][A-Za-z0-9_]*\\_>[ \t]*:?[ \t]*{" . font-lock-type-face)
                 ("\\(\\_<[A-Za-z_][A-Za-z0-9_]*\\_>\\)[ \t]*:" 1 font-lock-function-name-face)))))
(modify-syntax-entry ?# "<" prototxt-mode-syntax-table)
(modify-syntax-entry ?\n ">" prototxt-mode-syntax-table)
(modify-syntax-entry ?' "\"" prototxt-mode-syntax-table)

(add-to-list 'auto-mode-alist '("\\.\\(prototxt\\|pbtxt\\)\\'" . prototxt-mode))
(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs '(prototxt-mode . ("crema" "lsp"))))
(autoload 'eglot-ensure "eglot")
(add-hook 'prototxt-mode-hook #'eglot-ensure)

(provide 'crema)
;;; crema.el ends here

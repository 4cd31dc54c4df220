# `cpack` in a build folder: a Debian package of what `cmake --install` makes, in /opt/crema with all its libraries, so that one file
# installs on Debian 12, Ubuntu 24.04 and whatever has their glibc or a newer one. /usr/bin gets `crema` alone: Debian's own caffe
# package has Caffe's names, and `test` is everybody's. Included by tools/CMakeLists.txt. tests/deb.sh makes one and tries it.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME crema)
set(CPACK_PACKAGE_VENDOR Crema)
set(CPACK_PACKAGE_CONTACT "The Crema developers <crema@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains neural networks that are written in Caffe's text files")
set(CPACK_PACKAGING_INSTALL_PREFIX /opt/crema)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
if(CREMA_WITH_CUDA)
  set(CPACK_DEBIAN_PACKAGE_NAME crema-cuda)
  set(CPACK_DEBIAN_PACKAGE_CONFLICTS crema)
endif()
# The bundled libraries need this one.
execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE glibc OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
string(REGEX MATCH "[0-9.]+$" glibc "${glibc}")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${glibc})")
# For `import crema`, which works with the Python that the module was built for.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-numpy, python3-protobuf, openmpi-bin")
# What is outside /opt/crema: cpack copies the folder at the end, with what it holds then.
set(root ${PROJECT_BINARY_DIR}/deb)
file(REMOVE_RECURSE ${root})
file(MAKE_DIRECTORY ${root}/usr/bin ${root}/usr/share/bash-completion/completions ${root}/usr/share/zsh/vendor-completions
                    ${root}/usr/lib/python3/dist-packages ${root}/usr/share/doc/crema)
file(CREATE_LINK /opt/crema/bin/crema ${root}/usr/bin/crema SYMBOLIC)
file(CREATE_LINK /opt/crema/share/bash-completion/completions/crema ${root}/usr/share/bash-completion/completions/crema SYMBOLIC)
file(CREATE_LINK /opt/crema/share/zsh/site-functions/_crema ${root}/usr/share/zsh/vendor-completions/_crema SYMBOLIC)
file(CREATE_LINK /opt/crema/share/crema/LICENSE ${root}/usr/share/doc/crema/copyright SYMBOLIC)
file(WRITE ${root}/usr/lib/python3/dist-packages/crema.pth "/opt/crema/python\n")
# /opt/crema/share/man is not where `man` looks. The pages exist once the program has written them for the installation.
install(CODE "
  file(MAKE_DIRECTORY \"${root}/usr/share/man/man1\")
  file(GLOB pages RELATIVE \"${manual}/man/man1\" \"${manual}/man/man1/*.1\")
  foreach(page \${pages})
    file(CREATE_LINK \"/opt/crema/share/man/man1/\${page}\" \"${root}/usr/share/man/man1/\${page}\" SYMBOLIC)
  endforeach()")
set(CPACK_INSTALLED_DIRECTORIES ${root} /)
include(CPack)

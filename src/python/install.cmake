# Where the package goes. `cmake --install`: into python/, next to bin/ and lib/, for PYTHONPATH. With --component wheel, as
# pyproject.toml has it: into a wheel's layout, where the libraries and the program are inside the package; what these need of other
# packages is put in by auditwheel, or is the machine's.
set(package ${PROJECT_BINARY_DIR}/python)
set(left_out PATTERN __pycache__ EXCLUDE PATTERN *.so EXCLUDE)
install(TARGETS crema_python_module LIBRARY DESTINATION python/crema OPTIONAL)  # where only the programs were built
install(DIRECTORY ${package}/crema ${package}/caffe DESTINATION python OPTIONAL ${left_out})

set(of_wheel COMPONENT wheel EXCLUDE_FROM_ALL)
install(TARGETS crema_python_module LIBRARY DESTINATION crema ${of_wheel})
install(DIRECTORY ${package}/crema ${package}/caffe DESTINATION . ${of_wheel} ${left_out})
install(FILES src/python/crema_programs.py DESTINATION . ${of_wheel})
install(TARGETS crema_tool RUNTIME DESTINATION crema/bin ${of_wheel})
set(libraries crema)
foreach(module crema_hdf5 crema_zip crema_http crema_jpeg crema_images crema_videos crema_mpi)
  if(TARGET ${module})
    list(APPEND libraries ${module})
  endif()
endforeach()
if(TARGET crema_videos)  # an installed folder has none; tools/CMakeLists.txt says why
  set_target_properties(crema_videos PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
endif()
install(TARGETS ${libraries} LIBRARY DESTINATION crema/lib ${of_wheel})

# `cmake --install build --component infer --prefix DIR`: the runtime alone, with the libraries that it needs. Other installations leave
# it out.
set(of_runtime COMPONENT infer EXCLUDE_FROM_ALL)
set_target_properties(crema_infer PROPERTIES INSTALL_RPATH "$ORIGIN${rpath_tail}")
install(TARGETS crema_infer LIBRARY DESTINATION lib ${of_runtime})
install(FILES ${PROJECT_BINARY_DIR}/include/crema_infer.h DESTINATION include ${of_runtime})
install(FILES ${PROJECT_SOURCE_DIR}/src/crema/CremaConfig.cmake ${version} DESTINATION lib/cmake/Crema ${of_runtime})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/crema ${of_runtime})
set(runtime_modules)  # OpenCV and HDF5 would bring 150 libraries
if(TARGET crema_jpeg)
  install(TARGETS crema_jpeg LIBRARY DESTINATION lib ${of_runtime})
  set(runtime_modules $<TARGET_FILE:crema_jpeg>)
endif()
install(CODE "
  set(PROGRAM)
  set(LIBRARY \"$<TARGET_FILE:crema_infer>\")
  set(MODULES \"${runtime_modules}\")
  set(CUDA ${CREMA_BUNDLE_CUDA})
  set(GPU_LIBRARIES \"${gpu_libraries}\")
  set(MARCH \"${CREMA_MARCH}\")
  set(TO \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib\")
  set(CMAKE_OBJDUMP \"${CMAKE_OBJDUMP}\")" ${of_runtime})
install(SCRIPT ${PROJECT_SOURCE_DIR}/tools/bundle.cmake ${of_runtime})

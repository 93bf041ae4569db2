# find_package(Lathe): targets lathe::lathe (everything) and lathe::runtime (no LLVM).
include(CMakePackageConfigHelpers)
set_target_properties(lathe PROPERTIES EXPORT_NAME lathe)
target_compile_features(lathe_runtime PUBLIC cxx_std_20)

# Installed libraries look beside themselves, and the compiler where LLVM's package puts its own
# libraries: that folder is not on the loader's path.
set(beside "$ORIGIN")
set(from_bin "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
set_target_properties(lathe_runtime PROPERTIES INSTALL_RPATH "${beside}")
set_target_properties(lathe lathe_selftest PROPERTIES INSTALL_RPATH "${beside};${LLVM_LIBRARY_DIRS}")
install(TARGETS lathe lathe_runtime EXPORT LatheTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS lathe_selftest LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(target lathe-cli lathe-opt lathe-lsp-server)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "${from_bin}")
    install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
foreach(target lathe-opt lathe-lsp-server)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "${from_bin};${LLVM_LIBRARY_DIRS}")
  endif()
endforeach()

# include/lathe is the public tree. Headers of the dialect, the passes and the steps that backends
# share show MLIR: they are for plug-ins, and nothing that lathe.h includes needs them.
install(DIRECTORY include/lathe DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_BINARY_DIR}/ir/lathe/ir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lathe
  FILES_MATCHING PATTERN "*.h.inc")

install(EXPORT LatheTargets NAMESPACE lathe:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/LatheConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
configure_package_config_file(cmake/LatheConfig.cmake.in ${PROJECT_BINARY_DIR}/LatheConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)
install(FILES ${PROJECT_BINARY_DIR}/LatheConfig.cmake ${PROJECT_BINARY_DIR}/LatheConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)
# oneDNN travels along: the wheel's library is not a system package.
install(FILES $<TARGET_FILE:DNNL::dnnl> DESTINATION ${CMAKE_INSTALL_LIBDIR} RENAME libdnnl.so.3)

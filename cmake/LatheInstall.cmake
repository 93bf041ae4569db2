# find_package(Lathe): targets lathe::lathe (everything) and lathe::runtime (no LLVM).
include(CMakePackageConfigHelpers)
set_target_properties(lathe PROPERTIES EXPORT_NAME lathe)
install(TARGETS lathe lathe_runtime EXPORT LatheTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(target lathe-cli lathe-opt)
  if(TARGET ${target})
    install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
install(FILES include/lathe/lathe.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lathe)
install(DIRECTORY frontend runtime backends DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lathe
  FILES_MATCHING PATTERN "*.h" PATTERN "device" EXCLUDE PATTERN "lowering" EXCLUDE)
install(EXPORT LatheTargets NAMESPACE lathe:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/LatheConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
configure_package_config_file(cmake/LatheConfig.cmake.in ${PROJECT_BINARY_DIR}/LatheConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)
install(FILES ${PROJECT_BINARY_DIR}/LatheConfig.cmake ${PROJECT_BINARY_DIR}/LatheConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)
# oneDNN travels along: the wheel's library is not a system package.
install(FILES $<TARGET_FILE:DNNL::dnnl> DESTINATION ${CMAKE_INSTALL_LIBDIR} RENAME libdnnl.so.3)

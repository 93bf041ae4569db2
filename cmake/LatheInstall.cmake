# find_package(Lathe): targets lathe::lathe (everything) and lathe::runtime (no LLVM).
include(CMakePackageConfigHelpers)
set_target_properties(lathe PROPERTIES EXPORT_NAME lathe)
target_compile_features(lathe_runtime PUBLIC cxx_std_20)

# Installed libraries look beside themselves, and the compiler where LLVM's package puts its own
# libraries: that folder is not on the loader's path.
set(beside "$ORIGIN;$ORIGIN/lathe")
set(from_bin "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
set_target_properties(lathe_runtime lathe_serve PROPERTIES INSTALL_RPATH "${beside}")
set_target_properties(lathe lathe_selftest PROPERTIES INSTALL_RPATH "${beside};${LLVM_LIBRARY_DIRS}")
install(TARGETS lathe lathe_runtime EXPORT LatheTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS lathe_selftest lathe_serve LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
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
install(DIRECTORY ${PROJECT_BINARY_DIR}/ir/lathe/ir ${PROJECT_BINARY_DIR}/passes/lathe/passes
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lathe
  FILES_MATCHING PATTERN "*.h.inc")

install(EXPORT LatheTargets NAMESPACE lathe:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/LatheConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
configure_package_config_file(cmake/LatheConfig.cmake.in ${PROJECT_BINARY_DIR}/LatheConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)
install(FILES ${PROJECT_BINARY_DIR}/LatheConfig.cmake ${PROJECT_BINARY_DIR}/LatheConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)
# oneDNN travels along: the wheel's library is not a system package, and a system's own may lie beside
# Lathe's libraries.
install(FILES $<TARGET_FILE:DNNL::dnnl> DESTINATION ${CMAKE_INSTALL_LIBDIR}/lathe RENAME libdnnl.so.3)

# What a reader needs: the pages, the programs that they show, licenses.
set(doc ${CMAKE_INSTALL_DATAROOTDIR}/doc/lathe)
install(FILES README.md SECURITY.md LICENSE THIRD_PARTY_NOTICES DESTINATION ${doc})
install(DIRECTORY docs examples DESTINATION ${doc})
install(DIRECTORY bench/configs DESTINATION ${doc}/bench)
get_target_property(dnnl_includes DNNL::dnnl INTERFACE_INCLUDE_DIRECTORIES)
find_file(LATHE_DNNL_NOTICES THIRD-PARTY-PROGRAMS HINTS ${dnnl_includes}
  PATH_SUFFIXES ../share/doc/onednn ../share/doc/dnnl NO_DEFAULT_PATH)
if(LATHE_DNNL_NOTICES)
  install(FILES ${LATHE_DNNL_NOTICES} DESTINATION ${doc} RENAME ONEDNN_THIRD_PARTY_PROGRAMS)
endif()

# The manual page and the completion are made of the command's own flags.
set(described ${PROJECT_BINARY_DIR}/described)
file(MAKE_DIRECTORY ${described})
foreach(page man:lathe.1 bash:lathe)
  string(REPLACE ":" ";" page ${page})
  list(GET page 0 kind)
  list(GET page 1 file)
  add_custom_command(OUTPUT ${described}/${file} DEPENDS lathe-cli VERBATIM
    COMMAND sh -c "\"$0\" describe $1 >\"$2\"" $<TARGET_FILE:lathe-cli> ${kind} ${described}/${file})
endforeach()
add_custom_target(described ALL DEPENDS ${described}/lathe.1 ${described}/lathe)
install(FILES ${described}/lathe.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${described}/lathe DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions)

# `cpack -G DEB` in the build folder makes a package for the system that it is built on.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lathe)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Compiler of computation graphs for transformers")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "the Lathe project <lathe@localhost>")
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS $<TARGET_FILE_DIR:DNNL::dnnl>)
set(CPACK_STRIP_FILES ON)
include(CPack)

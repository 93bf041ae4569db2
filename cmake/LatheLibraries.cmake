# The two shared libraries, made of the layers (LatheLayers.cmake).

# lathe::runtime loads and runs compiled programs. It links neither LLVM nor MLIR.
add_library(lathe_runtime SHARED)
set_target_properties(lathe_runtime PROPERTIES EXPORT_NAME runtime VERSION ${PROJECT_VERSION} SOVERSION 0
  LINKER_LANGUAGE CXX)
lathe_count_lines(lathe_runtime)
target_include_directories(lathe_runtime INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(lathe_runtime PRIVATE
  $<BUILD_INTERFACE:$<TARGET_NAME_IF_EXISTS:DNNL::dnnl>> $<BUILD_INTERFACE:fmt::fmt>
  $<BUILD_INTERFACE:PkgConfig::ONIG> $<BUILD_INTERFACE:PkgConfig::UTF8PROC> pthread dl)
add_subdirectory(runtime)
add_subdirectory(backends/cpu/device)
add_subdirectory(backends/cuda/device)
add_subdirectory(backends/cuda/hostexec)
if(LATHE_RUNTIME_ONLY)
  return()
endif()
if(NOT LATHE_PYTHON) # wheels run where no MPI is
  add_subdirectory(runtime/mpi)
endif()

# lathe::lathe records, compiles and asks.
add_library(lathe SHARED)
set_target_properties(lathe PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0 LINKER_LANGUAGE CXX)
lathe_use_mlir(lathe)
lathe_count_lines(lathe)
target_link_libraries(lathe PUBLIC lathe_runtime PRIVATE
  ${LLVM_LIBRARY_DIR}/liblldELF.a ${LLVM_LIBRARY_DIR}/liblldCommon.a MLIR LLVM z zstd $<BUILD_INTERFACE:fmt::fmt>)
foreach(layer ir passes backends frontend inspect)
  add_subdirectory(${layer})
endforeach()

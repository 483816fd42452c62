# `cmake --install`: bin/sfumato, libsfumato with its headers and a CMake package, the embedded model.
#
#   find_package(sfumato REQUIRED)
#   target_link_libraries(mine PRIVATE sfumato::sfumato)      # #include <sfumato/pipeline/pipeline.h>
include(CMakePackageConfigHelpers)

# One library of all modules. Shared: whoever links it needs none of the libraries inside.
list(TRANSFORM SFUMATO_ALL_MODULES PREPEND sfumato_ OUTPUT_VARIABLE modules)
set(objects "")
foreach(module ${modules})
  get_target_property(type ${module} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    list(APPEND objects $<TARGET_OBJECTS:${module}>)
  endif()
endforeach()
add_library(sfumato_lib SHARED ${objects})
target_link_libraries(sfumato_lib PRIVATE ${modules})
target_include_directories(sfumato_lib INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/sfumato>)
target_compile_features(sfumato_lib INTERFACE cxx_std_20)
set_target_properties(sfumato_lib PROPERTIES OUTPUT_NAME sfumato EXPORT_NAME sfumato LINKER_LANGUAGE CXX
                      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/sfumato)
install(TARGETS sfumato RUNTIME)
install(TARGETS sfumato_lib EXPORT sfumato LIBRARY)
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sfumato
        FILES_MATCHING PATTERN "*.h" PATTERN "test_*" EXCLUDE)
install(DIRECTORY models/emoji models/synthetic DESTINATION ${CMAKE_INSTALL_DATADIR}/sfumato/models)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT sfumato FILE sfumato-config.cmake NAMESPACE sfumato:: DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sfumato-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sfumato-config-version.cmake DESTINATION ${package})

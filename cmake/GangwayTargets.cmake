# Targets of this project. One library per folder, one test program per folder.

add_library(gangway_options INTERFACE)
target_compile_options(gangway_options INTERFACE -Wall -Wextra -Werror -Wno-unused-parameter
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds>)
target_include_directories(gangway_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
if(GANGWAY_SANITIZE)
  # Not what has no threads, for the thread sanitizer: it takes as long to build as all the rest.
  target_compile_options(gangway_options INTERFACE
    "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:GANGWAY_UNTHREADED>>>:-fsanitize=${GANGWAY_SANITIZE};-fno-omit-frame-pointer;-g1;-O1>")
  target_link_options(gangway_options INTERFACE -fsanitize=${GANGWAY_SANITIZE})
endif()
if(GANGWAY_SANITIZE MATCHES thread)
  # By the first protobuf's headers change what its types hold; Debian's library is built without. libstdc++ derives the
  # second from it, without which shared pointers count in a way that the sanitizer does not understand.
  target_compile_options(gangway_options INTERFACE -U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
  # Debian's abseil knows nothing of the sanitizer: every symbol the file names is wrapped.
  set(tsan_absl ${CMAKE_CURRENT_LIST_DIR}/tsan_absl.cc)
  file(STRINGS ${tsan_absl} symbols REGEX "^GW_[A-Z]+\\(_Z")
  foreach(symbol ${symbols})
    string(REGEX REPLACE "^GW_[A-Z]+\\(([A-Za-z0-9_]+).*" "\\1" symbol "${symbol}")
    target_link_options(gangway_options INTERFACE -Wl,--wrap=${symbol})
  endforeach()
  add_library(gangway_tsan_absl OBJECT ${tsan_absl})
  target_compile_options(gangway_tsan_absl PRIVATE -fsanitize=thread -g1)
  target_link_libraries(gangway_options INTERFACE $<TARGET_OBJECTS:gangway_tsan_absl>)
endif()
find_program(GANGWAY_MOLD mold)
if(GANGWAY_MOLD)
  target_link_options(gangway_options INTERFACE -fuse-ld=mold)
endif()

# What executables allocate with (decision 16); sanitizers bring an allocator of their own.
add_library(gangway_allocator INTERFACE)
if(NOT GANGWAY_SANITIZE)
  find_library(GANGWAY_JEMALLOC libjemalloc.a REQUIRED)
  target_compile_definitions(gangway_allocator INTERFACE GANGWAY_JEMALLOC)
  target_link_libraries(gangway_allocator INTERFACE ${GANGWAY_JEMALLOC} Threads::Threads ${CMAKE_DL_LIBS} m)
endif()

# The compiler column: values and functions, no thread, no clock (shared/design.md).
set(GANGWAY_UNTHREADED_LIBRARIES
  tensor mesh mesh_proto hlo eval stablehlo bytecode rules propagate passes cost partition compile explain)

# gangway_library(NAME [DEPS target...] [EXCLUDE file...])
#   Every *.cc of the folder except tests becomes library gangway_NAME; every *_test.cc goes into the program NAME_test,
#   whose cases ctest lists one by one.
function(gangway_library name)
  cmake_parse_arguments(ARG "" "" "DEPS;EXCLUDE;TEST_DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|main)\\.cc$")
  foreach(file ${ARG_EXCLUDE})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  if(sources)
    add_library(gangway_${name} STATIC ${sources})
    target_link_libraries(gangway_${name} PUBLIC gangway_options ${ARG_DEPS})
    if(GANGWAY_SANITIZE MATCHES thread AND name IN_LIST GANGWAY_UNTHREADED_LIBRARIES)
      set_target_properties(gangway_${name} PROPERTIES GANGWAY_UNTHREADED ON)
    endif()
  else()
    add_library(gangway_${name} INTERFACE)
    target_link_libraries(gangway_${name} INTERFACE gangway_options ${ARG_DEPS})
  endif()
  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE gangway_${name} ${ARG_TEST_DEPS} GTest::gmock GTest::gtest_main)
    gtest_discover_tests(${name}_test TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTIES TIMEOUT 300)
  endif()
endfunction()

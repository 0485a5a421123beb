# `redspine_options` carries the flags that every target of ours is compiled with.
add_library(redspine_options INTERFACE)
target_include_directories(redspine_options INTERFACE ${PROJECT_SOURCE_DIR})
# A switch over an enumeration lists every enumerator and has no default, so that a new one does not
# compile before each of them says what becomes of it. Flags of the C++ compiler; nvcc gets those that make sense for its host half in cmake/cuda.cmake.
target_compile_options(redspine_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wconversion;-Werror=switch>)
# An expression is rounded as it is written, by every compiler and for every processor. Where a
# multiply-add is to be one operation, the code says so.
target_compile_options(redspine_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
target_link_libraries(redspine_options INTERFACE fmt::fmt Threads::Threads)
# The instruction set, for a target whose property REDSPINE_INSTRUCTION_SET names no other.
if(REDSPINE_PORTABLE)
  set(instruction_set x86-64-v3)
  # The loader then says what an older processor lacks, where the program would die of an illegal
  # instruction.
  target_link_options(redspine_options INTERFACE -Wl,-z,x86-64-v3)
else()
  set(instruction_set native)
endif()
set(own_set $<TARGET_PROPERTY:REDSPINE_INSTRUCTION_SET>)
target_compile_options(redspine_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-march=$<IF:$<BOOL:${own_set}>,${own_set},${instruction_set}>>)
if(REDSPINE_SANITIZE)
  target_compile_options(redspine_options INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -O1)
  target_link_options(redspine_options INTERFACE -fsanitize=address,undefined)
endif()
if(REDSPINE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "REDSPINE_FUZZ needs clang++, not ${CMAKE_CXX_COMPILER_ID}")
  endif()
  target_compile_options(redspine_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# redspine_library(NAME SOURCES ... LINK ...): one static library a folder.
function(redspine_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(redspine_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(redspine_${name}
    PUBLIC redspine_options ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()

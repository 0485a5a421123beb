# Third parties, each as an imported target. docs/decisions.md says where each may be used.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(MPI REQUIRED COMPONENTS CXX)
target_compile_definitions(MPI::MPI_CXX INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(Boost REQUIRED COMPONENTS program_options)

find_package(ZLIB REQUIRED)

find_path(ZSTD_INCLUDE zstd.h REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)
add_library(zstd INTERFACE)
target_include_directories(zstd SYSTEM INTERFACE ${ZSTD_INCLUDE})
target_link_libraries(zstd INTERFACE ${ZSTD_LIBRARY})

# libarchive's static library, with what its readers of tar, zip, xz and bzip2 need. The shared one
# brings libxml2 and 30 MB of ICU into every process, for formats that are not read here.
find_path(ARCHIVE_INCLUDE archive.h REQUIRED)
find_library(ARCHIVE_LIBRARY libarchive.a REQUIRED)
find_library(NETTLE_LIBRARY nettle REQUIRED)
find_package(LibLZMA REQUIRED)
find_package(BZip2 REQUIRED)
add_library(archive INTERFACE)
target_include_directories(archive SYSTEM INTERFACE ${ARCHIVE_INCLUDE})
target_link_libraries(archive INTERFACE
  ${ARCHIVE_LIBRARY} ${NETTLE_LIBRARY} LibLZMA::LibLZMA BZip2::BZip2 zstd ZLIB::ZLIB)

find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
add_library(xxhash INTERFACE)
target_include_directories(xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE})
target_link_libraries(xxhash INTERFACE ${XXHASH_LIBRARY})

find_path(PCRE2_INCLUDE pcre2.h REQUIRED)
find_library(PCRE2_LIBRARY pcre2-8 REQUIRED)
add_library(pcre2 INTERFACE)
target_include_directories(pcre2 SYSTEM INTERFACE ${PCRE2_INCLUDE})
target_link_libraries(pcre2 INTERFACE ${PCRE2_LIBRARY})

# OpenBLAS is the yardstick of `redspine bench`, which opens it (openblas_opened: headers and where it
# lies); the stand-in of cuBLASLt in the tests is linked with it. In its OpenMP variant it shares our
# thread pool. Debian keeps the variants in folders of their own and lets `alternatives` choose at run
# time, so the folder is also put into the RPATH.
find_library(OPENBLAS_LIBRARY openblas REQUIRED
  PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp NO_DEFAULT_PATH)
find_path(OPENBLAS_INCLUDE cblas-openblas.h REQUIRED)
get_filename_component(OPENBLAS_FOLDER ${OPENBLAS_LIBRARY} DIRECTORY)
add_library(openblas_opened INTERFACE)
target_include_directories(openblas_opened SYSTEM INTERFACE ${OPENBLAS_INCLUDE})
target_link_libraries(openblas_opened INTERFACE ${CMAKE_DL_LIBS})
target_link_options(openblas_opened INTERFACE -Wl,-rpath,${OPENBLAS_FOLDER})
add_library(openblas INTERFACE)
target_link_libraries(openblas INTERFACE openblas_opened ${OPENBLAS_LIBRARY})


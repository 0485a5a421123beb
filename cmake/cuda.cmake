# CUDA, cuBLASLt, cuDNN and NCCL: looked for and reported. REDSPINE_CUDA_FOUND and
# REDSPINE_NCCL_FOUND say which backends are built; sources hold no condition.
set(REDSPINE_CUDA AUTO CACHE STRING "CUDA backend: AUTO or OFF")
set(REDSPINE_CUDA_FOUND OFF)
set(REDSPINE_CUDNN_FOUND OFF)
set(REDSPINE_NCCL_FOUND OFF)

if(NOT REDSPINE_CUDA STREQUAL OFF)
  find_package(CUDAToolkit 13 QUIET)
  if(CUDAToolkit_FOUND AND EXISTS "${CUDAToolkit_NVCC_EXECUTABLE}" AND TARGET CUDA::cublasLt AND TARGET CUDA::cudart_static)
    set(REDSPINE_CUDA_FOUND ON)
  endif()
endif()

if(REDSPINE_CUDA_FOUND)
  # Machine code for A100, H100/H200 and B200; the last also as PTX, for what comes after.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100)
  endif()
  set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}")
  # The runtime is linked; other libraries are opened when the program runs
  # (tensor/loaded_library.h), first from where they were found.
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  list(APPEND CMAKE_BUILD_RPATH ${CUDAToolkit_LIBRARY_DIR})
  enable_language(CUDA)
  # CMake 3.25 does not know yet how nvcc is told of C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)

  # -Wconversion and -Wshadow would judge the host code that nvcc generates; they see these files
  # when the tests compile them for the host. Machine code for three architectures, in two programs
  # of a bundle, takes a fifth of the space where it is compressed.
  add_library(redspine_cuda_options INTERFACE)
  target_compile_options(redspine_cuda_options INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;--compress-mode=size;-Xcompiler=-Wall,-Wextra,-Werror=switch>)
  target_link_libraries(redspine_cuda_options INTERFACE CUDA::cudart_static ${CMAKE_DL_LIBS})

  # Needed here are cuDNN's headers and those of its frontend, which cmake/fetch_cudnn_frontend.sh
  # brings to the build folder.
  find_path(CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_path(CUDNN_FRONTEND_INCLUDE cudnn_frontend.h
    HINTS ${CUDAToolkit_INCLUDE_DIRS} ${PROJECT_BINARY_DIR}/cudnn_frontend/include)
  if(CUDNN_INCLUDE AND CUDNN_FRONTEND_INCLUDE)
    set(REDSPINE_CUDNN_FOUND ON)
    add_library(cudnn INTERFACE)
    target_include_directories(cudnn SYSTEM INTERFACE ${CUDNN_INCLUDE} ${CUDNN_FRONTEND_INCLUDE})
    target_compile_definitions(cudnn INTERFACE NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING)
    target_link_libraries(cudnn INTERFACE ${CMAKE_DL_LIBS})
  endif()

  find_path(NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(NCCL_INCLUDE)
    set(REDSPINE_NCCL_FOUND ON)
    add_library(nccl INTERFACE)
    target_include_directories(nccl SYSTEM INTERFACE ${NCCL_INCLUDE})
    target_link_libraries(nccl INTERFACE CUDA::cudart_static)
  endif()
endif()
message(STATUS "CUDA backend: ${REDSPINE_CUDA_FOUND} (${CUDAToolkit_VERSION}), \
cuDNN: ${REDSPINE_CUDNN_FOUND}, NCCL: ${REDSPINE_NCCL_FOUND}")

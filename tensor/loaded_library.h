// A library that is opened by the first call of one of its functions, so that programs start, train
// on CPUs and say what is missing on machines without it. NVIDIA's functions that are used are
// defined by us (cuda/cublas_lt.cpp, parallel/nccl/nccl.cpp) and pass their arguments on; OpenBLAS,
// the yardstick of the benchmarks, is called in cpu/blas_library.cpp alone. Local.
#pragma once

#include <string>

namespace redspine {

class LoadedLibrary {
 public:
  /// Opens `name` ("libnccl.so.2"), which remains open. ConfigError of `key`, to which the values
  /// `without` are legal without the library, where that fails.
  LoadedLibrary(const std::string& name, const std::string& key, const std::string& without);

  /// The address of a function; Error where there is none.
  void* find(const char* function) const;

 private:
  std::string name_;
  void* handle_;
};

/// The library's function `name`, of the type of `own`, given the arguments. `library` opens it.
template <auto own, class... Arguments>
auto call(const LoadedLibrary& (*library)(), const char* name, Arguments... arguments) {
  static const auto function = reinterpret_cast<decltype(own)>(library().find(name));
  return function(arguments...);
}

}  // namespace redspine

#include "tensor/loaded_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "tensor/error.h"

namespace redspine {

LoadedLibrary::LoadedLibrary(const std::string& name, const std::string& key,
                             const std::string& without)
    : name_(name), handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  throw ConfigError(key, fmt::format("needs a library that this machine lacks: {}; legal here: {}",
                                     dlerror(), without));
}

void* LoadedLibrary::find(const char* function) const {
  void* address = dlsym(handle_, function);
  if (address == nullptr) throw Error(fmt::format("{} has no function {}", name_, function));
  return address;
}

}  // namespace redspine

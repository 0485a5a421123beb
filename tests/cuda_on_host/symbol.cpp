#include "tests/cuda_on_host/symbol.h"

#include <cxxabi.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

namespace on_host {
namespace {

// Where the program itself was loaded: the first object that the loader lists.
std::uintptr_t load_address() {
  std::uintptr_t address = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<std::uintptr_t*>(result) = info->dlpi_addr;
        return 1;
      },
      &address);
  return address;
}

template <class T>
T read(const std::vector<char>& file, std::size_t offset) {
  T value{};
  if (offset + sizeof(T) <= file.size()) std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  std::string result = text == nullptr ? name : text.get();
  for (const char* noise : {"void ", "redspine::", "(anonymous namespace)::"}) {
    for (std::size_t at = result.find(noise); at != std::string::npos; at = result.find(noise)) {
      result.erase(at, std::strlen(noise));
    }
  }
  // The parameters are the last pair of parentheses; within them there may be others.
  int depth = 0;
  for (std::size_t i = result.size(); i-- > 0;) {
    if (result[i] == ')') ++depth;
    if (result[i] == '(') --depth;
    if (depth == 0) return result[i] == '(' ? result.substr(0, i) : result;
  }
  return result;
}

}  // namespace

std::string symbol_name(const void* function) {
  std::ifstream stream("/proc/self/exe", std::ios::binary);
  const std::vector<char> file(std::istreambuf_iterator<char>(stream), {});
  const auto address = reinterpret_cast<std::uintptr_t>(function) - load_address();
  const auto header = read<Elf64_Ehdr>(file, 0);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_SYMTAB) continue;
    const auto names =
        read<Elf64_Shdr>(file, header.e_shoff + section.sh_link * sizeof(Elf64_Shdr));
    for (std::size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read<Elf64_Sym>(file, section.sh_offset + at);
      if (symbol.st_value == address && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) {
        return demangled(file.data() + names.sh_offset + symbol.st_name);
      }
    }
  }
  return fmt::format("{}", function);
}

}  // namespace on_host

// Compressed files and archives made by hand, not by the library that reads them.
#pragma once

#include <string>
#include <vector>

namespace redspine {

std::string gzip(const std::string& text);
std::string zstd(const std::string& text);
std::string xz(const std::string& text);
std::string bzip2(const std::string& text);

struct ArchiveMember {
  std::string name;
  std::string text;
  char tar_type = '0';  // a file; '1', '2' links; '5' a folder
};

/// A header and the text, both of whole blocks, a member.
std::string tar_member(const ArchiveMember& member);
std::string tar(const std::vector<ArchiveMember>& members);

/// Members are stored as they are.
std::string zip(const std::vector<ArchiveMember>& members);

}  // namespace redspine

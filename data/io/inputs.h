// Expands the inputs of a command (names, folders and globs) to files, before any is opened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/io/own_files.h"

namespace redspine {

struct FoundInputs {
  std::vector<std::string> files;     // input by input
  std::vector<std::string> left_out;  // of folders and globs: the command's own files
};

/// An input is a file or a pipe; "-", the standard input; a folder, for all files in it and its
/// folders, in byte order of their paths, without hidden ones; or, where no such file exists, a
/// glob, for what it matches in byte order. Links are followed, to folders too. ConfigError with
/// all inputs that mean nothing, and all that a folder has and cannot be read: links that lead
/// nowhere or in a circle, pipes, devices.
FoundInputs find_inputs(const std::vector<std::string>& inputs, const OwnFiles& own);

/// Bytes of all these files together; -1 where it cannot be known before they are read.
std::int64_t total_size(const std::vector<std::string>& paths);

/// What `pattern` matches as a glob of the shell, in byte order, whatever the user's locale.
/// ConfigError under `key` where a folder that it leads into cannot be listed.
std::vector<std::string> match_glob(const std::string& pattern, const std::string& key);

}  // namespace redspine

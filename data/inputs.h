// Which files the inputs of a command mean: names, folders and globs, before any file is opened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace redspine {

/// The files of all inputs, input by input. An input is a file or a pipe; "-", the standard input;
/// a folder, for all files in it and its folders, in byte order of their paths, without hidden
/// ones; or, where no such file exists, a glob, for what it matches in byte order. ConfigError
/// with all inputs that mean nothing.
std::vector<std::string> find_inputs(const std::vector<std::string>& inputs);

/// Bytes of all these files together; -1 where it cannot be known before they are read.
std::int64_t total_size(const std::vector<std::string>& paths);

/// What `pattern` matches as a glob of the shell, in byte order, whatever the user's locale.
/// ConfigError under `key` where a folder that it leads into cannot be listed.
std::vector<std::string> match_glob(const std::string& pattern, const std::string& key);

}  // namespace redspine

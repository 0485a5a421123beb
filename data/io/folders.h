// Folders and small files, with the care that checkpoints need: each failure names the path and
// the system's reason, and what has to survive a power cut is synced. Local.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redspine {

/// mkdir; the parent exists. Throws Error, also where `path` exists.
void make_folder(const std::string& path);
/// Throws Error.
void rename_path(const std::string& from, const std::string& to);
/// Makes the names in `path` durable.
void sync_folder(const std::string& path);
/// Makes the next reading of a file one from the medium, where the system lets go of what it
/// remembers of it. Advice: it cannot fail.
void forget_file(const std::string& path);
/// Names in a folder, sorted; none where there is no such folder.
std::vector<std::string> names_in(const std::string& path);
/// Deletes a folder of plain files: those files first. Throws Error.
void remove_folder(const std::string& path);

/// What the system says against `path` as a directory; empty where it is one.
std::string directory_problem(const std::string& path);
/// ConfigError where `path` is no directory, with what the system says.
void check_is_directory(const std::string& path);

/// Writes a new file and syncs it. Throws Error.
void write_text(const std::string& path, std::string_view text);
/// The same, but `path` is at any time either the old file or the new one.
void replace_text(const std::string& path, std::string_view text);
/// The text of a file of at most `max_bytes`. ConfigError for one that is missing or longer.
std::string read_text(const std::string& path, std::int64_t max_bytes = std::int64_t{1} << 30);

}  // namespace redspine

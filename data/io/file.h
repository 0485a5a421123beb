// One open file: owns the descriptor, and turns a failed call into an error that names the path.
//
// Move-only, local to a rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tensor/error.h"

namespace redspine {

/// The process may open no more files: no other one could be opened either.
class TooManyFiles : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

enum class FileLock {
  taken,
  held_elsewhere,  // by another process, or by this one through another File
  not_supported,   // by the file system, so it is unknown
};

class File {
 public:
  /// Opens a regular file to be read. ConfigError under `key` if it is missing, unreadable or no
  /// regular file: the name came from the user. TooManyFiles where it could be opened by itself.
  static File open(const std::string& path, const std::string& key);
  /// Opens anything that can be read from its beginning to its end: a regular file, a pipe, a
  /// terminal; "-" is the standard input. ConfigError if it is missing, unreadable or a folder.
  static File open_stream(const std::string& path);
  /// Opens a folder, to lock it.
  static File open_folder(const std::string& path);
  /// Creates an empty file to be written, and read back, in place of one that may be there.
  static File create(const std::string& path);
  /// The same, but leaves what is there to truncate(), which may wait for a lock.
  static File open_to_replace(const std::string& path);
  /// Opens a file to be written at its end, and read back; makes it where there is none.
  static File append(const std::string& path);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  std::int64_t size() const;  // bytes, as it is now
  /// Fills `bytes` from `offset` on as far as the file reaches; returns how far. Safe from several
  /// threads.
  std::size_t read_up_to_end(std::int64_t offset, std::span<std::byte> bytes) const;
  /// The same; an Error if the file ends before.
  void read_at(std::int64_t offset, std::span<std::byte> bytes) const;
  /// Reads what follows in the file, as much as is there and fits; 0 at its end.
  std::size_t read(std::span<std::byte> bytes);
  void write(std::span<const std::byte> bytes);
  /// Writes over what is at `offset`; where write() goes on stays the same.
  void write_at(std::int64_t offset, std::span<const std::byte> bytes);
  /// Returns once everything written is on the medium.
  void sync();
  /// Removes all of its bytes.
  void truncate();
  /// Keeps others that ask for it from the file until it is closed, under whatever name. Returns at
  /// once.
  FileLock try_lock();
  /// Whether path() still names this file: it may have been renamed, removed or replaced since.
  bool has_its_name() const;
  /// Nothing but path() may be called afterwards.
  void close();

 private:
  File(std::string path, int descriptor);

  std::string path_;
  int descriptor_;  // -1: moved from
};

/// What there is at a path, links followed.
enum class PathKind { nothing, folder, other };

/// ConfigError under `key` where the system does not say: no permission, a circle of links, a name
/// that is too long.
PathKind look_at(const std::string& path, const std::string& key);
/// Whether there is anything; likewise.
bool exists(const std::string& path, const std::string& key);

/// Before the work whose result `path` is to hold, a file or a folder: makes the folder that it is
/// to lie in. ConfigError under `key` where that, or writing there, is not possible.
void prepare_output(const std::string& path, const std::string& key);

/// Renames, in place of a file that may be there; an Error names both.
void rename_file(const std::string& from, const std::string& to);

/// Deletes a file where there is one; an Error names it.
void remove_file(const std::string& path);

/// Makes the names in the folder of `path` (created, renamed, removed ones) durable.
void sync_folder_of(const std::string& path);

}  // namespace redspine

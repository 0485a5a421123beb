// What a file is by its first bytes, whatever its name: text, something that is unpacked on the way
// to the text, or something that only looks like bytes of text and has to be converted by the user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace redspine {

enum class ContentKind { text, gzip, zstd, xz, bzip2, tar, zip };

/// Bytes of a file that kind_of() looks at; of a shorter file, all of them.
inline constexpr std::size_t kNumKindBytes = 512;

/// ConfigError that names `name` and says how to convert it, for a kind that is no text.
ContentKind kind_of(const std::string& name, std::span<const std::byte> first);

bool is_compressed(ContentKind kind);
/// As messages call it.
const char* name_of(ContentKind kind);
/// The message about a compressed stream that cannot be read beyond byte `offset` of it.
std::string stream_failure(const std::string& name, ContentKind kind, std::int64_t offset,
                           const std::string& reason);

}  // namespace redspine

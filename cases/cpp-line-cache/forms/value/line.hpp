// A line of the cache, and how one is made. The forms differ in this file alone.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

namespace lines {

inline constexpr std::size_t kLineBytes = std::size_t{8} << 20;

/// A stretch of an object, as it was fetched. Never changes once it is shared.
struct Line {
    std::size_t filled = 0;
    std::array<std::byte, kLineBytes> bytes;
};

inline std::shared_ptr<Line> new_line() {
    // Value-initialisation: without a constructor of its own, the whole line is set to zero first.
    return std::make_shared<Line>();
}

} // namespace lines

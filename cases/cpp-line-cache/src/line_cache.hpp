// A read-through cache of lines over an object store.
//
// A line is fetched once however many readers want it, and is shared with a reader only when all
// of it is there. Readers hold what they read: a line that is evicted lives until the last of them
// lets go. Not for writing.
#pragma once

#include "line.hpp"
#include "object_store.hpp"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

namespace lines {

/// What the cache did so far.
struct Statistics {
    std::uint64_t hits = 0;       ///< The line was there.
    std::uint64_t joined = 0;     ///< Another reader was fetching it.
    std::uint64_t fetched = 0;    ///< It came from the store.
    std::uint64_t failed = 0;     ///< The store gave an error.
    std::uint64_t evicted = 0;    ///< Lines let go for others.
    std::uint64_t bytes_read = 0; ///< From the store.
};

class LineCache {
  public:
    /// Keeps at most `limit` bytes of lines, and always the one that was fetched last.
    LineCache(const ObjectStore &store, std::size_t limit) : store_(store), limit_(limit) {}
    LineCache(const LineCache &) = delete;
    LineCache &operator=(const LineCache &) = delete;

    /// How many lines an object has.
    static std::uint64_t lines_of(const Object &object) {
        return object.size / kLineBytes + (object.size % kLineBytes != 0 ? 1 : 0);
    }

    /// A whole line of an object. Throws a StoreError if the store does not give it.
    std::shared_ptr<const Line> line(const Object &object, std::uint64_t index);

    /// Copies the object's bytes from `offset` on, from as many lines as they lie in.
    void read(const Object &object, std::uint64_t offset, std::span<std::byte> into);

    Statistics statistics() const;

  private:
    using Key = std::pair<std::string, std::uint64_t>;

    /// A line that is there (`line`), being fetched (neither), or could not be had (`error`).
    struct Entry {
        std::shared_ptr<const Line> line;
        std::exception_ptr error;
        std::list<Key>::iterator use;
    };

    std::shared_ptr<const Line> fetch(const Object &object, std::uint64_t index) const;
    void evict();

    const ObjectStore &store_;
    const std::size_t limit_;
    mutable std::mutex mutex_;
    std::condition_variable arrived_;
    std::map<Key, std::shared_ptr<Entry>> entries_;
    std::list<Key> used_; ///< Lines that are there, the latest first.
    Statistics statistics_;
};

} // namespace lines

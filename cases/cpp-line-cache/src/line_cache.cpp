#include "line_cache.hpp"

#include <algorithm>
#include <cstring>

namespace lines {

std::shared_ptr<const Line> LineCache::line(const Object &object, std::uint64_t index) {
    const Key key{object.key, index};
    std::unique_lock lock(mutex_);
    const auto [found, is_new] = entries_.try_emplace(key);
    if (!is_new) {
        const auto entry = found->second;
        if (entry->line) {
            ++statistics_.hits;
            used_.splice(used_.begin(), used_, entry->use);
            return entry->line;
        }
        ++statistics_.joined;
        arrived_.wait(lock, [&] { return entry->line || entry->error; });
        if (entry->error) {
            std::rethrow_exception(entry->error);
        }
        return entry->line;
    }
    const auto entry = found->second = std::make_shared<Entry>();
    lock.unlock();

    std::shared_ptr<const Line> line;
    std::exception_ptr error;
    try {
        line = fetch(object, index);
    } catch (...) {
        error = std::current_exception();
    }

    lock.lock();
    arrived_.notify_all();
    if (error) {
        // Those who wait get the error; whoever asks next tries again.
        ++statistics_.failed;
        entry->error = error;
        entries_.erase(key);
        std::rethrow_exception(error);
    }
    ++statistics_.fetched;
    statistics_.bytes_read += line->filled;
    used_.push_front(key);
    entry->use = used_.begin();
    entry->line = line;
    evict();
    return line;
}

std::shared_ptr<const Line> LineCache::fetch(const Object &object, std::uint64_t index) const {
    const std::uint64_t offset = index * kLineBytes;
    if (offset >= object.size) {
        throw StoreError(Failure::wrong_size, object.key + ": no line " + std::to_string(index));
    }
    const auto line = new_line();
    const auto size = std::min<std::uint64_t>(kLineBytes, object.size - offset);
    store_.read(object, offset, std::span(line->bytes).first(size));
    line->filled = size;
    return line;
}

void LineCache::evict() {
    while (used_.size() > 1 && used_.size() * sizeof(Line) > limit_) {
        entries_.erase(used_.back());
        used_.pop_back();
        ++statistics_.evicted;
    }
}

void LineCache::read(const Object &object, std::uint64_t offset, std::span<std::byte> into) {
    if (into.size() > object.size || offset > object.size - into.size()) {
        throw StoreError(Failure::wrong_size, object.key + ": a read past its end");
    }
    while (!into.empty()) {
        const auto held = line(object, offset / kLineBytes);
        const std::size_t from = offset % kLineBytes;
        const std::size_t size = std::min(into.size(), held->filled - from);
        std::memcpy(into.data(), held->bytes.data() + from, size);
        into = into.subspan(size);
        offset += size;
    }
}

Statistics LineCache::statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
}

} // namespace lines

// A table of columns in object storage: a list of its pieces, and typed views of them.
//
// The list is the object `TABLE/columns`, one piece a line: `GROUP COLUMN BYTES`. A piece holds the
// values of one column of one group of rows, little-endian, one after the other.
#pragma once

#include "line_cache.hpp"

#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace lines {

/// A group of rows: its columns by name.
using Group = std::map<std::string, Object>;

struct Table {
    std::string name;
    std::vector<Group> groups;
};

inline Table open_table(const ObjectStore &store, LineCache &cache, const std::string &name) {
    const Object list = store.look_up(name + "/columns");
    std::string text(list.size, '\0');
    cache.read(list, 0, std::as_writable_bytes(std::span(text)));
    Table table{name, {}};
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::size_t group = 0;
        std::string column;
        Object piece;
        if (!(words >> group >> column >> piece.size) || group > table.groups.size()) {
            throw std::runtime_error(list.key + ": cannot read `" + line + "`");
        }
        piece.key = name + "/" + std::to_string(group) + "/" + column;
        table.groups.resize(std::max(table.groups.size(), group + 1));
        table.groups[group].emplace(column, piece);
    }
    return table;
}

/// Walks through the values of a piece, holding one line of it at a time.
template <typename Value> class Column {
    static_assert(kLineBytes % sizeof(Value) == 0, "no value lies in two lines");

  public:
    Column(LineCache &cache, const Group &group, const std::string &name)
        : cache_(cache), piece_(group.at(name)) {}

    std::uint64_t size() const { return piece_.size / sizeof(Value); }

    Value operator[](std::uint64_t row) {
        const std::uint64_t at = row * sizeof(Value);
        if (!line_ || at / kLineBytes != index_) {
            index_ = at / kLineBytes;
            line_ = cache_.line(piece_, index_);
        }
        Value value;
        std::memcpy(&value, line_->bytes.data() + at % kLineBytes, sizeof value);
        return value;
    }

  private:
    LineCache &cache_;
    const Object &piece_;
    std::uint64_t index_ = 0;
    std::shared_ptr<const Line> line_;
};

} // namespace lines

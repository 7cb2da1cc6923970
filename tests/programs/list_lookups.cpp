// Lists that are searched for one value after the other. `known`: one list of numbers that grows. `names`: a table of texts.
// Near misses: `rows`: each list is searched once in each round. `few`: a list of twelve. `first`: most searches end at
// the first values. `lines`: each search goes on where the last one ended. `same`: whether all values are equal.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

static unsigned state = 1;
static unsigned next() { return (state = state * 1103515245 + 12345) >> 8; }

static size_t known(size_t count) {
    std::vector<unsigned> list;
    for (size_t i = 0; i < count; i++) {
        const unsigned number = next() % 20000;
        if (std::find(list.begin(), list.end(), number) == list.end()) { // the list to name
            list.push_back(number);
        }
    }
    return list.size();
}

struct Name {
    char text[28];
    int value;
};
static Name table[4000];

static int value_of(const char *name) {
    for (size_t i = 0; i < 4000; i++) {
        if (std::strcmp(table[i].text, name) == 0) { // the name to look for
            return table[i].value;
        }
    }
    return 0;
}

static size_t names(size_t count) {
    size_t sum = 0;
    for (int i = 0; i < 4000; i++) {
        std::snprintf(table[i].text, sizeof table[i].text, "name_%d", i);
        table[i].value = i;
    }
    for (size_t i = 0; i < count; i++) {
        char name[28];
        std::snprintf(name, sizeof name, "name_%u", next() % 4000);
        sum += value_of(name);
    }
    return sum;
}

static size_t rows(size_t rounds) {
    std::vector<std::vector<unsigned>> lists(20000);
    for (auto &list : lists) {
        for (int i = 0; i < 400; i++) {
            list.push_back(next());
        }
    }
    size_t found = 0;
    for (size_t i = 0; i < rounds; i++) {
        for (const auto &list : lists) {
            found += std::find(list.begin(), list.end(), i) != list.end();
        }
    }
    return found;
}

static size_t in_list(size_t count, unsigned length, unsigned first) {
    std::vector<unsigned> list;
    for (unsigned i = 0; i < length; i++) {
        list.push_back(i * 7);
    }
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += std::find(list.begin(), list.end(), next() % first * 7) - list.begin();
    }
    return found;
}

static size_t lines(size_t rounds) {
    std::vector<char32_t> text(60000);
    for (auto &letter : text) {
        letter = next() % 60 ? U'a' : U'\n';
    }
    size_t count = 0;
    for (size_t i = 0; i < rounds; i++) {
        for (auto at = text.begin(); (at = std::find(at, text.end(), U'\n')) != text.end(); ++at) {
            count++;
        }
    }
    return count;
}

static size_t same(size_t rounds) {
    const std::vector<unsigned> list(4000, 7);
    size_t count = 0;
    for (size_t i = 0; i < rounds; i++) {
        const unsigned value = list[i % 4000];
        count += std::all_of(list.begin(), list.end(), [&](unsigned other) { return other == value; });
    }
    return count;
}

int main(int argc, char **argv) {
    const std::string what = argc > 1 ? argv[1] : "known";
    const size_t n = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 100000;
    std::printf("%zu\n", what == "known"   ? known(n)
                         : what == "names" ? names(n)
                         : what == "rows"  ? rows(n)
                         : what == "few"   ? in_list(n, 12, 12)
                         : what == "first" ? in_list(n, 4000, 8)
                         : what == "lines" ? lines(n)
                                           : same(n));
}

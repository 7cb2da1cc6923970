// Searches in a text. `markers`: each marker is searched from the start of the text, over all those that were replaced
// before. `words`: different words are searched in the same text. `blocks`: each search is over other text in one buffer.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

static std::string text_of(size_t items) {
    std::string text;
    for (size_t i = 0; i < items; i++) {
        text += "some words of item " + std::to_string(i) + ", and more of them; ";
    }
    return text;
}

static size_t markers(size_t items) {
    std::string text = text_of(items);
    size_t replaced = 0;
    for (;;) {
        size_t at = text.find(';'); // the search to name
        if (at == std::string::npos) {
            return replaced;
        }
        text[at] = ',';
        replaced++;
    }
}

static size_t words(size_t searches) {
    std::string text = text_of(20000);
    size_t found = 0;
    for (size_t i = 0; i < searches; i++) {
        found += std::memchr(text.data(), 1 + static_cast<int>(i % 8), text.size()) != nullptr;
    }
    return found;
}

static size_t blocks(size_t rounds) {
    static char buffer[1 << 18];
    size_t lines = 0;
    for (size_t i = 0; i < rounds; i++) {
        std::memset(buffer, 'a' + static_cast<int>(i % 26), sizeof buffer);
        for (size_t at = i % 97 + 1; at < sizeof buffer; at += 97 + i % 13) {
            buffer[at] = '\n';
        }
        const char *end = buffer + sizeof buffer;
        for (const char *at = buffer; (at = static_cast<const char *>(std::memchr(at, '\n', end - at))); at++) {
            lines++;
        }
    }
    return lines;
}

int main(int argc, char **argv) {
    const std::string what = argc > 1 ? argv[1] : "markers";
    const size_t n = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 30000;
    std::printf("%zu\n", what == "markers" ? markers(n) : what == "words" ? words(n) : blocks(n));
}

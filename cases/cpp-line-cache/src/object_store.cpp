#include "object_store.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <curl/curl.h>
#include <limits>
#include <optional>
#include <string_view>

namespace lines {

namespace {

constexpr long kConnectMilliseconds = 2000;
constexpr long kStalledSeconds = 10;
constexpr long kBufferBytes = 512 * 1024;
constexpr std::size_t kToldBytes = 1024;
/// SHA-256 of an empty body: S3 wants it named among the signed headers.
constexpr const char *kEmptyBody =
    "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// `Content-Range: bytes 0-99/1000`
struct Range {
    std::uint64_t first = 0, last = 0, total = 0;
};

std::optional<std::uint64_t> number(std::string_view &text, char until) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const auto taken = static_cast<std::size_t>(end - text.data());
    if (error != std::errc{} || (until != '\0' && (taken >= text.size() || *end != until))) {
        return std::nullopt;
    }
    text.remove_prefix(std::min(taken + 1, text.size()));
    return value;
}

std::optional<Range> content_range(std::string_view header) {
    constexpr std::string_view wanted = "content-range: bytes ";
    if (header.size() < wanted.size() ||
        !std::ranges::equal(header.substr(0, wanted.size()), wanted, {},
                            [](unsigned char c) { return std::tolower(c); })) {
        return std::nullopt;
    }
    header.remove_prefix(wanted.size());
    const auto first = number(header, '-'), last = number(header, '/'),
               total = number(header, '\0');
    if (!first || !last || !total) {
        return std::nullopt;
    }
    return Range{*first, *last, *total};
}

/// One answer as it comes in.
struct Answer {
    CURL *handle = nullptr;
    std::span<std::byte> into;
    std::size_t received = 0;
    bool too_long = false;
    std::string told; ///< The first part of an error's text.
    std::optional<Range> range;

    long status() const {
        long status = 0;
        curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
        return status;
    }
};

std::size_t on_body(char *bytes, std::size_t one, std::size_t count, void *user) {
    auto &answer = *static_cast<Answer *>(user);
    const std::size_t size = one * count;
    if (answer.status() != 206) {
        answer.told.append(bytes, std::min(size, kToldBytes - answer.told.size()));
        // A store that answers with all of the object is not read to its end.
        return answer.status() == 200 ? CURL_WRITEFUNC_ERROR : size;
    }
    if (size > answer.into.size() - answer.received) {
        answer.too_long = true;
        return CURL_WRITEFUNC_ERROR;
    }
    std::memcpy(answer.into.data() + answer.received, bytes, size);
    answer.received += size;
    return size;
}

std::size_t on_header(char *bytes, std::size_t one, std::size_t count, void *user) {
    if (const auto range = content_range({bytes, one * count})) {
        static_cast<Answer *>(user)->range = range;
    }
    return one * count;
}

Failure of_status(long status) {
    switch (status) {
    case 401:
    case 403:
        return Failure::forbidden;
    case 404:
        return Failure::missing;
    case 416:
        return Failure::wrong_size;
    default:
        return Failure::refused;
    }
}

Failure of_transfer(CURLcode code, bool begun) {
    if (code == CURLE_PARTIAL_FILE || begun) {
        return Failure::truncated;
    }
    return Failure::unreachable;
}

/// The `<Code>` of an error's text, if it has one.
std::string told_code(const std::string &told) {
    const auto from = told.find("<Code>"), to = told.find("</Code>");
    return from < to && to != std::string::npos ? " " + told.substr(from + 6, to - from - 6) : "";
}

} // namespace

const char *name(Failure failure) {
    switch (failure) {
    case Failure::unreachable:
        return "unreachable";
    case Failure::truncated:
        return "truncated";
    case Failure::missing:
        return "missing";
    case Failure::forbidden:
        return "forbidden";
    case Failure::wrong_size:
        return "wrong size";
    case Failure::refused:
        return "refused";
    }
    return "unknown";
}

class ObjectStore::Connection {
  public:
    explicit Connection(const Account &account)
        : handle(curl_easy_init()), headers(curl_slist_append(nullptr, kEmptyBody)) {
        if (handle == nullptr || headers == nullptr) {
            close();
            throw std::bad_alloc();
        }
        const std::string signing = "aws:amz:" + account.region + ":s3";
        const std::string user = account.key_id + ":" + account.secret;
        curl_easy_setopt(handle, CURLOPT_AWS_SIGV4, signing.c_str());
        curl_easy_setopt(handle, CURLOPT_USERPWD, user.c_str());
        curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(handle, CURLOPT_PROXY, "");
        curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, kBufferBytes);
        curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, kConnectMilliseconds);
        curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, kStalledSeconds);
        curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
    }
    ~Connection() { close(); }
    Connection(const Connection &) = delete;
    Connection &operator=(const Connection &) = delete;

    CURLcode perform(const std::string &address, Answer &answer) {
        answer.handle = handle;
        curl_easy_setopt(handle, CURLOPT_URL, address.c_str());
        curl_easy_setopt(handle, CURLOPT_WRITEDATA, &answer);
        curl_easy_setopt(handle, CURLOPT_HEADERDATA, &answer);
        return curl_easy_perform(handle);
    }

    CURL *handle;

  private:
    void close() {
        curl_slist_free_all(headers);
        curl_easy_cleanup(handle);
    }
    curl_slist *headers;
};

ObjectStore::ObjectStore(Account account) : account_(std::move(account)) {
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (ready != CURLE_OK) {
        throw std::runtime_error(curl_easy_strerror(ready));
    }
}

ObjectStore::~ObjectStore() = default;

std::unique_ptr<ObjectStore::Connection> ObjectStore::take() const {
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            auto connection = std::move(idle_.back());
            idle_.pop_back();
            return connection;
        }
    }
    return std::make_unique<Connection>(account_);
}

void ObjectStore::give_back(std::unique_ptr<Connection> connection) const {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(connection));
}

/// The object's address; bytes that an address cannot hold are escaped.
std::string ObjectStore::address(const std::string &key) const {
    constexpr std::string_view plain = "-._~/";
    constexpr const char *digits = "0123456789ABCDEF";
    std::string address = account_.endpoint + "/" + account_.bucket + "/";
    for (const char c : key) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) != 0 || plain.find(c) != std::string_view::npos) {
            address += c;
        } else {
            address += {'%', digits[byte >> 4], digits[byte & 15]};
        }
    }
    return address;
}

Object ObjectStore::look_up(const std::string &key) const {
    auto connection = take();
    Answer answer;
    curl_easy_setopt(connection->handle, CURLOPT_RANGE, nullptr);
    curl_easy_setopt(connection->handle, CURLOPT_NOBODY, 1L);
    const CURLcode code = connection->perform(address(key), answer);
    if (code != CURLE_OK) {
        throw StoreError(of_transfer(code, false), key + ": " + curl_easy_strerror(code));
    }
    if (const long status = answer.status(); status != 200) {
        throw StoreError(of_status(status), key + ": status " + std::to_string(status));
    }
    curl_off_t size = -1;
    curl_easy_getinfo(connection->handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size);
    if (size < 0) {
        throw StoreError(Failure::wrong_size, key + ": the store does not say how large it is");
    }
    give_back(std::move(connection));
    return {key, static_cast<std::uint64_t>(size)};
}

void ObjectStore::read(const Object &object, std::uint64_t offset,
                       std::span<std::byte> into) const {
    if (into.size() > object.size || offset > object.size - into.size()) {
        throw StoreError(Failure::wrong_size, object.key + ": a read past its end");
    }
    if (into.empty()) {
        return;
    }
    const std::uint64_t last = offset + into.size() - 1;
    const std::string range = std::to_string(offset) + "-" + std::to_string(last);
    auto connection = take();
    Answer answer;
    answer.into = into;
    curl_easy_setopt(connection->handle, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(connection->handle, CURLOPT_RANGE, range.c_str());
    const CURLcode code = connection->perform(address(object.key), answer);
    const long status = answer.status();
    const auto fail = [&](Failure why, const std::string &what) {
        throw StoreError(why, object.key + " bytes " + range + ": " + what);
    };
    if (answer.too_long) {
        fail(Failure::wrong_size, "more came than was asked for");
    }
    if (status == 200) {
        fail(Failure::refused, "the store knows no ranges");
    }
    if (code != CURLE_OK) {
        fail(of_transfer(code, status != 0), curl_easy_strerror(code));
    }
    if (status != 206) {
        fail(of_status(status), "status " + std::to_string(status) + told_code(answer.told));
    }
    if (!answer.range || answer.range->first != offset || answer.range->last != last) {
        fail(Failure::wrong_size, "another range came than was asked for");
    }
    if (answer.range->total != object.size) {
        fail(Failure::wrong_size, "it has " + std::to_string(answer.range->total) +
                                      " bytes in the store, not " + std::to_string(object.size));
    }
    if (answer.received != into.size()) {
        fail(Failure::truncated, "only " + std::to_string(answer.received) + " bytes came");
    }
    // Only a connection whose answer was read to its end is good for another one.
    give_back(std::move(connection));
}

} // namespace lines

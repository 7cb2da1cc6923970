// Reading from S3-compatible object storage: signed range requests, and nothing but whole answers.
// Not for keeping what was read: that is the cache's part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace lines {

/// Why a read gave nothing.
enum class Failure {
    unreachable, ///< No server, no answer in time, or the connection broke before the first byte.
    truncated,   ///< The answer ended early.
    missing,     ///< No such object.
    forbidden,   ///< The store knows no such key, or allows it too little.
    wrong_size,  ///< The object, or the part that came, has another size than it should.
    refused,     ///< Any other answer.
};

const char *name(Failure failure);

class StoreError : public std::runtime_error {
  public:
    StoreError(Failure why, const std::string &what) : std::runtime_error(what), failure(why) {}
    Failure failure;
};

/// Where the store is and who asks.
struct Account {
    std::string endpoint; ///< `http://host:port`
    std::string bucket;
    std::string region = "us-east-1";
    std::string key_id;
    std::string secret;
};

/// An object whose size is known, as from a table's list of files.
struct Object {
    std::string key;
    std::uint64_t size = 0;
};

/// Safe to share between threads: each request has a connection to itself, kept for the next one.
class ObjectStore {
  public:
    explicit ObjectStore(Account account);
    ~ObjectStore();
    ObjectStore(const ObjectStore &) = delete;
    ObjectStore &operator=(const ObjectStore &) = delete;

    /// Asks the store how large an object is.
    Object look_up(const std::string &key) const;

    /// Fills `into` with the object's bytes from `offset` on. On an exception `into` holds
    /// anything.
    void read(const Object &object, std::uint64_t offset, std::span<std::byte> into) const;

  private:
    class Connection;
    std::unique_ptr<Connection> take() const;
    void give_back(std::unique_ptr<Connection> connection) const;
    std::string address(const std::string &key) const;

    Account account_;
    mutable std::mutex mutex_;
    mutable std::vector<std::unique_ptr<Connection>> idle_;
};

} // namespace lines

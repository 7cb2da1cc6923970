// Binary trees in C++ from a std::pmr arena that is released after each tree.
#include <memory>
#include <memory_resource>

#include "forest.hpp"

struct Node {
    const Node* left;
    const Node* right;

    long count() const { return left ? 1 + left->count() + right->count() : 1; }
};

static const Node* build(std::pmr::memory_resource& from, int depth) {
    void* place = from.allocate(sizeof(Node), alignof(Node));
    if (depth == 0) return new (place) Node{nullptr, nullptr};
    const Node* left = build(from, depth - 1);
    return new (place) Node{left, build(from, depth - 1)};
}

int main(int argc, char** argv) {
    return run(
        argc, argv,
        [](int depth) {
            std::pmr::monotonic_buffer_resource arena;
            return build(arena, depth)->count();
        },
        [](int depth) {
            auto arena = std::make_unique<std::pmr::monotonic_buffer_resource>();
            const Node* root = build(*arena, depth);
            return [arena = std::move(arena), root] { return root->count(); };
        });
}

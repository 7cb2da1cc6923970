// Binary trees in C++, each node from `new` and back to `delete`.
#include <memory>

#include "forest.hpp"

struct Node {
    std::unique_ptr<Node> left, right;

    long count() const { return left ? 1 + left->count() + right->count() : 1; }
};

static std::unique_ptr<Node> build(int depth) {
    auto node = std::make_unique<Node>();
    if (depth > 0) {
        node->left = build(depth - 1);
        node->right = build(depth - 1);
    }
    return node;
}

int main(int argc, char** argv) {
    return run(
        argc, argv, [](int depth) { return build(depth)->count(); },
        [](int depth) { return [root = build(depth)] { return root->count(); }; });
}

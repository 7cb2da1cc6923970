// Adds up the areas of shapes of five kinds, which stand in random order. With the argument `sorted` they stand by kind.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

struct Shape {
    explicit Shape(long side) : side(side) {}
    virtual ~Shape() = default;
    virtual long area(long scale) const = 0;
    long side;
};

template <long FACTOR> struct Kind : Shape {
    using Shape::Shape;
    long area(long scale) const override { return side * FACTOR + scale; } // or this one
};

using Shapes = std::vector<std::unique_ptr<Shape>>;

static Shapes make(bool sorted)
{
    std::vector<int> kinds(4000);
    unsigned long random = 88172645463325252u;
    for (int &kind : kinds) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        kind = static_cast<int>(random >> 20) % 5;
    }
    if (sorted)
        std::sort(kinds.begin(), kinds.end());
    Shapes shapes;
    for (int kind : kinds)
        switch (kind) {
        case 0: shapes.push_back(std::make_unique<Kind<3>>(kind)); break;
        case 1: shapes.push_back(std::make_unique<Kind<5>>(kind)); break;
        case 2: shapes.push_back(std::make_unique<Kind<9>>(kind)); break;
        case 3: shapes.push_back(std::make_unique<Kind<4>>(kind)); break;
        default: shapes.push_back(std::make_unique<Kind<7>>(kind));
        }
    return shapes;
}

int main(int argc, char **argv)
{
    const bool sorted = argc > 1 && !std::strcmp(argv[1], "sorted");
    const Shapes shapes = make(sorted);
    long sum = 0;
    for (long round = 0; round < (sorted ? 60000 : 20000); round++)
        for (const auto &shape : shapes)
            sum += shape->area(round); // the line to name
    std::printf("%ld\n", sum);
}

// Sums over shapes; the function takes each shared pointer by value.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

struct Shape {
    int sides, area;
};

__attribute__((noinline)) static int weight(std::shared_ptr<Shape> shape) // the line to name
{
    return shape->sides * 3 + shape->area;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? std::atoi(argv[1]) : 30000;
    std::vector<std::shared_ptr<Shape>> shapes;
    for (int i = 0; i < 500; i++)
        shapes.push_back(std::make_shared<Shape>(Shape{i % 7, i}));
    long sum = 0;
    std::thread([] {}).join(); // from here on counts are atomic
    for (int i = 0; i < rounds; i++)
        for (auto &shape : shapes)
            sum += weight(shape); // or this one
    std::printf("%ld\n", sum);
}

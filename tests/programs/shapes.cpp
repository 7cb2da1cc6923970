// Calls a small method once per cell, by a virtual call that could be a direct one.
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Material {
    virtual ~Material() = default;
    virtual float scatter(float in, int depth) const = 0;
};

struct Fog : Material {
    float scatter(float in, int depth) const override { return in * 0.97f + depth * 0.01f; }
};

struct Glass : Material {
    float scatter(float in, int) const override { return in * 0.99f; }
};

static float trace(const Material &material, std::vector<float> &cells)
{
    float sum = 0;
    for (size_t i = 0; i < cells.size(); i++) {
        cells[i] = material.scatter(cells[i], int(i & 15)); // the line to name
        sum += cells[i];
    }
    return sum;
}

int main(int argc, char **argv)
{
    std::vector<float> cells(20000, 0.5f);
    const Fog fog;
    const Glass glass;
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 5000;
    float sum = 0;
    for (int i = 0; i < rounds; i++)
        sum += trace(argc > 2 ? static_cast<const Material &>(glass) : fog, cells);
    std::printf("%.3e\n", sum);
}

package hashing

import (
	"encoding/hex"
	"hash"
	"testing"

	"example.org/blake2s/blake2s"
	"example.org/blake2s/internal/compress"
	"example.org/blake2s/stages/arrays"
	"example.org/blake2s/stages/cleared"
	"example.org/blake2s/stages/sliced"
)

type digest interface {
	Write(p []byte) (int, error)
	Sum(b []byte) []byte
}

var _ digest = hash.Hash(nil)

var stages = []struct {
	name string
	hash func(data, sum []byte) []byte
}{
	{"0-called", func(data, sum []byte) []byte { return once(sliced.New(sliced.Called), data, sum) }},
	{"1-inlined", func(data, sum []byte) []byte { return once(sliced.New(sliced.Inlined), data, sum) }},
	{"2-unchecked", func(data, sum []byte) []byte { return once(sliced.New(sliced.Unchecked), data, sum) }},
	{"3-unrolled", func(data, sum []byte) []byte { return once(sliced.New(sliced.Unrolled), data, sum) }},
	{"4-arrays", func(data, sum []byte) []byte { return once(arrays.New(), data, sum) }},
	{"5-cleared", func(data, sum []byte) []byte { return once(cleared.New(), data, sum) }},
	{"6-stack", direct},
	{"7-simd", direct},
}

func once(d digest, data, sum []byte) []byte {
	d.Write(data)
	return d.Sum(sum)
}

func direct(data, sum []byte) []byte {
	d := blake2s.New256()
	d.Write(data)
	return d.Sum(sum)
}

func TestAllStagesHashTheSame(t *testing.T) {
	for _, size := range []int{0, 1, 63, 64, 65, 128, 1000} {
		expected := hex.EncodeToString(chain(direct, size, 3))
		for _, stage := range stages {
			if got := hex.EncodeToString(chain(stage.hash, size, 3)); got != expected {
				t.Errorf("%s, %d bytes: %s, not %s", stage.name, size, got, expected)
			}
		}
	}
}

// Benchmark compares the stages: `go test -bench . -count 10 | benchstat -col /stage -`.
func Benchmark(b *testing.B) {
	for _, stage := range stages {
		for _, size := range []string{"8", "1024", "8192"} {
			b.Run("stage="+stage.name+"/size="+size, func(b *testing.B) {
				if !compress.Use(stage.name == "7-simd") {
					b.Skip("built without GOEXPERIMENT=simd, or a machine without AVX-512")
				}
				data := make([]byte, map[string]int{"8": 8, "1024": 1024, "8192": 8192}[size])
				sum := make([]byte, 0, blake2s.Size)
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for range b.N {
					sum = stage.hash(data, sum[:0])
				}
			})
		}
	}
}

// Command simd hashes with package blake2s and vectors, whether or not they are faster here.
package main

import (
	"fmt"
	"os"

	hashing "example.org/blake2s"
	"example.org/blake2s/blake2s"
	"example.org/blake2s/internal/compress"
)

func main() {
	if !compress.Use(true) {
		fmt.Fprintln(os.Stderr, "simd: built without GOEXPERIMENT=simd, or a machine without AVX-512; the pure form is taken")
	}
	hashing.Main(func(data, sum []byte) []byte {
		d := blake2s.New256()
		d.Write(data)
		return d.Sum(sum)
	})
}

// Command stack hashes with package blake2s, whose Digest stays on the stack. Built with
// GOEXPERIMENT=simd, it takes vectors.
package main

import (
	hashing "example.org/blake2s"
	"example.org/blake2s/blake2s"
)

func main() {
	hashing.Main(func(data, sum []byte) []byte {
		d := blake2s.New256()
		d.Write(data)
		return d.Sum(sum)
	})
}

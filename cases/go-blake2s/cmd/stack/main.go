// Command stack hashes with package blake2s in its pure form. Its Digest stays on the stack.
package main

import (
	hashing "example.org/blake2s"
	"example.org/blake2s/blake2s"
	"example.org/blake2s/internal/compress"
)

func main() {
	compress.Use(false)
	hashing.Main(func(data, sum []byte) []byte {
		d := blake2s.New256()
		d.Write(data)
		return d.Sum(sum)
	})
}

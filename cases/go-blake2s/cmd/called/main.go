// Command called hashes with package sliced and its compression function Called.
package main

import (
	hashing "example.org/blake2s"
	"example.org/blake2s/stages/sliced"
)

func main() {
	hashing.Main(func(data, sum []byte) []byte {
		d := sliced.New(sliced.Called)
		d.Write(data)
		return d.Sum(sum)
	})
}

// Command unchecked hashes with package sliced and its compression function Unchecked.
package main

import (
	hashing "example.org/blake2s"
	"example.org/blake2s/stages/sliced"
)

func main() {
	hashing.Main(func(data, sum []byte) []byte {
		d := sliced.New(sliced.Unchecked)
		d.Write(data)
		return d.Sum(sum)
	})
}

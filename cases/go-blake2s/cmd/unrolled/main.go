// Command unrolled hashes with package sliced and its compression function Unrolled.
package main

import (
	hashing "example.org/blake2s"
	"example.org/blake2s/stages/sliced"
)

func main() {
	hashing.Main(func(data, sum []byte) []byte {
		d := sliced.New(sliced.Unrolled)
		d.Write(data)
		return d.Sum(sum)
	})
}

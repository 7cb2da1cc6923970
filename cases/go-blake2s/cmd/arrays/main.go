// Command arrays hashes with package arrays.
package main

import (
	hashing "example.org/blake2s"
	"example.org/blake2s/stages/arrays"
)

func main() {
	hashing.Main(func(data, sum []byte) []byte {
		d := arrays.New()
		d.Write(data)
		return d.Sum(sum)
	})
}

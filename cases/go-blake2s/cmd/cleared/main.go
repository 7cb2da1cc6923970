// Command cleared hashes with package cleared.
package main

import (
	hashing "example.org/blake2s"
	"example.org/blake2s/stages/cleared"
)

func main() {
	hashing.Main(func(data, sum []byte) []byte {
		d := cleared.New()
		d.Write(data)
		return d.Sum(sum)
	})
}

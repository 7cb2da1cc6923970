// Package hashing is what the programs of all stages do: hash pieces of one size, many times.
package hashing

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
)

// Main hashes as many pieces of as many bytes as the arguments say, and prints the hash of the last.
// Each piece begins with the hash of the one before, so that none can be left out.
func Main(hash func(data, sum []byte) []byte) {
	size, count := 8, 1000
	for i, argument := range []*int{&size, &count} {
		if len(os.Args) > i+1 {
			n, err := strconv.Atoi(os.Args[i+1])
			if err != nil || n < 0 || n > 1<<30 {
				fmt.Fprintf(os.Stderr, "usage: %s [BYTES [COUNT]]\n", os.Args[0])
				os.Exit(2)
			}
			*argument = n
		}
	}
	fmt.Println(hex.EncodeToString(chain(hash, size, count)))
}

func chain(hash func(data, sum []byte) []byte, size, count int) []byte {
	data := make([]byte, size)
	for i := 0; i+8 <= size; i += 8 {
		binary.LittleEndian.PutUint64(data[i:], uint64(i))
	}
	sum := make([]byte, 0, 32)
	for range count {
		sum = hash(data, sum[:0])
		copy(data, sum)
	}
	return sum
}

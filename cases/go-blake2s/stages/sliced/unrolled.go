package sliced

import "example.org/blake2s/internal/compress"

// Unrolled has no loop and no index that is not a constant: words are in registers, or at known
// places on the stack.
func Unrolled(h []uint32, block []byte, counted uint64, last bool) {
	var flags compress.Flags
	if last {
		flags.Block = ^uint32(0)
	}
	compress.Pure((*[8]uint32)(h), (*[compress.Block]byte)(block), counted, flags)
}

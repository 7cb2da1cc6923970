// Package blake2s computes BLAKE2s hashes: any size from 1 to 32 bytes, keyed or not, with salt,
// personalisation, and all parameters of tree hashing.
//
// [Sum256] hashes what is in memory. [New256] and [New] hash what arrives in pieces; a [Digest] is
// a [hash.Hash]. Neither allocates if the Digest does not outlive the function that made it.
//
// It follows RFC 7693 and, for what that leaves out, the BLAKE2 paper of 2013. On x86-64 machines
// with AVX-512, a program built with GOEXPERIMENT=simd uses it.
package blake2s

import (
	"encoding/binary"
	"errors"
	"hash"

	"example.org/blake2s/internal/compress"
)

const (
	// Size is the most bytes that a hash can have, and the usual.
	Size = 32
	// BlockSize is how many bytes are compressed at a time.
	BlockSize = compress.Block
	// MaxKeySize is the most bytes that a key can have.
	MaxKeySize = 32
	// SaltSize is the most bytes that a salt can have.
	SaltSize = 8
	// PersonSize is the most bytes that a personalisation can have.
	PersonSize = 8
)

// What can be wrong with a [Config].
var (
	ErrSize      = errors.New("blake2s: the size of a hash is 1 to 32 bytes")
	ErrKey       = errors.New("blake2s: a key has at most 32 bytes")
	ErrSalt      = errors.New("blake2s: a salt has at most 8 bytes")
	ErrPerson    = errors.New("blake2s: a personalisation has at most 8 bytes")
	ErrDepth     = errors.New("blake2s: a tree has a depth of at least 1")
	ErrOffset    = errors.New("blake2s: a node's offset is below 2^48")
	ErrInnerSize = errors.New("blake2s: inner hashes have at most 32 bytes")
)

// A Config says which of the hashes of the family is computed. Its zero value is the usual one:
// 32 bytes, no key, not a tree.
type Config struct {
	// Size is the size of the hash in bytes, 1 to 32; 0 stands for 32.
	Size int
	// Key makes the hash a message authentication code. At most 32 bytes.
	Key []byte
	// Salt, at most 8 bytes, is filled up with zeros.
	Salt []byte
	// Person tells one use of the hash from others. At most 8 bytes, filled up with zeros.
	Person []byte
	// Tree is nil unless a node of a hash tree is computed.
	Tree *Tree
}

// A Tree says which node of which hash tree is computed.
type Tree struct {
	// FanOut is how many children a node has; 0 is unlimited.
	FanOut uint8
	// Depth is how many levels the tree has; 255 is unlimited.
	Depth uint8
	// LeafSize is how many bytes of data a leaf has; 0 is unlimited.
	LeafSize uint32
	// NodeOffset is the place of the node among those of its level, below 2^48.
	NodeOffset uint64
	// NodeDepth is the level of the node; leaves are at 0.
	NodeDepth uint8
	// InnerSize is the size of the hashes that inner nodes are computed from.
	InnerSize uint8
	// LastNode says that the node is the last of its level.
	LastNode bool
}

// A Digest computes one hash. It may be copied to continue from one state in two ways. The zero
// value is of no use.
type Digest struct {
	h [8]uint32
	// How many bytes h knows of, the key's block among them.
	counted uint64
	// What h does not know of yet. The last block is compressed differently, so that a full
	// buffer waits for what comes next.
	buf      [BlockSize]byte
	filled   int
	size     int
	lastNode bool
	// What Reset goes back to.
	start [8]uint32
	key   [MaxKeySize]byte
	keyed bool
}

var _ hash.Hash = (*Digest)(nil)

// New returns a Digest for c; nil is the same as a zero Config.
func New(c *Config) (*Digest, error) {
	if c == nil {
		return New256(), nil
	}
	block, err := c.block()
	if err != nil {
		return nil, err
	}
	d := &Digest{size: int(block[0]), keyed: len(c.Key) > 0}
	d.lastNode = c.Tree != nil && c.Tree.LastNode
	for i := range d.start {
		d.start[i] = compress.IV[i] ^ binary.LittleEndian.Uint32(block[4*i:])
	}
	copy(d.key[:], c.Key)
	d.Reset()
	return d, nil
}

// New256 returns a Digest for the usual hash: 32 bytes, no key.
func New256() *Digest {
	// Small enough to be inlined, so that the Digest can stay on its caller's stack.
	return &Digest{h: usual, start: usual, size: Size}
}

// usual is how the usual hash starts.
var usual = [8]uint32{
	// Size 32, no key, fan-out 1, depth 1.
	compress.IV0 ^ 0x01010020, compress.IV1, compress.IV2, compress.IV3,
	compress.IV4, compress.IV5, compress.IV6, compress.IV7,
}

// block is the parameter block.
func (c *Config) block() (p [32]byte, err error) {
	size := c.Size
	if size == 0 {
		size = Size
	}
	tree := Tree{FanOut: 1, Depth: 1}
	if c.Tree != nil {
		tree = *c.Tree
	}
	switch {
	case size < 1 || size > Size:
		return p, ErrSize
	case len(c.Key) > MaxKeySize:
		return p, ErrKey
	case len(c.Salt) > SaltSize:
		return p, ErrSalt
	case len(c.Person) > PersonSize:
		return p, ErrPerson
	case tree.Depth == 0:
		return p, ErrDepth
	case tree.NodeOffset >= 1<<48:
		return p, ErrOffset
	case tree.InnerSize > Size:
		return p, ErrInnerSize
	}
	p[0], p[1], p[2], p[3] = byte(size), byte(len(c.Key)), tree.FanOut, tree.Depth
	binary.LittleEndian.PutUint32(p[4:], tree.LeafSize)
	binary.LittleEndian.PutUint64(p[8:], tree.NodeOffset)
	p[14], p[15] = tree.NodeDepth, tree.InnerSize
	copy(p[16:24], c.Salt)
	copy(p[24:32], c.Person)
	return p, nil
}

// Reset forgets what was written.
func (d *Digest) Reset() {
	d.h, d.counted, d.filled = d.start, 0, 0
	if d.keyed {
		// The key is the first block.
		clear(d.buf[copy(d.buf[:], d.key[:]):])
		d.filled = BlockSize
	}
}

// Size is how many bytes the hash has.
func (d *Digest) Size() int { return d.size }

// BlockSize is how many bytes are compressed at a time.
func (d *Digest) BlockSize() int { return BlockSize }

// Write adds p to what is hashed. It takes all of it, and never fails.
func (d *Digest) Write(p []byte) (int, error) {
	written := len(p)
	if d.filled > 0 {
		n := copy(d.buf[d.filled:], p)
		d.filled += n
		p = p[n:]
		if len(p) == 0 {
			return written, nil
		}
		compress.Blocks(&d.h, d.buf[:], &d.counted)
		d.filled = 0
	}
	if len(p) > BlockSize {
		whole := (len(p) - 1) &^ (BlockSize - 1)
		compress.Blocks(&d.h, p[:whole], &d.counted)
		p = p[whole:]
	}
	d.filled = copy(d.buf[:], p)
	return written, nil
}

// Sum appends the hash of what was written to b. More may be written afterwards.
func (d *Digest) Sum(b []byte) []byte {
	sum := d.sum()
	return append(b, sum[:d.size]...)
}

func (d *Digest) sum() (sum [Size]byte) {
	h := d.h
	compress.Last(&h, d.buf[:d.filled], d.counted, d.lastNode)
	for i, word := range h {
		binary.LittleEndian.PutUint32(sum[4*i:], word)
	}
	return sum
}

// Sum256 is the usual hash of data: 32 bytes, no key.
func Sum256(data []byte) [Size]byte {
	h, counted := usual, uint64(0)
	if len(data) > BlockSize {
		whole := (len(data) - 1) &^ (BlockSize - 1)
		compress.Blocks(&h, data[:whole], &counted)
		data = data[whole:]
	}
	compress.Last(&h, data, counted, false)
	var sum [Size]byte
	for i, word := range h {
		binary.LittleEndian.PutUint32(sum[4*i:], word)
	}
	return sum
}

// Package arena hands out values of one type from large blocks, and names them by numbers instead
// of pointers.
//
// A garbage collector looks at every pointer that is alive, and an allocator is asked for every
// object. A Handle is neither a pointer nor an object of its own: a tree of a million nodes that
// refer to each other by handles is a few hundred blocks without pointers, which the collector does
// not look into at all. The price is that memory is given back by hand: all at once with Reset or
// Release, or one by one with Free, and that a handle is good only for the arena it came from.
//
// Blocks never move, so a pointer from At stays good until the value is freed.
package arena

// perBlock is how many values a block holds: large enough that blocks are few, small enough that a
// small arena stays small.
const (
	shift    = 12
	perBlock = 1 << shift
)

// A Handle names a value in the Arena that made it. The zero Handle names nothing. With the build
// tag arenacheck, a handle that was freed is recognised (see check.go).
type Handle[T any] uint32

type block[T any] [perBlock]T

// An Arena is a source of values of type T. The zero Arena is ready to use. It must not be copied
// after first use, and not be used by several goroutines at once.
type Arena[T any] struct {
	blocks []*block[T]
	// Values from next on were not handed out since the last Reset.
	next uint32
	// free holds the indexes of freed values; they are used before those from next on.
	free  []uint32
	check generations
}

// New returns a Handle to a value that is zero. It panics if there are more values than handles:
// 4 294 963 200, or 16 773 120 with the build tag arenacheck.
func (a *Arena[T]) New() Handle[T] {
	var zero T
	return a.Put(zero)
}

// Put returns a Handle to a copy of value. It panics when New does.
func (a *Arena[T]) Put(value T) Handle[T] {
	if last := len(a.free) - 1; last >= 0 {
		index := a.free[last]
		a.free = a.free[:last]
		a.blocks[index>>shift][index%perBlock] = value
		return Handle[T](a.check.handle(index + 1))
	}
	if int(a.next>>shift) == len(a.blocks) {
		a.grow()
	}
	return a.Add(value)
}

// Add is Put where Reserve has made room, and panics where there is none. It does not use freed
// values. There is nothing in it to call, and so the compiler puts it where it is used.
func (a *Arena[T]) Add(value T) Handle[T] {
	a.blocks[a.next>>shift][a.next%perBlock] = value
	a.next++
	return Handle[T](a.check.handle(a.next))
}

// Reserve makes room for n values more. It panics when New does.
func (a *Arena[T]) Reserve(n int) {
	for a.Cap()-int(a.next) < n {
		a.grow()
	}
}

func (a *Arena[T]) grow() {
	if a.Cap() > mostValues-perBlock {
		panic("arena: too many values")
	}
	a.blocks = append(a.blocks, new(block[T]))
}

// At returns the value that h names. It panics if h names nothing in this arena; a freed handle is
// caught only with the build tag arenacheck.
func (a *Arena[T]) At(h Handle[T]) *T {
	index := a.check.index(uint32(h))
	return &a.blocks[index>>shift][index%perBlock]
}

// Free gives a value back; a later New may hand it out again. The value must not be used any more.
func (a *Arena[T]) Free(h Handle[T]) {
	index := a.check.index(uint32(h))
	a.check.retire(index)
	a.free = append(a.free, index)
}

// Reset gives all values back at once and keeps the memory for new ones.
func (a *Arena[T]) Reset() {
	a.check.retireAll(a.next)
	a.next, a.free = 0, a.free[:0]
}

// Release gives all values back, and the memory too.
func (a *Arena[T]) Release() {
	a.Reset()
	a.blocks, a.free = nil, nil
}

// Len is the number of values in use.
func (a *Arena[T]) Len() int { return int(a.next) - len(a.free) }

// Cap is the number of values that fit without asking for more memory.
func (a *Arena[T]) Cap() int { return len(a.blocks) * perBlock }

//go:build arenacheck

package arena

import "testing"

func mustPanic(t *testing.T, what string, use func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Fatalf("%s went unnoticed", what)
		}
	}()
	use()
}

func TestUseAfterFreeIsCaught(t *testing.T) {
	var arena Arena[int]
	h := arena.New()
	arena.Free(h)
	mustPanic(t, "a use after Free", func() { arena.At(h) })
	mustPanic(t, "a second Free", func() { arena.Free(h) })
	again := arena.New()
	mustPanic(t, "a stale handle to a value that is used again", func() { *arena.At(h) = 1 })
	*arena.At(again) = 2
	arena.Reset()
	mustPanic(t, "a use after Reset", func() { arena.At(again) })
	mustPanic(t, "the handle that names nothing", func() { arena.At(0) })
}

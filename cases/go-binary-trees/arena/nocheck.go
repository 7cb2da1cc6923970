//go:build !arenacheck

package arena

// mostValues leaves the number 0 for the handle that names nothing.
const mostValues = 1<<32 - 1

// generations checks nothing: a handle is the index plus one.
type generations struct{}

func (generations) handle(behind uint32) uint32 { return behind }
func (generations) index(handle uint32) uint32  { return handle - 1 }
func (generations) retire(uint32)               {}
func (generations) retireAll(uint32)            {}

package filestore

import (
	"os"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

const (
	mostEra = 1<<12 - 1 // see store.Ledger.Era

	// replacedAfter is how much later than the ledger that it holds a file was changed
	// if somebody put it there: to write one takes less, but for a disk that hangs.
	replacedAfter = 10 * time.Second
)

// of returns l as f's: a file that somebody put back, from a backup, is of another
// era than the one that it says. Nobody may have to say so who remembers more.
func (s *Store) of(f file, c content) store.Ledger {
	l := c.Ledger
	l.Era = c.Era
	if l.Gen != 0 && s.replaced(f.path, time.UnixMicro(l.At)) {
		l.Era = l.Era%mostEra + 1
	}
	return l
}

// replacedFile reports that a file was changed after a ledger was written to it, as
// its ctime says, which no program can set. A clock that says that this is still to
// come cannot be compared. A new name for the file, or new permissions, make it look so,
// too: that costs a second's wait.
func (s *Store) replacedFile(path string, at time.Time) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	changed, known := changeTime(info)
	return known && changed.Sub(at) > replacedAfter && !changed.After(s.now().Add(time.Second))
}

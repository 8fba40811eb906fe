package filestore

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime is when the file was last changed in any way.
func changeTime(info fs.FileInfo) (at time.Time, known bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(st.Ctim.Unix()), true
}

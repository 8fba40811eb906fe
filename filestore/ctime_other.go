//go:build !linux

package filestore

import (
	"io/fs"
	"time"
)

// changeTime is not known on this system.
func changeTime(fs.FileInfo) (at time.Time, known bool) { return time.Time{}, false }

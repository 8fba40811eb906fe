//go:build unix

package redisstore

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// startSteppable starts a server whose clock a test can set: it runs with libfaketime, which
// reads from a file by how much the clock is wrong. With libc's malloc, as jemalloc asks
// for the time before libfaketime is ready.
func startSteppable(t *testing.T) (s *server, step func(time.Duration)) {
	t.Helper()
	libs, _ := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	clock := filepath.Join(t.TempDir(), "clock")
	s = &server{env: []string{"FAKETIME_TIMESTAMP_FILE=" + clock, "FAKETIME_NO_CACHE=1", "DONT_FAKE_MONOTONIC=1"}}
	step = func(d time.Duration) {
		t.Helper()
		if err := os.WriteFile(clock+".new", fmt.Appendf(nil, "%+f\n", d.Seconds()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(clock+".new", clock); err != nil { // at once: the server reads it all the time
			t.Fatal(err)
		}
	}
	step(0)
	if len(libs) > 0 {
		s.env = append(s.env, "LD_PRELOAD="+libs[0]+":libc.so.6")
		probe := exec.Command(binary(t), "--version")
		probe.Env = append(os.Environ(), s.env...)
		if out, err := probe.CombinedOutput(); err == nil {
			return begin(t, s), step
		} else if os.Getenv("CI") == "true" {
			t.Fatalf("libfaketime: %v: %s", err, out)
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("libfaketime is not installed: apt-get install faketime")
	}
	t.Skip("SKIPPED: libfaketime is not installed or does not work with this redis-server; no clock was stepped")
	return nil, nil
}

// TestClockStepsUnderProcesses: the clock of the machine on which Redis runs steps, while processes use all
// of their rates. A step ahead lets a window of the clock itself end early, and one that is over by
// the new time: the limit once more, at most. Of a state that lasts, as one of 60 s does if the
// clock steps by 30 s, there may come what was under way. A step back lets nothing through.
func TestClockStepsUnderProcesses(t *testing.T) {
	const members, callers = 3, 2
	const log, logPer, calendar, calendarPer, bucket, rate, slow = 20, 2 * time.Second, 30, 5 * time.Second, 100, 10, 60
	for _, by := range []time.Duration{-time.Hour, -30 * time.Second, 30 * time.Second, time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel() // each waits for its rates most of the time
			s, step := startSteppable(t)
			apis := map[string]*api{"20/2s burst 20": startAPI(t), "30/5s align UTC": startAPI(t), "10/s bucket 100": startAPI(t), "60/m bucket 60": startAPI(t)}
			j := job{Redis: s.addr, Members: members, Callers: callers, Deadline: patience, Budgets: make(map[string]string)}
			for budget, a := range apis {
				j.Budgets[a.host] = budget
			}
			ws := processes(t, members, j)
			apis["10/s bucket 100"].await(t, bucket+2*rate)
			step(by)
			apis["10/s bucket 100"].await(t, 4*rate)
			apis["30/5s align UTC"].await(t, calendar)
			d := end(t, ws)
			if d.Failed > 0 {
				t.Errorf("%d requests failed", d.Failed)
			}
			for budget, a := range apis {
				at, size, n, way := a.seen(), 0, 0, 0
				slices.Sort(at)
				switch budget {
				case "20/2s burst 20":
					size, n = log, mostIn(at, logPer)
				case "30/5s align UTC": // the steps are multiples of the window, so it begins when it did
					size, n = calendar, mostOf(at, calendarPer)
				case "60/m bucket 60":
					size, n, way = slow, mostAbove(at, 1), members*callers
				default:
					size, n, way = bucket, mostAbove(at, rate), members*callers
				}
				most := size + way
				if by > 0 && (budget != "60/m bucket 60" || by > time.Minute) {
					most += size
				}
				if n > most && d.Stall < logPer/8 {
					t.Errorf("%s: %d, want at most %d", budget, n, most)
				}
				t.Logf("%s: %d beyond the limit", budget, max(0, n-size))
			}
		})
	}
}

// mostOf is how many there are at most in a window that begins at a multiple of per.
func mostOf(at []int64, per time.Duration) (most int) {
	in := make(map[int64]int)
	for _, t := range at {
		w := t / per.Microseconds()
		in[w]++
		most = max(most, in[w])
	}
	return most
}

// mostAbove is how large a bucket is at least that lets at, in order, through and is refilled at
// rate per second.
func mostAbove(at []int64, rate float64) int {
	level, most := 0.0, 0.0
	for i, t := range at {
		if i > 0 {
			level = max(0, level-rate*float64(t-at[i-1])/1e6)
		}
		level++
		most = max(most, level)
	}
	return int(most)
}

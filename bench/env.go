package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhttp/weir/bench/result"
)

// findRoot looks upwards for the root module.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module github.com/weirhttp/weir\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no folder above this one is weir's: run it from a clone")
		}
		dir = parent
	}
}

func machine() result.Machine {
	return result.Machine{CPU: cpu(), Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
		Date: time.Now().UTC().Format("2006-01-02 15:04 UTC"), Before: loadAverage(), Timer: timerLag()}
}

// cpu is the processor's name, as Linux tells it.
func cpu() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(b)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				return strings.TrimLeft(strings.TrimSpace(name), ": \t")
			}
		}
	}
	return "unknown"
}

// loadAverage over 1, 5 and 15 minutes, as Linux tells it.
func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(b)); err == nil && len(fields) >= 3 {
		return strings.Join(fields[:3], " ")
	}
	return "unknown"
}

// watchOthers returns what tells, later, which percentage of the processors
// other programs took meanwhile; nil where Linux does not tell.
func watchOthers() func() *float64 {
	busy, all := processorTime()
	own := ownTime()
	return func() *float64 {
		busy2, all2 := processorTime()
		if all2 <= all {
			return nil
		}
		share := max(0, 100*(busy2-busy-(ownTime()-own))/(all2-all))
		return &share
	}
}

// processorTime is for how long the processors have worked, interrupts left
// out, and how long that could have been, in ticks; zero if Linux does not tell.
func processorTime() (busy, all float64) {
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 {
		return 0, 0
	}
	for i, v := range ticks(fields[1:9]) { // user nice system idle iowait irq softirq steal
		if all += v; i < 3 || i == 7 {
			busy += v
		}
	}
	return busy, all
}

// ownTime is what of that this program took, and those that it ran and waited
// for.
func ownTime() (sum float64) {
	b, _ := os.ReadFile("/proc/self/stat")
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0
	}
	for _, v := range ticks(fields[11:15]) { // user and system, its own and its children's
		sum += v
	}
	return sum
}

func ticks(fields []string) []float64 {
	out := make([]float64, len(fields))
	for i, f := range fields {
		out[i], _ = strconv.ParseFloat(f, 64)
	}
	return out
}

// timerLag is how late timers of 2 ms are, in ms: median, 99th percentile.
func timerLag() [2]float64 {
	const n = 200
	lags := make([]float64, n)
	for i := range lags {
		begin := time.Now()
		time.Sleep(2 * time.Millisecond)
		lags[i] = (time.Since(begin) - 2*time.Millisecond).Seconds() * 1e3
	}
	slices.Sort(lags)
	return [2]float64{lags[n/2], lags[n*99/100]}
}

// versions are those of the modules that this program was built with.
func versions() map[string]string {
	out := make(map[string]string)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	for _, d := range info.Deps {
		out[d.Path] = d.Version
	}
	return out
}

// commit names the state of the clone, with a + if the library was changed
// since.
func commit(root string) string {
	b, err := exec.Command("git", "-C", root, "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(b))
	changed, err := exec.Command("git", "-C", root, "status", "--porcelain", "--", "*.go").Output()
	if err == nil && len(changed) > 0 {
		name += "+"
	}
	return name
}

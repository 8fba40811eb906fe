// Package histogram counts durations by length, in little memory.
//
// [Counts] are the durations of one host or route. As most hosts of a program are called
// seldom, Counts are made only when the first duration is counted, and each number has 32
// bits until one needs more. The buckets are fixed, see [Bounds], so that Counts can be added.
// Numbers that grow beyond 32 bits stay right, and a sum that grows beyond what a
// [time.Duration] can hold stays at that.
//
// There is no lock here: the owner of Counts calls one function at a time.
package histogram

import (
	"math"
	"time"
)

// bounds are the upper ends of the buckets without the last one, which has none. It is never
// written to. Latencies of APIs are between the first bound and ten seconds, and waits for
// budget may reach the last bound.
var bounds = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute,
}

// Buckets is the number of buckets.
const Buckets = len(bounds) + 1

// Bounds returns the upper ends of all buckets but the last, the smallest first. A duration
// that is equal to a bound is counted in the bucket which ends there.
func Bounds() [Buckets - 1]time.Duration { return bounds }

// Counts are how many durations there were, by length. The zero Counts have none.
type Counts struct {
	sum   time.Duration
	low   [Buckets]uint32
	carry *[Buckets]uint32 // the upper 32 bits of each number; nil: all are zero
}

// Add counts d in *c, and makes *c if it is nil. A negative d, as from a clock that was set
// back, counts as zero.
func Add(c **Counts, d time.Duration) {
	if *c == nil {
		*c = new(Counts)
	}
	d = max(0, d)
	i := 0
	for i < len(bounds) && d > bounds[i] { // most are short: a binary search takes longer
		i++
	}
	(*c).count(i, 1)
	(*c).spend(d)
}

// Merge adds o, which may be nil, to *c, and makes *c if it is nil.
func Merge(c **Counts, o *Counts) {
	if o == nil {
		return
	}
	if *c == nil {
		*c = new(Counts)
	}
	for i := range Buckets {
		(*c).count(i, uint64(o.In(i)))
	}
	(*c).spend(o.sum)
}

// In is how many durations are in bucket i, from 0.
func (c *Counts) In(i int) int64 {
	n := int64(c.low[i])
	if c.carry != nil {
		n += int64(c.carry[i]) << 32
	}
	return n
}

// Sum is the sum of all durations.
func (c *Counts) Sum() time.Duration { return c.sum }

func (c *Counts) count(i int, n uint64) {
	n += uint64(c.low[i])
	c.low[i] = uint32(n)
	if n >>= 32; n == 0 {
		return
	}
	if c.carry == nil {
		c.carry = new([Buckets]uint32)
	}
	c.carry[i] += uint32(n)
}

func (c *Counts) spend(d time.Duration) {
	if c.sum += d; c.sum < 0 {
		c.sum = math.MaxInt64
	}
}

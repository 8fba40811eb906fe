package throttle_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle"
	"pgregory.net/rapid"
)

func mustZone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// longest is the longest time that a rate may have.
const longest = 3650 * 24 * time.Hour

// sameBudget reports whether a and b mean the same: a place of the time zone database
// is known by its name.
func sameBudget(a, b throttle.Budget) bool {
	return a.InFlight == b.InFlight && a.Pool == b.Pool && slices.EqualFunc(a.Rates, b.Rates, func(x, y throttle.Rate) bool {
		here, there := x.Align, y.Align
		x.Align, y.Align = nil, nil
		return x == y && (here == nil) == (there == nil) && (here == nil || here.String() == there.String())
	})
}

func TestParseBudget(t *testing.T) {
	la := mustZone(t, "America/Los_Angeles")
	tests := []struct {
		text string
		want throttle.Budget
		back string // "": text
	}{
		{"5/s", throttle.Budget{Rates: []throttle.Rate{{Limit: 5, Per: time.Second}}}, ""},
		{" 5 / s ,100000/h burst 200", throttle.Budget{Rates: []throttle.Rate{{Limit: 5, Per: time.Second}, {Limit: 100000, Per: time.Hour, Burst: 200}}}, "5/s, 100000/h burst 200"},
		{"2/s bucket 40", throttle.Budget{Rates: []throttle.Rate{{Limit: 2, Per: time.Second, Bucket: 40}}}, ""},
		{"90000 tokens/m", throttle.Budget{Rates: []throttle.Rate{{Limit: 90000, Per: time.Minute, Unit: "tokens"}}}, ""},
		{"5 requests/2 days", throttle.Budget{Rates: []throttle.Rate{{Limit: 5, Per: 48 * time.Hour}}}, "5/2d"},
		{"1000/d align America/Los_Angeles", throttle.Budget{Rates: []throttle.Rate{{Limit: 1000, Per: 24 * time.Hour, Align: la}}}, ""},
		{"100/10s warmup 30s, 8 in flight, pool search", throttle.Budget{Rates: []throttle.Rate{{Limit: 100, Per: 10 * time.Second, WarmUp: 30 * time.Second}}, InFlight: 8, Pool: "search"}, ""},
		{"8 in flight", throttle.Budget{InFlight: 8}, ""},
		{"8 in/s", throttle.Budget{Rates: []throttle.Rate{{Limit: 8, Per: time.Second, Unit: "in"}}}, ""},
		{`1/1500ms warmup m, pool "a, b"`, throttle.Budget{Rates: []throttle.Rate{{Limit: 1, Per: 1500 * time.Millisecond, WarmUp: time.Minute}}, Pool: "a, b"}, `1/1500ms warmup 1m, pool "a, b"`},
		{"unlimited", throttle.Budget{}, ""},
		{"unlimited, pool x", throttle.Budget{Pool: "x"}, ""},
	}
	for _, test := range tests {
		got, err := throttle.ParseBudget(test.text)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if !sameBudget(got, test.want) {
			t.Errorf("%q: got %+v, want %+v", test.text, got, test.want)
		}
		back := test.back
		if back == "" {
			back = test.text
		}
		if got.String() != back {
			t.Errorf("%q: String is %q, want %q", test.text, got, back)
		}
	}
}

func TestParseBudgetErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", `at the end: expected a rate such as 5/s`},
		{"5", `at the end: expected a slash and a length of time, as in 5/s`},
		{"5/fortnight", `at "fortnight": expected a length of time: ms, s, m, h, d or w, or several as in 10s`},
		{"5/s, fast", `at "fast": expected a rate such as 5/s, 8 in flight, a pool with its name, or unlimited`},
		{"10rps", `at "rps": expected a slash and a length of time, as in 5/s, or a space and a unit`},
		{"5k/h", `at "k/h": expected a slash and a length of time`},
		{"1e3/s", `at "e3/s": expected a slash and a length of time`},
		{"90000tokens/m", `or a space and a unit, as in 5 tokens/s`},
		{"10 req/s", `at "10 req/s": Unit: "req" is not the unit of requests: leave the unit out to count requests`},
		{"10 Requests/s", `Unit: "Requests" is not the unit of requests`},
		{"10 request/s burst 2", `Unit: "request" is not the unit of requests`},
		{"5/s burst", `at the end: expected a burst of at least 1`},
		{"5/s burst 0", `at "0": expected a burst of at least 1`},
		{"5/s burst 9, 1/m", `at "5/s burst 9": Burst: 9 exceeds the limit of 5`},
		{"5/s burst 1 burst 2", `at "burst 2": expected burst once at most`},
		{"5/s bucket 4 burst 2", `Bucket: 4 and Burst: 2 are both set`},
		{"0/s", `Limit: 0 is less than 1`},
		{"5/0s", `Per: 0s is not positive`},
		{"5/s align Middle/Earth", `at "Middle/Earth": expected a place of the time zone database`},
		{"99999999999999999999/s", `at "99999999999999999999/s": expected a smaller number`},
		{"5/99999999999d", `expected a time of at most 10 years`},
		{"-5/s", `at "-5/s": expected a rate`},
		{"5/s 6/s", `at "6/s": expected burst, bucket, even, align or warmup, or a comma`},
		{"5/s,", `at the end: expected a rate`},
		{"0 in flight", `expected one number of requests in flight, at least 1`},
		{"5/s, unlimited", `at "unlimited": expected a rate, because a budget with limits cannot be unlimited`},
		{`5/s, pool "x`, `expected a name with its closing quote`},
	}
	for _, test := range tests {
		_, err := throttle.ParseBudget(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "throttle: budget ") {
			t.Errorf("%q: got error %v, want %q", test.text, err, test.want)
		}
	}
}

// TestBudgetTextRoundTrips: String of any valid budget means the same.
func TestBudgetTextRoundTrips(t *testing.T) {
	most := int(min(int64(1<<40), int64(math.MaxInt)))
	zones := []*time.Location{nil, time.UTC, mustZone(t, "Asia/Kathmandu")}
	rapid.Check(t, func(rt *rapid.T) {
		var b throttle.Budget
		for range rapid.IntRange(0, 3).Draw(rt, "rates") {
			r := throttle.Rate{
				Limit: rapid.IntRange(1, most).Draw(rt, "limit"),
				Per:   time.Duration(rapid.Int64Range(1, int64(longest)).Draw(rt, "per")),
				Unit:  rapid.SampledFrom([]string{"", "tokens", "in", "burst", "b-1.x_"}).Draw(rt, "unit"),
			}
			switch rapid.IntRange(0, 3).Draw(rt, "kind") {
			case 0:
				r.Burst = rapid.IntRange(0, r.Limit).Draw(rt, "burst")
				r.Align = rapid.SampledFrom(zones).Draw(rt, "zone")
			case 1:
				r.Bucket = rapid.IntRange(0, most).Draw(rt, "bucket")
			case 2:
				r.WarmUp = time.Duration(rapid.Int64Range(0, int64(longest)).Draw(rt, "warmup"))
			}
			b.Rates = append(b.Rates, r)
		}
		b.InFlight = rapid.IntRange(0, 1<<30).Draw(rt, "flight")
		b.Pool = rapid.String().Draw(rt, "pool")
		if _, err := throttle.New(nil, throttle.Config{Default: b}); err != nil {
			rt.Skip(err)
		}
		text, err := b.MarshalText()
		if err != nil {
			rt.Fatal(err)
		}
		var back throttle.Budget
		if err := back.UnmarshalText(text); err != nil || !sameBudget(back, b) {
			rt.Fatalf("%q came back as %+v, %v, want %+v", text, back, err, b)
		}
	})
}

func FuzzParseBudget(f *testing.F) {
	for _, s := range []string{"5/s, 100000/h burst 200", "1000/d align America/Los_Angeles, 8 in flight", `pool "x", 3 t/7us bucket 2`, "unlimited", "1.5MB per 2.5 hrs burst 3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := throttle.ParseBudget(s)
		if err != nil {
			if _, right, ok := strings.Cut(err.Error(), "; write "); ok {
				if _, err := throttle.ParseBudget(right); err != nil {
					t.Errorf("for %q it says to write what is wrong, too: %v", s, err)
				}
			}
			return
		}
		if back, err := throttle.ParseBudget(b.String()); err != nil || !sameBudget(back, b) {
			t.Errorf("%q is %q, which is %+v, %v", s, b, back, err)
		}
	})
}

func TestBudgetInJSON(t *testing.T) {
	var c struct {
		Budgets map[string]throttle.Budget
	}
	err := json.Unmarshal([]byte(`{"Budgets": {"api.github.com": "5000/h, 20 in flight"}}`), &c)
	if err != nil || c.Budgets["api.github.com"].InFlight != 20 {
		t.Errorf("got %+v, %v", c, err)
	}
	text, err := json.Marshal(c)
	if want := `{"Budgets":{"api.github.com":"5000/h, 20 in flight"}}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	if _, err := json.Marshal(throttle.Budget{Rates: []throttle.Rate{{Limit: 1, Per: time.Second, Align: time.FixedZone("here", 60)}}}); err == nil {
		t.Error("a place without a name was written")
	}
}

// A number beyond an int is refused as such, not taken for zero.
func TestParseBudgetHugeNumbers(t *testing.T) {
	for _, text := range []string{"99999999999999999999/s", "5/99999999999999999999s", "99999999999999999999 in flight"} {
		if b, err := throttle.ParseBudget(text); err == nil || !strings.Contains(err.Error(), "a smaller number") {
			t.Errorf("%q: %v, %v", text, b, err)
		}
	}
}

// A pool's name needs quotes only if it is no word.
func TestPoolNamesAsWords(t *testing.T) {
	for name, want := range map[string]string{
		"AZ": "unlimited, pool AZ", "az-09._": "unlimited, pool az-09._",
		"9a": `unlimited, pool "9a"`, "a b": `unlimited, pool "a b"`, "a[": `unlimited, pool "a["`,
	} {
		if got := (throttle.Budget{Pool: name}).String(); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}

// An error about a common way to spell a rate names ours; where it is not
// obvious what was meant, it names none.
func TestErrorsNameTheRightSpelling(t *testing.T) {
	for _, tt := range []struct{ text, at, write string }{
		{"100 per minute", `"per minute"`, "100/m"},
		{"5/s, 100 tokens per hour, 8 in flight", `"per hour"`, "100 tokens/h"},
		{"3 a day", `"a day"`, "3/d"},
		{"100 requests per minute", `"per minute"`, "100 requests/m"},
		{"0.5/s", `".5/s"`, "1/2s"},
		{"0.0167/s", `".0167/s"`, "167/10000s"},
		{"2.0/s", `".0/s"`, "2/s"},
		{"10W/h", `"W/h"`, "100000/h"},
		{"10万/h", `"万/h"`, "100000/h"},
		{"5k/h burst 200", `"k/h burst 200"`, "5000/h burst 200"},
		{"1.5k tokens/m", `".5k tokens/m"`, "1500 tokens/m"},
		{"1MB/s", `"MB/s"`, "1000000 bytes/s"},
		{"64KiB/s", `"KiB/s"`, "65536 bytes/s"},
		{"90000tokens/m", `"tokens/m"`, "90000 tokens/m"},
		{"500B/s", `"B/s"`, "500 bytes/s"},
		{"10rps", `"rps"`, "10/s"},
		{"600 rpm", "the end", "600/m"},
		{"10 Reqs/s", `"10 Reqs/s"`, "10/s"},
		{"1_000/h", `"_000/h"`, "1000/h"},
		{"5/Minute", `"Minute"`, "5/m"},
		{"5/hr", `"hr"`, "5/h"},
		{"5/1.5s", `".5s"`, "10/3s"},
		{"100/s burst 200", `"100/s burst 200"`, "100/s bucket 200"},
		{"100 per minute burst 200", `"per minute burst 200"`, "100/m bucket 200"},

		{"5M/M", `"M/M"`, ""}, // minutes or months
		{"5/month", `"month"`, ""},
		{"5m/s", `"m/s"`, ""},
		{"1e3/s", `"e3/s"`, ""},
		{"5/s burst 0", `"0"`, ""},
		{"0.0/s", `".0/s"`, ""},
		{"1./s", `"./s"`, "1/s"},
		{"999999999G/0.000001s", `"G/0.000001s"`, ""},
		{"1.2.3/s", `".2.3/s"`, ""},
		{"5k burst 2", `"k burst 2"`, ""},
		{"5 in flight, fast", `"fast"`, ""},
	} {
		_, err := throttle.ParseBudget(tt.text)
		if err == nil {
			t.Errorf("%q is right", tt.text)
			continue
		}
		text, write, _ := strings.Cut(err.Error(), "; write ")
		if write != tt.write || !strings.Contains(text, ": at "+tt.at+": ") {
			t.Errorf("%q: %v\nwant it at %s, and to write %q", tt.text, err, tt.at, tt.write)
		}
	}
}

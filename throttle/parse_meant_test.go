package throttle

import (
	"strings"
	"testing"
)

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
		_, err := ParseBudget(tt.text)
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
